"""How long a kernel should take on a named GPU, from what the emulator saw of a block and a few constants.

`study` runs a kernel on the emulator and keeps the script of one block at two depths; `schedule` lets the warps of one
SM take turns over it; `predict` adds up launches, waves of blocks and memory traffic. Only `study` runs anything.
"""
