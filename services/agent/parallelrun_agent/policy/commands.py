"""The commands of the job machine; the driver executes them in this order. Pure data, no I/O."""

from __future__ import annotations

import msgspec

from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.leasing import Mode, TurnReports
from parallelrun_core.wire.outcome import Failure, Outcome


class NextTurn(msgspec.Struct, frozen=True):
    """A turn at the queue: the reports to send, and the number of mini-batches to lease."""

    mode: Mode
    reports: TurnReports
    want: int


class StageFiles(msgspec.Struct, frozen=True):
    """Bring the files of these mini-batches to the node; `staged` follows for each, or `disk_failed`."""

    assignments: list[Assignment]


class Unstage(msgspec.Struct, frozen=True):
    """The files of these deliveries are not needed any more."""

    tokens: list[str]


class Deliver(msgspec.Struct, frozen=True):
    """Hand over these mini-batches, which the worker has in flight already; `handed_over` follows for each."""

    worker: Worker
    assignments: list[Assignment]


class SetWidth(msgspec.Struct, frozen=True):
    """Tell the worker how many mini-batches to run at once."""

    worker: Worker
    width: int


class TakeBack(msgspec.Struct, frozen=True):
    """Take back what the worker has not read yet; the event `taken_back` follows."""

    worker: Worker


class Commit(msgspec.Struct, frozen=True):
    """Make this outcome durable, with the rows that this worker has written for it."""

    outcome: Outcome
    worker: Worker | None


class ReportFailure(msgspec.Struct, frozen=True):
    """Report to the user why a mini-batch has failed whose items are run apart."""

    outcome: Outcome
    to_leader: bool = False
    """Report it to the leader, too: items are run apart later."""


class UploadOutcome(msgspec.Struct, frozen=True):
    """Upload what this worker has set aside for a mini-batch; `uploaded` follows, and with it the outcome."""

    worker: Worker
    mini_batch: int
    token: str


class UploadRest(msgspec.Struct, frozen=True):
    """Upload what this worker, which has ended in order, has left for outputs in stores; `rest_uploaded` follows."""

    worker: Worker


class DropRest(msgspec.Struct, frozen=True):
    """Remove what this worker, which has ended otherwise, has left for outputs in stores."""

    worker: Worker


class ReportRestLost(msgspec.Struct, frozen=True):
    """Report to leader and user that what a worker has left for outputs in stores will not get there."""

    process: str
    why: str


class EndWorker(msgspec.Struct, frozen=True):
    """Ask for an orderly end: the worker finishes what it has, calls shutdown(), and exits."""

    worker: Worker


class DumpStacks(msgspec.Struct, frozen=True):
    """Have the worker write the stacks of its threads to its stderr."""

    worker: Worker
    why: str


class Kill(msgspec.Struct, frozen=True):
    """Kill the worker and its process group now. Its exit follows as an event."""

    worker: Worker


class ReportInitFailure(msgspec.Struct, frozen=True):
    """Report to leader and user that a worker didn't get through init()."""

    process: str
    failure: Failure
    after_s: float
    """Seconds since the worker was started; 0 when it wasn't."""


class WatchDisk(msgspec.Struct, frozen=True):
    """Try now and then whether something can be written again, after this error; `disk_has_room` follows."""

    error: str


class Abandon(msgspec.Struct, frozen=True):
    """The session is over. End every worker and discard what they did, then open a new session."""

    why: str
    delivery_count: int
    """Number of deliveries it held."""


Command = (
    StageFiles | Unstage | Deliver | SetWidth | TakeBack | Commit | UploadOutcome | UploadRest | DropRest
    | ReportRestLost | EndWorker | DumpStacks | Kill | ReportFailure | ReportInitFailure | WatchDisk | Abandon
)  # fmt: skip
