"""`python -P -m parallelrun_worker.tables.inferred`: how a leader has the columns of a text table found that workers
get only parts of.

On standard input: `{plan, schema}`, the input's record in `inputs.json`, and where its columns are to be frozen. What
is wrong with the first files goes to standard output.
"""

from __future__ import annotations

import json
import sys

from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.table_format import named
from parallelrun_worker.tables.text_format import TextFormat

_MOST = 2000


def main() -> int:
    """Freeze the columns, or print why that can't be done."""
    request = json.load(sys.stdin.buffer)
    table = Table(request["plan"], request["schema"])
    assert isinstance(table.format, TextFormat)  # noqa: S101 - for the type checker
    try:
        with named((table.format.sample or [""])[0]):
            table.format.schema()
    except (OSError, ValueError) as error:
        sys.stdout.buffer.write(str(error)[:_MOST].encode(errors="backslashreplace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
