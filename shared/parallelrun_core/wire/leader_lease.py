"""The length of a leader's lease: those who grant, pause and judge it agree on this."""

from __future__ import annotations

from typing import Final

LEADER_S: Final = 5.0
"""How long a silent master keeps leading a job, unless the setting `leader_seconds` says otherwise."""
LONGEST_PAUSE_MS: Final = 30_000
"""The longest pause with which a leader resigns; nobody leads the job meanwhile."""


def longest_ms(ttl_ms: int) -> int:
    """The longest time that leadership with this time to live can last. A longer one was granted by another clock."""
    return 2 * ttl_ms + LONGEST_PAUSE_MS
