"""Warnings about the data of one mini-batch, on their way to the agent (`core/wire/data_warnings.py` has what follows).

Who finds a value that is read or written in another way than a user may expect adds a warning: once for a column, with
a count, never for each row. Nothing is done, and nothing is sent, as long as there is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MOST = 50
"""Warnings of one mini-batch, about different columns and files; the others are counted."""
MOST_BYTES = 16 << 10
"""Of so many warnings as JSON, as far as they are kept."""
_LENGTHS = {"file": 1000, "column": 200, "what": 400, "remedy": 400}


class DataWarning(NamedTuple):
    """A warning about one column of one file: what the first value was, and how many there are."""

    kind: str
    """Name of the rule: `mismatch`, `leading_zero`, …; with file and column, it says what is the same warning."""
    file: str
    """Path as the job has it; empty if no file is to blame."""
    column: str
    """Empty: the whole file is meant."""
    what: str
    """The event, with the first value: `'007' was read as 7`."""
    remedy: str
    """The setting to write in the job to have it otherwise."""
    times: int = 1
    unit: str = "value"
    """The unit of `times`, in the singular: value, row, file."""
    line: int = 0
    """Line of the file that has the first one, from 1; 0: not known."""
    offset: int = -1
    """Byte of the file at which its record begins; -1: not known."""


class DataWarnings:
    """The warnings of the mini-batch that is being run.

    Args:
        most: how many about different columns and files are kept; the others are counted.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_key: dict[tuple[str, str, str], DataWarning] = {}
        self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def add(self, warning: DataWarning) -> None:
        """Add one; of the same kind, file and column, the first stays, and the counts are added."""
        key = warning.kind, warning.file, warning.column
        earlier = self._by_key.get(key)
        if earlier is not None:
            self._by_key[key] = earlier._replace(times=earlier.times + warning.times)
        elif len(self._by_key) < self._most:
            short: dict[str, Any] = {name: _shortened(getattr(warning, name), most) for name, most in _LENGTHS.items()}
            self._by_key[key] = warning._replace(**short)
        else:
            self._left_out += 1

    def add_all(self, others: DataWarnings) -> None:
        """Add those of another reading."""
        for warning in others._by_key.values():
            self.add(warning)
        self._left_out += others._left_out

    def clear(self) -> None:
        """Forget those of the last mini-batch."""
        self._by_key.clear()
        self._left_out = 0

    def take(self) -> bytes:
        """All of them as JSON, a list of lists; afterwards there are none."""
        import json

        warnings, size = [], 0
        for warning in self._by_key.values():
            size += len(json.dumps(warning))
            if size <= MOST_BYTES * self._most // MOST:
                warnings.append(warning)
        left_out = self._left_out + len(self._by_key) - len(warnings)
        if left_out:
            event = "more of such warnings were counted and not kept one by one"
            warnings.append(DataWarning("more", "", "", event, "", left_out, "warning"))
        self.clear()
        return json.dumps(warnings).encode()


def _shortened(text: str, most: int) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # a name that isn't UTF-8 has lone surrogates
    return text if len(text) <= most else f"{text[: most - 1]}…"
