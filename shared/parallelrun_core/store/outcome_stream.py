"""The entries of a job's outcome stream: how agents, the concatenator and the scripts notify the leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.seals import Kind, Seal, Seals
from parallelrun_core.wire.costs import Spent
from parallelrun_core.wire.outcome import InitFailure, LostRows, Outcome, Phase, decode_list

if TYPE_CHECKING:
    from redis import Redis

MAX_ENTRIES = 200
"""Entries of the outcome stream that are read at once."""
_LONGEST_NAME: Final = 100


class Concatenated(msgspec.Struct, array_like=True, frozen=True):
    """The output that the concatenator put together, or why it could not."""

    path: str
    length: int
    sha256: str
    problem: str = ""
    notes: list[str] = []
    """Remarks about the output, for the user."""
    is_postponed: bool = False
    """There is no output yet, for a reason that may pass: the disk is full, or the service was asked to stop. If there
    is a problem, too, the leader does not wait for it without end."""
    lost: list[LostRows] = []
    """Rows that are not what was committed. Their mini-batches have to be run again."""
    lacks_decisions: bool = False
    """The decision log can't be read as far as the leader has written it."""
    generation: int = 0
    """The generation of the job; the output of an earlier one is not its output any more."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """An entry of the outcome stream, decoded: only what it carries and the leader may believe is set."""

    entry_id: bytes
    outcomes: tuple[Outcome, ...] = ()
    encoded: bytes = b""
    """The outcomes as they came, a JSON array; empty when not all that is in it were accepted."""
    init_failure: InitFailure | None = None
    phases: tuple[Phase, ...] = ()
    whole_failures: tuple[Outcome, ...] = ()
    """Mini-batches that have failed, and whose items are still to be run apart: no decisions."""
    spent: Spent | None = None
    concatenated: Concatenated | None = None
    preparing: str = ""
    """A node that still gets what the workers need. Entries that carry nothing only wake the leader: a
    state has changed, a session has left."""
    refused: str = ""
    """Why this entry isn't believed; `refused_from` is the session that it names, if it names one."""
    refused_from: str = ""


def decode_entry(entry_id: bytes, fields: dict[bytes, bytes], seals: Seals) -> StreamEntry:
    """Decode an entry of the stream; what isn't sealed by a session of the job is refused.

    Anybody may say what does no harm: that a node still prepares, that an output has to wait, that there is something
    to check.
    """
    if b"concatenated" in fields:
        return _concatenated(entry_id, fields, seals)
    for kind, decode in _DECODERS.items():
        if kind.encode() in fields:
            return _checked(entry_id, fields, kind, seals, decode)
    return StreamEntry(entry_id, preparing=fields.get(b"preparing", b"").decode(errors="replace"))


def _checked(
    entry_id: bytes,
    fields: dict[bytes, bytes],
    kind: Kind,
    seals: Seals,
    decode: Callable[[bytes, dict[bytes, bytes], bytes], StreamEntry],
) -> StreamEntry:
    payload = fields[kind.encode()]
    objection = seals.objection(kind, payload, fields.get(b"t", b""))
    if objection:
        return _refused(entry_id, fields, objection)
    try:
        return decode(entry_id, fields, payload)
    except (ValueError, IndexError) as error:  # msgspec's errors are ValueErrors
        return _refused(entry_id, fields, f"it can't be read ({type(error).__name__})")


def _outcomes(entry_id: bytes, fields: dict[bytes, bytes], records: bytes) -> StreamEntry:
    outcomes = decode_list(records)
    if (which := fields.get(b"i")) is None:
        return StreamEntry(entry_id, outcomes=tuple(outcomes), encoded=records)
    indexes = [int(index) for index in which.split(b",")]
    if min(indexes) < 0 or len(set(indexes)) < len(indexes):
        raise ValueError("these are no indexes")
    return StreamEntry(entry_id, outcomes=tuple(outcomes[index] for index in indexes))


def _only(field: str, kind: Any) -> Callable[[bytes, dict[bytes, bytes], bytes], StreamEntry]:
    """Return what decodes an entry that has only this field."""
    decode = msgspec.json.Decoder(kind).decode
    return lambda entry_id, _, payload: StreamEntry(entry_id, **{field: decode(payload)})


def _concatenated(entry_id: bytes, fields: dict[bytes, bytes], seals: Seals) -> StreamEntry:
    try:
        concatenated = msgspec.json.decode(fields[b"concatenated"], type=Concatenated)
    except ValueError as error:
        return _refused(entry_id, fields, f"it can't be read ({type(error).__name__})")
    entry = StreamEntry(entry_id, concatenated=concatenated)
    # On a full disk, who has to postpone it has no key.
    if concatenated.is_postponed:
        return entry
    return _checked(entry_id, fields, "concatenated", seals, lambda *_: entry)


def _refused(entry_id: bytes, fields: dict[bytes, bytes], reason: str) -> StreamEntry:
    seal = fields.get(b"t", b"")
    session = seal.partition(b"/")[0][:_LONGEST_NAME].decode(errors="replace") if b"/" in seal else ""
    return StreamEntry(entry_id, refused=reason, refused_from=session)


_DECODERS: Final[dict[Kind, Callable[[bytes, dict[bytes, bytes], bytes], StreamEntry]]] = {
    "r": _outcomes,
    "init_failed": _only("init_failure", InitFailure),
    "phases": _only("phases", tuple[Phase, ...]),
    "whole_failures": _only("whole_failures", tuple[Outcome, ...]),
    "spent": _only("spent", Spent),
}
"""What decodes the sealed entries of each kind, the most frequent first."""


def report_preparing(redis: Redis, job_id: str, node: str) -> None:
    """Report to the leader, from an agent, that it still gets what the workers need: an environment, inputs."""
    _add(redis, job_id, {"preparing": node})


def report_concatenated(redis: Redis, job_id: str, concatenated: Concatenated, seal: Seal | None = None) -> None:
    """Report to the leader, from the concatenator, what became of the output; without a seal, that it is postponed."""
    report(redis, job_id, "concatenated", concatenated, seal)


def report(redis: Redis, job_id: str, kind: Kind, value: object, seal: Seal | None) -> None:
    """Report to the leader what `StreamEntry` has for this kind."""
    payload = msgspec.json.encode(value)
    _add(redis, job_id, {kind: payload, **({"t": seal.on(kind, payload)} if seal is not None else {})})


def _add(redis: Redis, job_id: str, entry: dict[str, str | bytes]) -> None:
    """Add an entry for the leader. A job that was retired has no stream any more, and a late entry creates none."""
    redis.xadd(JobKeys(job_id).outcomes, entry, nomkstream=True)  # type: ignore[arg-type]
