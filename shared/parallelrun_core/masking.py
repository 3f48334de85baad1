"""Keeps the values of a job's environment variables, which may be secrets, out of what is reported about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MASK: Final = "***"
# Shorter ones, such as `1` or `INFO`, occur everywhere: masking them would garble the text and hide nothing.
_SHORTEST_SECRET: Final = 6


def masked_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A job spec as it may be shown."""
    given = spec.get("environment_variables")
    return {**spec, "environment_variables": dict.fromkeys(given, MASK) if isinstance(given, dict) else {}}


class Mask:
    """Masks the values of one job's environment variables in texts that may repeat them."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        given = spec.get("environment_variables")
        values = given.values() if isinstance(given, dict) else ()
        # The longest first, since one may be part of another.
        self._values = sorted((str(v) for v in values if len(str(v)) >= _SHORTEST_SECRET), key=len, reverse=True)

    def text(self, text: str) -> str:
        """A text as it may be shown."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def printable(self, text: str) -> str:
        """A text that may name files, as it may be shown: what is not UTF-8 in their names is escaped."""
        return self.text(text.encode(errors="backslashreplace").decode())
