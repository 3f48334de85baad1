"""Measurements that anyone can rerun: `make bench`, `make bench B=noop`, `make bench-full`.

The machines are shared and noisy, so whatever is compared runs in turn, round by round, and what is claimed is the
median of the rounds' ratios. CPU per mini-batch, over all processes and Redis, is what a noisy neighbour moves least.
`docs/performance.md` says what was measured, and what each figure is near to.

A benchmark is one module with `main(size)`, which returns what its last line says.
"""

from typing import Final, Literal

Size = Literal["tiny", "quick", "full"]
SIZES: Final = ("tiny", "quick", "full")
