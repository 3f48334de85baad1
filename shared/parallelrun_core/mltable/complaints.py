"""Gathers what is wrong with a document that a user wrote, each with where it is and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from parallelrun_core.errors import Problems


class Complaints(Problems):
    """The problems of one document."""

    def known_keys(self, pointer: str, given: Mapping[Any, Any], known: Collection[str]) -> None:
        """Complain about every key that nobody knows: a setting that is ignored is worse than one that is refused."""
        for key in given:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
                self.wrong(f"{pointer}/{key}", "unknown key", hint)

    def is_of(self, pointer: str, value: object, kind: type, words: str) -> bool:
        """Whether a value is of a type; a truth value is no number."""
        fits = isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
        if not fits:
            self.wrong(pointer, f"{words} is needed, not {value!r}")
        return fits
