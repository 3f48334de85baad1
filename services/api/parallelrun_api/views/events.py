"""The events of a job, as they are in its stream on Redis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class EventId(NamedTuple):
    """The id of a stream entry; ids compare in the order of the entries."""

    ms: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> EventId:
        """Read `<ms>-<sequence>`, or `<ms>` alone.

        Raises:
            ValueError: it has another form.
        """
        ms, _, sequence = text.partition("-")
        if not all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in (ms, sequence or "0")):
            raise ValueError(f"{text!r} is not the id of an event")
        return cls(int(ms), int(sequence or 0))

    def __str__(self) -> str:
        return f"{self.ms}-{self.sequence}"


BEGINNING: Final = EventId(0, 0)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a job."""

    id: EventId
    name: str
    data: str
