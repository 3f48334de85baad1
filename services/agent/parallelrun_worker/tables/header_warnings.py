"""Warnings about files of delimited text whose headers are not that of the first ones."""

import re

from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings
from parallelrun_worker.tables.records import Record
from parallelrun_worker.tables.schema import Schema, header_names

_MOST_NAMES = 5
_WITHOUT_NAME = re.compile(r"Column\d+")


def warn_of_header(
    warnings: DataWarnings, path: str, header: Record, schema: Schema, rows: int, *, by_name: bool
) -> None:
    """Warn if the header of a file has other columns than the table, or has them in an order that isn't followed."""
    names = header_names(header)
    if not rows or schema.has_order_of(names):
        return
    header_set, schema_names = set(names), set(schema.names)
    missing = [name for name in schema.names if name not in header_set and not _WITHOUT_NAME.fullmatch(name)]
    others = [name for name in names if name not in schema_names]
    if by_name and not missing and not others:
        return
    if by_name:
        parts = [f"lacks {_listed(missing)}, which are null there"] if missing else []
        parts += [f"has {_listed(others)}, which the first files have not"] if others else []
        event, remedy = f"its header {' and '.join(parts)}", "header: no_header, if its first line is a row"
    else:
        event = (
            f"its header is {_listed(names)}, and its values were read as {_listed(schema.names)}, by their position"
        )
        remedy = "columns_by: name"
    warnings.add(DataWarning("header", path, "", event, remedy, rows, "row"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more
