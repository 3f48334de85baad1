"""`python -P -m parallelrun_worker.tables.columns`: how a leader learns that a step names columns that a table lacks,
or has the columns of a text table found that workers get only parts of.

On standard input: `{plan}`, the input's record in `inputs.json`; with `schema`, where its columns are to be frozen. On
standard output: `{error, missing}`, the latter with each step, the column that it names in vain, those that there are,
and the step before it that has left the column out. Only the first files are looked at: a column that none of them has
is taken for a mistake.
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
_MOST_MISSING = 20

Missing = tuple[str, str, list[str], str]
"""A step, the column that it names in vain, those that there are, and the step that has left it out; empty: none."""


def main() -> int:
    """Check the steps, or freeze the columns, and print what is wrong."""
    request = json.load(sys.stdin.buffer)
    plan, schema = request["plan"], request.get("schema", "")
    table = Table(plan, schema)
    names = [] if schema else table.names()
    missing: list[Missing] = []
    error_text = ""
    try:
        if schema:
            _freeze(table)
        elif names:  # otherwise there are no rows, either
            check(plan, names, missing)
    except (OSError, ValueError) as error:
        error_text = str(error)[:_MOST]
    if not schema and not table.format.has_fixed_columns:
        error_text = ""  # rows elsewhere may have the column
    json.dump({"error": error_text, "missing": missing[:_MOST_MISSING]}, sys.stdout)
    return 0


def _freeze(table: Table) -> None:
    assert isinstance(table.format, TextFormat)  # noqa: S101 - for the type checker
    with named((table.format.sample or [""])[0]):
        table.format.schema()


def check(plan: dict[str, Any], names: list[str], missing: list[Missing]) -> None:
    """Follow the columns through the steps of a table whose files have these.

    Args:
        missing: gets each column that a step names and could do without.

    Raises:
        ValueError: a step needs one that isn't there.
    """
    from_paths = plan["partition"]["names"] if plan["partition"] else []
    table = NamedColumns([*names, *([PATH] if plan["read"]["include_path_column"] else [])])
    if plan["extracts_first"]:
        table.columns += from_paths
    left_out_by: dict[str, str] = {}
    for step in plan["steps"]:
        for selection in [step.get("columns"), *(each["columns"] for each in step.get("conversions", ()))]:
            columns = selection if isinstance(selection, list) else []
            missing += [
                (step["step"], name, table.columns, left_out_by.get(name, ""))
                for name in columns
                if name not in table.columns
            ]
        match step["step"]:
            case "extract_columns_from_partition_format":
                table.columns += from_paths
            case "keep_columns" | "drop_columns":
                check_kept(table, step)
                remaining = columns_left(table, step)
                left_out_by.update((name, step["step"]) for name in table.columns if name not in remaining)
                table.columns = remaining
            case "filter":
                check_filtered(table, step["expression"])


if __name__ == "__main__":
    sys.exit(main())
