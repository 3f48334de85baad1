"""Extents of a Parquet file: the bytes that it takes to read some of its rows, for files that are staged before."""

from __future__ import annotations

from typing import Any, Final

_TAIL: Final = 64 << 10
"""Readers take so much of the end at once, and look for the footer in it."""
_MARK: Final = 8
"""The length of the footer, and `PAR1`."""
_PADDING: Final = 100
"""Some old writers didn't count the header of a column's first page, so readers go on for so many bytes."""
_GAP: Final = 8 << 10
"""Fewer bytes between two extents cost less than a request."""


def row_groups(footer: Any) -> list[Any]:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [group for group in groups if group.num_rows]


def compressed(group: Any) -> int:
    """Bytes of a row group in the file."""
    return sum(int(group.column(number).total_compressed_size) for number in range(group.num_columns))


def extents_of(footer: Any, size: int, start: int, end: int, columns: list[str]) -> list[tuple[int, int]]:
    """The bytes of the footer, and of these columns of the row groups that have any of the rows, in the file's order.

    Args:
        size: of the file.
        columns: names of top-level columns.
    """
    extents = []
    first = 0
    for group in row_groups(footer):
        if first < end and start < first + group.num_rows:
            extents += _columns_of(group, columns)
        first += group.num_rows
    extents.append((max(0, size - max(_TAIL, footer.serialized_size + _MARK)), size))
    return _merged(extents, size)


def _columns_of(group: Any, columns: list[str]) -> list[tuple[int, int]]:
    names, prefixes = frozenset(columns), tuple(f"{name}." for name in columns)
    extents = []
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema in names or column.path_in_schema.startswith(prefixes):
            begin = column.data_page_offset
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
                begin = column.dictionary_page_offset
            extents.append((begin, begin + column.total_compressed_size + _PADDING))
    return extents


def _merged(extents: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(extents):
        if merged and start <= merged[-1][1] + _GAP:
            merged[-1] = (merged[-1][0], min(max(merged[-1][1], end), size))
        else:
            merged.append((start, min(end, size)))
    return merged
