"""Emulator of GPU machine code: runs a cubin's kernels on the CPU."""
