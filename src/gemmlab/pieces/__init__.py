"""Products larger than a device's memory: C is computed in pieces, and panels of A and B are copied while others are
multiplied.
"""
