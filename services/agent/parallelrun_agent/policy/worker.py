"""A worker as the policy sees it: its mini-batches in flight, and the stage of its life. Pure bookkeeping, no I/O.

                 pass_init              replace
     starting ──────────────▶ ready ──────────────▶ replaced
        │                       │                       │
        │ fail_init             │ end                   │ end
        ╰───────────────────────┴──────────▶ ending ◀───╯

     starting, ready, replaced, ending  ── condemn ──▶ condemned
     all of these                       ── kill ─────▶ killed

Every stage may be a worker's last one: its process can end at any time. One that is condemned or killed in init() may
have said before that it passed or failed; it is noted, and the stage stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from parallelrun_agent.policy.in_flight import Assignment, InFlight

NEVER: Final = float("inf")

Stage = Literal["starting", "ready", "replaced", "ending", "condemned", "killed"]
"""In init(); can be given something; finishes what it runs and is then asked to end, so that another one takes its
place; was asked to end, or ends because init() failed; writes its stacks before it is killed; was killed."""

KillReason = Literal[
    "",
    "disk_full",
    "distrusted",
    "drained",
    "ended",
    "hung_in_init",
    "init_timeout",
    "load_timeout",
    "protocol_violated",
    "run_timeout",
    "shutdown_timeout",
]
"""Why we ended a worker; empty while we have not."""
NOBODYS_FAULT: Final[frozenset[KillReason]] = frozenset({"drained", "disk_full", "distrusted"})
"""Reasons that have nothing to do with what runs in it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a worker's process."""

    code: int
    """Negative: the signal that ended it."""
    oom_killed: bool = False
    peak_bytes: int = 0
    """Its peak of memory."""


class WrongStage(Exception):
    """A worker can't go from its stage to that one."""


@dataclass(slots=True, eq=False)
class Worker:
    """The state of a worker process. Times are monotonic.

    Its stage is changed by the methods here alone; each raises `WrongStage` where the diagram has no such arrow.
    """

    process: str
    part_name: str
    """Name of the file that its rows go to; empty when none are stored."""
    started: float
    in_flight: InFlight = field(default_factory=InFlight)
    stage: Stage = "starting"
    is_through_init: bool = False
    failures_in_row: int = 0
    """Tries that have failed in it since the last one that has not."""
    others_before: int = 0
    """Tries of the job that had succeeded here when the first of these failed."""
    ready_at: float = 0.0
    """Time when it was through init()."""
    init_s: float = 0.0
    """Seconds of its script's import and init(), without the start of the process; 0 before it is through init()."""
    has_answered: bool = False
    """True if it has answered for a mini-batch."""
    end_by: float = NEVER
    """Time when its time for an orderly end is over."""
    kill_at: float = NEVER
    """Time when it has had its time for writing its stacks."""
    condemned_at: float = NEVER
    """Time when it was noticed that it hangs; what it has begun since then is not what it hung in."""
    kill_reason: KillReason = ""
    """Why it was condemned or killed: the first reason stays."""

    @property
    def is_to_end(self) -> bool:
        """Return whether it was asked to end, or was or will be killed."""
        return self.stage in ("ending", "condemned", "killed")

    @property
    def start_s(self) -> float:
        """Return the seconds from its start to the end of init(); 0 before it is through init()."""
        return max(0.0, self.ready_at - self.started) if self.is_through_init else 0.0

    @property
    def keeps_its_slot(self) -> bool:
        """Return whether it works, or will: it was not asked to end, and will not be after what it runs."""
        return self.stage in ("starting", "ready")

    def pass_init(self, now: float = 0.0, init_s: float = NEVER) -> None:
        """Record that it is through init(), which took `init_s`: at most the time since its start."""
        self._check_init("pass init()")
        self.is_through_init = True
        self.ready_at = now
        self.init_s = max(0.0, min(init_s, now - self.started))
        if self.stage == "starting":
            self.stage = "ready"

    def fail_init(self, end_by: float) -> None:
        """Record that init() failed: it will exit by itself."""
        self._check_init("fail in init()")
        if self.stage == "starting":
            self.stage, self.end_by = "ending", end_by

    def _check_init(self, step: str) -> None:
        if self.is_through_init:
            raise WrongStage(f"a worker that is through init() can't {step}")
        self._check(step, "starting", "condemned", "killed")

    def replace(self) -> None:
        """Give it nothing more, and let it end after what it runs: another one shall take its place."""
        self._check("be replaced", "ready")
        self.stage = "replaced"

    def end(self, end_by: float) -> None:
        """Ask it for an orderly end."""
        self._check("be asked to end", "ready", "replaced")
        self.stage, self.end_by = "ending", end_by

    def condemn(self, reason: KillReason, now: float, kill_at: float) -> None:
        """Give it until `kill_at` to write where it hangs."""
        self._check("be condemned", "starting", "ready", "replaced", "ending")
        self.stage, self.kill_reason, self.condemned_at, self.kill_at = "condemned", reason, now, kill_at

    def kill(self, reason: KillReason) -> None:
        """Mark it as killed."""
        self._check("be killed", "starting", "ready", "replaced", "ending", "condemned")
        self.stage, self.kill_reason = "killed", self.kill_reason or reason

    def left_behind(
        self, end: Exit, unread: Sequence[int], *, is_draining: bool
    ) -> tuple[list[tuple[Assignment, float]], list[Assignment]]:
        """Return what a dead worker had in flight: what is charged with its death, each with the time since when it was
        run, and the rest.

        Args:
            unread: mini-batches whose tickets it had not even read.
            is_draining: the node ends, so a death without a known reason may be of that.
        """
        # One that never gets as far as its first answer must be charged, or this would go on for ever.
        not_begun = self.in_flight.take_back(unread) if self.has_answered else []
        begun, rest = self.in_flight.died(running=self.is_through_init)
        has_reason = bool(self.kill_reason) or end.oom_killed
        is_charged = self.kill_reason not in NOBODYS_FAULT and (has_reason or not is_draining)
        # What began after the worker was condemned is not what hung: that one has been answered since.
        charged = [(each, since) for each, since in begun if is_charged and since <= self.condemned_at]
        return charged, [each for each, since in begun if (each, since) not in charged] + rest + not_begun

    def _check(self, step: str, *stages: Stage) -> None:
        if self.stage not in stages:
            raise WrongStage(f"a worker that is {self.stage} can't {step}")
