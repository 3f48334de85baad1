"""`python -m parallelrun` is the command line."""

from __future__ import annotations

from parallelrun.cli import command

if __name__ == "__main__":
    command()
