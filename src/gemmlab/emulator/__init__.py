"""Runs a cubin's machine code where no GPU is."""
