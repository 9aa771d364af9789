"""The claims of the sources, one file for each source: the statement, its test, and the verdict that the
records give.
"""
