"""What happened to a job, as Redis' stream of its events has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class EventId(NamedTuple):
    """The id of a stream entry: they compare as they were added."""

    ms: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> EventId:
        """Read `<ms>-<sequence>`, or `<ms>` alone.

        Raises:
            ValueError: it is something else.
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
    """One thing that happened to a job."""

    id: EventId
    name: str
    data: str
