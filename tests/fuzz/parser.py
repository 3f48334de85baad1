"""A parser that is fuzzed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FINDS: Final = Path(__file__).parent / "finds"


class FoundFlaw(AssertionError):
    """An answer that contradicts itself, or another reader of the same input."""


def check(is_so: object, flaw: str) -> None:
    """Raise FoundFlaw with this text, unless it is so."""
    if not is_so:
        raise FoundFlaw(flaw)


@dataclass(frozen=True)
class FuzzedParser:
    """A parser of what others have written."""

    name: str
    seeds: Sequence[bytes]
    """Inputs to begin with: such that are taken, and such that are refused."""
    read: Callable[[bytes], None]
    """Read an input; whatever it raises is a find, but for `refusals`."""
    refusals: tuple[type[BaseException], ...]
    """Errors with which the parser says that it does not take an input."""

    def try_input(self, data: bytes) -> None:
        """Read an input.

        Raises:
            Exception: it is a find.
        """
        try:
            self.read(data)
        except FoundFlaw:
            raise
        except self.refusals:
            pass

    def finds(self) -> list[Path]:
        """The files with what was found in former times."""
        folder = FINDS / self.name
        return sorted(folder.iterdir()) if folder.is_dir() else []
