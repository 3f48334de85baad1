"""A service that does nothing, until nobody waits for it any more."""

from __future__ import annotations

import sys


def main() -> None:
    print("idle", flush=True)
    sys.stdin.read()
