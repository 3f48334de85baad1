"""Every Redis key, in one place. `docs/protocol.md` says who writes which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "parallelrun:"

AGENTS: Final = PREFIX + "{"
"""What the keys of jobs begin with that agents touch, and no others. Redis compares each key of each call, those in
scripts too, with a user's patterns in turn, byte by byte: one short beginning for all is what makes that cheap."""

RESERVED: Final = PREFIX + "reserved:{"
"""What the keys of jobs begin with that agents may not touch."""

ACTIVE_JOBS: Final = PREFIX + "jobs:active"
"""zset: job id → time of submission. Jobs that may still need a leader or agents, oldest first."""

NODES: Final = PREFIX + "nodes"
"""hash: node → JSON of its agent's last description of itself."""

NODES_ALIVE: Final = PREFIX + "nodes:alive"
"""zset: node → when it counts as lost, ms of Redis' clock."""

NODES_CHECK: Final = PREFIX + "nodes:check"
"""string with a time to live: JSON of the last request that all nodes check themselves."""

NODES_DRAINING: Final = PREFIX + "nodes:draining"
"""set: nodes that shall finish what they run, and leave."""

PROVISIONER: Final = PREFIX + "provisioner"
"""string with a time to live: the token of the provisioner that acts."""

KINDS: Final = PREFIX + "provisioner:kinds"
"""string: the kinds of computes whose nodes the provisioner that acts may ask for, the main one first."""

LAUNCHES: Final = PREFIX + "launches"
"""hash: id of a launch → JSON of what was asked for, until nothing is left of it."""

COMPUTES: Final = PREFIX + "computes"
"""hash: compute → JSON of how it stands."""

NODES_STACKS: Final = PREFIX + "nodes:stacks"
"""hash with a time to live: job → JSON of the last request that nodes show where its workers are."""

SUBMISSIONS: Final = PREFIX + "submissions:"
"""hash with a time to live, for each minute: owner → jobs that they have submitted in it."""

RESERVATIONS: Final = PREFIX + "reservations:"
"""hash with a time to live, for each owner: job that is being accepted → until when it counts for quotas, in seconds
since the epoch; `changes` → how many have ended."""

USAGE: Final = PREFIX + "usage"
"""hash: owner → slot-seconds of late, and when they were that, in seconds since the epoch."""

QUOTAS: Final = PREFIX + "quotas"
"""hash: owner, or `everybody` → the most slots and nodes that they may have at the same time, `-` for any number."""

USAGE_WEEKS: Final = PREFIX + "usage:weeks"
"""hash: `WEEK slots OWNER` or `WEEK gpus OWNER` → seconds used in that week."""

KNOWN: Final = PREFIX + "known"
"""string: there once a master has claimed to check that Redis knows all jobs that have a folder."""


def of_limit(name: str) -> list[str]:
    """Return the keys of a limit: a hash with its state; a zset, holder of a permit → when it is lost, ms; and a hash,
    job and node that ask → what they had."""
    return [f"{AGENTS}limits}}:{name}", f"{AGENTS}limits}}:{name}:held", f"{AGENTS}limits}}:{name}:parties"]


class _Key:
    """A key of a job: what it begins with, the id of the job, and a name."""

    def __init__(self, beginning: str, name: str) -> None:
        self._beginning = beginning
        self._name = name

    def __get__(self, keys: JobKeys, _: type) -> str:
        return f"{self._beginning}{keys.job_id}}}:{self._name}"


@dataclass(frozen=True, slots=True)
class JobKeys:
    """The keys of one job; the braces make Redis Cluster keep them on one shard."""

    job_id: str

    job = _Key(AGENTS, "job")
    """hash: state, generation, term, published, failure, version, progress, chooses (whether `nodes` is there),
    paused, priority, used_up (its budget), joining (nodes that asked for it)…"""

    leader = _Key(RESERVED, "leader")
    """string with a time to live: the token of the process that leads the job."""

    concatenating = _Key(RESERVED, "concatenating")
    """string with a time to live: there while a process puts the output together."""

    ready = _Key(AGENTS, "ready")
    """list: ids of published mini-batches that nobody holds; the leftmost is next."""

    delayed = _Key(AGENTS, "delayed")
    """zset: id → when its next try may begin, ms of Redis' clock. Only of mini-batches of which a try has failed, and
    which no node gets before."""

    messages = _Key(AGENTS, "messages")
    """hash: id → message, of mini-batches that are ready, delayed or leased."""

    leases = _Key(AGENTS, "leases")
    """hash: id → stem of the token of the delivery that holds it, which is the stem and the id. A stem begins with
    its session and '/', and no two calls that lease share one."""

    twins = _Key(AGENTS, "twins")
    """hash: id → stem of the token of the first delivery, of mini-batches that were given out a second time."""

    tries = _Key(AGENTS, "tries")
    """hash: id → failed tries. Only of mini-batches that had one."""

    lost = _Key(AGENTS, "lost")
    """hash: id → deliveries that ended with the loss of their session. Only of mini-batches that had one, or (0) whose
    worker died."""

    given_up = _Key(RESERVED, "given_up")
    """hash: id → failed tries, of mini-batches that were lost too often, until the leader has recorded that."""

    sessions = _Key(AGENTS, "sessions")
    """zset: agent session → when its lease ends, ms of Redis' clock."""

    nodes = _Key(AGENTS, "nodes")
    """set: the nodes that may work for the job; not there when every node may."""

    at_work = _Key(AGENTS, "at_work")
    """hash: node → JSON of what the job's workers there do, as the node said last; for people."""

    setbacks = _Key(RESERVED, "setbacks")
    """hash: kind → how many in a row; `kind:since` → when the first of them was; `mark` → how much was durable at
    the last one (`count_setback`)."""

    outcomes = _Key(AGENTS, "outcomes")
    """stream: entries for the leader, which trims it once they are in the decision log."""

    events = _Key(RESERVED, "events")
    """stream, capped: events, for those who watch the job."""

    def all(self) -> list[str]:
        """Every key of the job, for when it is deleted."""
        return [getattr(self, name) for name, key in vars(JobKeys).items() if isinstance(key, _Key)]
