"""The turns of a node for one job: when it speaks with the queue, what it reports and asks for. Pure, no I/O.

Each turn goes through these calls, in this order:

    due_at()         when there must be one: to report, to renew the lease, or to ask
    next_turn()      what it says; nothing, if it is not time
    (the queue)
    acknowledged()   the lease is renewed, and what was reported is forgotten
    ask_again()      when to ask next, once the answer is taken over
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from parallelrun_agent.policy.commands import NextTurn
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.early_failures import EarlyFailures
from parallelrun_agent.policy.early_questions import EarlyQuestions
from parallelrun_agent.policy.lease_clock import LeaseClock
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.worker import NEVER, Worker
from parallelrun_agent.policy.worker_pool import WorkerPool
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.leasing import Mode, Turn
from parallelrun_core.wire.states import JobState

TURNS_PER_LEASE: Final = 4


class TurnSchedule:
    """Schedules the turns of one session after the other.

    Args:
        deliveries: those of the first session.
    """

    deliveries: Deliveries
    """Deliveries of the present session."""
    joined: bool
    """The queue has answered a turn of the session, and has not given it up."""
    _lease_clock: LeaseClock
    _renew_by: float
    _questions: EarlyQuestions

    def __init__(
        self,
        spec: JobSpec,
        membership: Membership,
        pool: WorkerPool,
        look_ahead: LookAhead,
        early: EarlyFailures,
        *,
        deliveries: Deliveries,
        lease_s: float,
    ) -> None:
        self._spec = spec
        self.waits_for_cuts = spec.size.is_auto
        """Whether the leader may be about to cut mini-batches."""
        self._membership = membership
        self._pool = pool
        self._look_ahead = look_ahead
        self._early = early
        self._lease_s = lease_s
        self.begin_session(deliveries)

    def begin_session(self, deliveries: Deliveries) -> None:
        """Begin a session that has not joined the job."""
        self.deliveries = deliveries
        self.joined = False
        self._lease_clock = LeaseClock(self._lease_s)
        self._renew_by = 0.0
        self._questions = EarlyQuestions(self._spec)

    @property
    def is_awaited(self) -> bool:
        """Return whether the leader may wait for what ends here: it cuts no more before it knows how long that took."""
        return self.waits_for_cuts and not self._membership.ready

    def lease_left_s(self, now: float) -> float:
        """Return how long this session may rely on its lease without another renewal."""
        return self._lease_clock.left_s(now) if self.joined else 0.0

    def lease_is_over(self, now: float) -> bool:
        """Return whether the session has joined, and may rely on its lease no more."""
        return self.joined and not self._lease_clock.is_valid(now)

    def due_at(self) -> float:
        """Return when there must be a turn: to report, to ask for the state, or because it was waited for long enough;
        or NEVER."""
        asks_at = self._questions.at if self._renew_by else 0.0
        return min(asks_at, self._report_by(), self._look_ahead.gather_until, self._early.pause_until)

    def ask_for_state(self) -> None:
        """Let the next turn be due now."""
        self._renew_by = 0.0

    def next_turn(self, now: float, workers: Sequence[Worker], *, leaves: bool) -> NextTurn | None:
        """Return the next turn; None while there is nothing to report, to ask for or to renew, and when nothing was
        joined.

        Args:
            workers: those for which it may lease something.
            leaves: the node has done all that it must before it leaves.
        """
        membership = self._membership
        want = 0
        if not self._early.pauses(now):
            want = self.deliveries.wanted(self._look_ahead, workers, membership.ready, now)
        if not (want or leaves or now >= min(self._renew_by, self._questions.at, self._report_by())):
            return None
        mode: Mode = "stay" if self.joined else "join"
        if leaves:
            mode = "leave"
            if not self.joined:
                membership.has_left = True
                return None
        sending, rest = self.deliveries.next_reports()
        if mode == "leave" and rest and membership.state is JobState.PROCESSING:
            mode = "stay"  # what doesn't fit in one turn must be reported before the last one
        return NextTurn(mode, sending, 0 if mode == "leave" else want)

    def acknowledged(self, turn: NextTurn, answer: Turn, sent_at: float) -> None:
        """Take note that the queue has answered a turn, and has not given the session up."""
        self.joined = True
        self.deliveries.acknowledged(turn.reports)
        self._lease_clock.renewed(sent_at)
        self._renew_by = sent_at + self._lease_s / TURNS_PER_LEASE
        self._questions.at = NEVER
        membership = self._membership
        membership.job_is(answer.state)
        membership.ready = answer.ready
        membership.has_left = turn.mode == "leave"

    def ask_again(self, turn: NextTurn, now: float, *, begins_more: bool, is_at_rest: bool) -> None:
        """Decide when to ask again, as what the answer brought is with the workers.

        Args:
            begins_more: more may be begun here.
            is_at_rest: nothing runs here, and nothing is ready to run.
        """
        is_idle = begins_more and self._pool.idle() is not None
        self._questions.answered(
            self._membership.ready, now, has_reported=bool(turn.reports), is_idle=is_idle, is_at_rest=is_at_rest
        )

    def _report_by(self) -> float:
        since = self.deliveries.reports_since
        if since == NEVER or self.is_awaited:
            return since
        return self.deliveries.report_by(busy=self._pool.is_busy)
