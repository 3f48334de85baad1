"""Checks that `parallelrun doctor` makes on its own machine and on each node alike.

bounded.py   runs a check for a bounded time
machine.py   Python, CPUs, memory, limits
kernel.py    what agents ask of the kernel
volume.py    the folder that all services share
stores.py    inputs and outputs in object stores
"""
