"""Performance model: predict a kernel's time on a GPU from the trace of one block and a few constants.

`kernel_study` runs a kernel on the emulator and makes the script of one block at two depths; `schedule` simulates the
warps of one SM that execute the script; `predict` adds up launches, waves of blocks and memory traffic. Only
`kernel_study` runs the kernel.
"""
