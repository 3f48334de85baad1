"""Gathers what is wrong with a document that a user wrote, each with where it is and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from parallelrun_core.errors import InvalidInput, Problem


class Complaints:
    """The problems of one document."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, pointer: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(pointer=pointer, message=message, hint=hint))

    def settle(self) -> None:
        """Go on only when there is nothing to complain about.

        Raises:
            InvalidInput: with all problems.
        """
        if self.problems:
            raise InvalidInput(problems=tuple(self.problems))

    def known_keys(self, pointer: str, given: Mapping[Any, Any], known: Collection[str]) -> None:
        """Complain about every key that nobody knows: a setting that is ignored is worse than one that is refused."""
        for key in given:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
                self.add(f"{pointer}/{key}", "unknown key", hint)

    def is_of(self, pointer: str, value: object, kind: type, words: str) -> bool:
        """Whether a value is of a type; a truth value is no number."""
        fits = isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
        if not fits:
            self.add(pointer, f"{words} is needed, not {value!r}")
        return fits
