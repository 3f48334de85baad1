"""Warnings about data: where a reader, or a renderer of rows, gave a value that a user may not want.

A worker adds them to the outcome of the mini-batch that has such a value, a leader to its own file. They are summed up
by kind, file and column, so each counts once for each mini-batch that is decided, however often that was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from parallelrun_core.untrusted.sanitize import in_one_line

_MOST: Final = 1000
"""Files and columns that are told apart; what is warned of in others is counted with the last kind."""
_MOST_LINES: Final = 20
_REST: Final = "more"
"""The kind of a warning that stands for those that a bound has left out."""


class DataWarning(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A warning about one column of one file.

    The fields of `DataWarning` in `worker/tables/data_warnings.py`, in their order. A new field is the last one, with a
    default: it is missing in what earlier releases wrote.
    """

    kind: str
    """Name of the rule: `mismatch`, `leading_zero`, …"""
    file: str
    """Path as the job has it; empty if no file is to blame."""
    column: str
    """Empty: the whole file is meant."""
    what: str
    """The event, with the first value: `'007' was read as 7`."""
    remedy: str
    """The setting to write in the job to have it otherwise."""
    times: Annotated[int, msgspec.Meta(ge=1)] = 1
    unit: str = "value"
    """The unit of `times`, in the singular: value, row, file."""
    line: int = 0
    """Line of the file that has the first one, from 1; 0: not known."""
    offset: int = -1
    """Byte of the file at which its record begins; -1: not known."""

    @property
    def place(self) -> str:
        """File, column and line, in words."""
        parts = [in_one_line(self.file)] if self.file else []
        parts += [f"column {in_one_line(self.column)!r}"] if self.column else []
        if self.line:
            parts.append(f"line {self.line:,}")
        elif self.offset >= 0:
            parts.append(f"record at byte {self.offset:,}")
        return ", ".join(parts)

    def in_words(self, files: int = 1) -> str:
        """The whole warning in one sentence.

        Args:
            files: how many files `times` comes from.
        """
        total = f" ({self.times:,} {self.unit}s{f' in {files:,} files' if files > 1 else ''})" if self.times > 1 else ""
        head = f"{self.place}: " if self.place else ""
        tail = f"; {self.remedy}" if self.remedy else ""
        return in_one_line(f"{head}{self.what}{total}{tail}.")


_Key = tuple[str, str, str]


@dataclass(slots=True)
class WarningTotals:
    """Warnings summed up by kind, file and column; of each, the first one in its file is kept."""

    _by_key: dict[_Key, DataWarning] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[DataWarning]:
        return iter(self._by_key.values())

    def add(self, warnings: Iterable[DataWarning], sign: int = 1) -> None:
        """Count warnings, or with `sign` -1 take back what was counted."""
        for warning in warnings:
            key = warning.kind, warning.file, warning.column
            if key not in self._by_key and len(self._by_key) >= _MOST:
                warning = _left_out(warning.times)  # noqa: PLW2901 - it is counted under another key
                key = warning.kind, "", ""
            earlier = self._by_key.get(key)
            times = sign * warning.times + (earlier.times if earlier else 0)
            if times <= 0:
                self._by_key.pop(key, None)
                continue
            first = warning if earlier is None or 0 <= warning.offset < earlier.offset else earlier
            self._by_key[key] = msgspec.structs.replace(first, times=times)

    def raise_to(self, warnings: Iterable[DataWarning]) -> None:
        """Add warnings that may have been added before, by who found the same: the higher count stays."""
        for warning in warnings:
            earlier = self._by_key.get((warning.kind, warning.file, warning.column))
            more = warning.times - (earlier.times if earlier else 0)
            if more > 0:
                self.add([msgspec.structs.replace(warning, times=more)])

    def lines(self) -> list[str]:
        """A line for each warning: by kind, then by column and file."""
        return [each.in_words() for each in sorted(self, key=lambda each: (*_rank(each), each.column, each.file))]

    def summary(self) -> list[str]:
        """A few lines: one for each kind and column, with the first file, and how many files there are."""
        groups: dict[tuple[str, str], list[DataWarning]] = {}
        for warning in sorted(self, key=lambda each: (*_rank(each), each.file)):
            groups.setdefault((warning.kind, warning.column), []).append(warning)
        lines = []
        for same in list(groups.values())[:_MOST_LINES]:
            total = msgspec.structs.replace(same[0], times=sum(warning.times for warning in same))
            lines.append(total.in_words(len(same)))
        more = len(groups) - len(lines)
        return [*lines, f"{more:,} more warnings about data are in the log warnings.txt."] if more > 0 else lines


def _left_out(times: int) -> DataWarning:
    event = "more of such warnings were counted and not kept one by one"
    return DataWarning(_REST, "", "", event, "", times, "warning")


def _rank(warning: DataWarning) -> tuple[bool, str]:
    return warning.kind == _REST, warning.kind
