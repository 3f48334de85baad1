"""Runs one check for a bounded time, and says what has become of it."""

from __future__ import annotations

import threading
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, bad

LONGEST_S: Final = 5.0
"""How long a check may take."""
_SLOW: Final = "find out what is slow or away: a disk, a volume, a server"
_REFUSED: Final = "find out why the system refuses this: rights, a sandbox, a disk that is away"
_BUG: Final = "this is a bug in parallelrun: please report it, with what is said here"


def findings(check: Check, place: Place, longest_s: float = LONGEST_S, *, name: str = "") -> list[Finding]:
    """Return what a check says, and whether it didn't answer or failed.

    Args:
        name: what it is called then; by default as its function.
    """
    name = name or check.__name__.replace("_", " ")
    results: list[Finding] = []
    error: list[Exception] = []

    def run() -> None:
        try:
            results.extend(check(place))
        except Exception as failure:
            error.append(failure)

    # What hangs in the kernel, as on a volume that is away, can't be broken off; the process doesn't wait for it.
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(longest_s)
    if thread.is_alive():
        return [*results, bad(f"{name}: no answer within {longest_s:g} s", _SLOW)]
    if error:
        message = f"{name}: {str(error[0]) or type(error[0]).__name__}"
        return [*results, bad(message, _REFUSED if isinstance(error[0], OSError) else _BUG)]
    return results
