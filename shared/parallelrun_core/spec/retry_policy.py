"""The retry policy: whether a mini-batch that failed is tried again, after which pause (backoff), and what people are
told of it.

Everybody asks here: agents about each try that fails, leaders about what was lost with its node and about the time that
a job may stand still, the API for its words. Redis decides nothing of it, and is told figures: `turn.lua` keeps a
mini-batch in `delayed` for the pause that its agent names, or makes it ready again at once if that is 0. `reap.lua`
makes it ready when the pause is over, and counts what is lost against the figure that its leader names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from parallelrun_core.figures import counted
from parallelrun_core.spec.job import JobSpec

if TYPE_CHECKING:
    from parallelrun_core.wire.outcome import ErrorCategory

PAUSES_S: Final[tuple[float, ...]] = (0.0,)
"""The pause after the first try of a mini-batch that fails, after the second one, and so on, in seconds. The last of
them also follows all later tries. Meanwhile a job with a shorter `progress_update_timeout` may fail for it."""

NOT_TRIED_AGAIN: Final[frozenset[ErrorCategory]] = frozenset()
"""The categories of failures that no other try follows. None: what has failed on one node may succeed on another."""


@dataclass(frozen=True, slots=True)
class MiniBatchRetryPolicy:
    """The retry policy of one job's mini-batches."""

    max_tries: int
    """Tries that a mini-batch has before it counts as failed."""
    max_lost: int = 0
    """Times that a mini-batch may be lost with its node before it counts as failed. One that is lost is ready again at
    once."""

    @classmethod
    def of(cls, spec: JobSpec) -> MiniBatchRetryPolicy:
        """Return the policy that a job asks for."""
        return cls(spec.run_max_try, spec.lost_leases)

    def allows_another(self, tries: int, category: ErrorCategory) -> bool:
        """Return whether another try follows when so many of a mini-batch have failed, the last one in this way."""
        return tries < self.max_tries and category not in NOT_TRIED_AGAIN

    def pause_s(self, tries: int) -> float:
        """Return for how many seconds no node begins the next try of a mini-batch of which so many have failed.

        The pause begins when the agent reports the last of them. It is over as soon as the leader notices that, which
        it checks a few times a second.
        """
        return PAUSES_S[max(0, min(tries, len(PAUSES_S)) - 1)]

    @property
    def longest_pause_s(self) -> float:
        """Return the longest pause: what seems to last longer comes of a clock that was set back."""
        return max(PAUSES_S)

    def longest_s(self, try_s: float) -> float:
        """Return how many seconds all tries of a mini-batch take at most if each takes `try_s`, with their pauses."""
        return self.max_tries * (try_s + self.longest_pause_s)


def retry_text(tries: int, lost: int, pause_s: float) -> str:
    """Return what people are told of a mini-batch that runs again.

    Args:
        tries: how many have failed.
        lost: how often it was lost with its node.
        pause_s: seconds until the next try may begin; 0: it may begin now.
    """
    events = [f"{counted(tries, 'try', 'tries')} failed"] if tries else []
    events += [f"{counted(lost, 'delivery', 'deliveries')} lost with a node"] if lost else []
    when = f"in {pause_s:.0f} s at the earliest" if pause_s else "without delay"
    return f"{' and '.join(events)}: it runs again {when}, on a worker that has nothing else, as it may kill it"
