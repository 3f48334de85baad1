"""Measurements that anyone can rerun: `make bench`, `make bench B=noop`, `make bench-full`.

The machines are shared and noisy, so whatever is compared runs in turn, round by round, and what is claimed is the
median of the rounds' ratios. CPU per mini-batch, over all processes and Redis, is what a noisy neighbour moves least.
"""
