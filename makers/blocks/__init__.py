"""The generated blocks of README.md and docs/*.md: one module for each subject, one function for each block.

`BLOCKS` of a module is a dictionary: name of a block in the pages -> function that returns its text in Markdown.
"""
