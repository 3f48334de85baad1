"""`python -P -m parallelrun_worker.tables.columns`: how a leader learns that a step names columns that a table lacks,
or has the columns of a text table found that workers get only parts of.

On standard input: `{plan}`, the input's record in `inputs.json`; with `schema`, where its columns are to be frozen. The
error, if there is one, goes to standard output. Only the first files are looked at: a column that none of them has is
taken for a mistake.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from parallelrun_worker.tables.steps import NamedColumns, check_filtered, check_kept, columns_left
from parallelrun_worker.tables.table import PATH, Table
from parallelrun_worker.tables.table_format import named
from parallelrun_worker.tables.text_format import TextFormat

_MOST = 2000


def main() -> int:
    """Check the steps, or freeze the columns, and print what is wrong."""
    request = json.load(sys.stdin.buffer)
    plan, schema = request["plan"], request.get("schema", "")
    table = Table(plan, schema)
    names = [] if schema else table.names()
    try:
        if schema:
            _freeze(table)
        elif names:  # otherwise there are no rows, either
            check(plan, names)
    except (OSError, ValueError) as error:
        sys.stdout.buffer.write(str(error)[:_MOST].encode(errors="backslashreplace"))
    return 0


def _freeze(table: Table) -> None:
    assert isinstance(table.format, TextFormat)  # noqa: S101 - for the type checker
    with named((table.format.sample or [""])[0]):
        table.format.schema()


def check(plan: dict[str, Any], names: list[str]) -> None:
    """Follow the columns through the steps of a table whose files have these.

    Raises:
        ValueError: a step needs one that isn't there.
    """
    from_paths = plan["partition"]["names"] if plan["partition"] else []
    table = NamedColumns([*names, *([PATH] if plan["read"]["include_path_column"] else [])])
    if plan["extracts_first"]:
        table.columns += from_paths
    for step in plan["steps"]:
        match step["step"]:
            case "extract_columns_from_partition_format":
                table.columns += from_paths
            case "keep_columns" | "drop_columns":
                check_kept(table, step)
                table.columns = columns_left(table, step)
            case "filter":
                check_filtered(table, step["expression"])


if __name__ == "__main__":
    sys.exit(main())
