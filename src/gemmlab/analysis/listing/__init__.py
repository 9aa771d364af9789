"""Listings of machine code: each instruction with its source lines, control codes, registers, counts and times."""
