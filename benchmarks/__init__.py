"""Measurements that anyone can rerun: `make bench`, `make bench B=noop`, `make bench-full`.

The machines are shared and noisy, so compared systems run in turn, round by round, and the result is the median of
the rounds' ratios. CPU per mini-batch, over all processes and Redis, is the figure that noisy neighbors affect least.
`docs/performance.md` says what was measured, and what bounds each figure.

A benchmark is a module with `main(size)`, which returns the figures of its last line.
"""

from typing import Final, Literal

Size = Literal["tiny", "quick", "full"]
SIZES: Final = ("tiny", "quick", "full")
