"""The command `parallelrun`. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code (see `exit_codes.py`)."""
    from parallelrun.cli.app import run

    return run(argv)
