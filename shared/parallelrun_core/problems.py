"""Gathers what is wrong with a document that a user wrote, each problem with its place and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from parallelrun_core.errors import InvalidInput, Problem


@dataclass
class Problems:
    """The problems of a document, gathered while it is read."""

    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.problems)

    def wrong(self, pointer: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(pointer=pointer, message=message, hint=hint))

    def check(self) -> None:
        """Go no further with a document that is wrong.

        Raises:
            InvalidInput: with all problems that were found so far.
        """
        if self.problems:
            raise InvalidInput(problems=tuple(self.problems))


@dataclass(frozen=True, slots=True)
class At:
    """A place in a document, and the problems that what is wrong there is added to."""

    pointer: str
    problems: Problems

    def below(self, name: str | int) -> At:
        return At(f"{self.pointer}/{name}", self.problems)

    def wrong(self, message: str, hint: str = "") -> None:
        self.problems.wrong(self.pointer, message, hint)

    def known_keys(self, mapping: Mapping[Any, Any], names: Collection[str]) -> None:
        """Refuse every unknown key: a setting that is ignored is worse than one that is refused."""
        for key in mapping:
            if key not in names:
                close = get_close_matches(str(key), names, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(names))}"
                self.below(key).wrong("unknown key", hint)

    def is_of(self, value: object, kind: type, type_name: str) -> bool:
        """Return whether a value is of a type, and a problem if not; a truth value is not a number."""
        fits = isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
        if not fits:
            self.wrong(f"must be {type_name}, not {value!r}")
        return fits
