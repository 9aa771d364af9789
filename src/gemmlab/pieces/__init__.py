"""Products larger than a device's memory: C in pieces, panels of A and B copied while others are multiplied."""
