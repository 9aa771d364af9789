"""What the sources claim, a file a source: what was said, how it is tested, and the verdict that the records give."""
