"""The columns of processed_mini-batches.csv (reference §5.1): what has to do with their order is only here.

Some are read again, by their names in the header: `summaries.py`, `core/tries/worker_phases.py`,
`core/adviser/reading/phases.py`. A report that another release began keeps its header (`below`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from parallelrun_core.wire.outcome import Outcome, PartTry, Use

_MB = 1 << 20
_MAX_KNOWN = 1000


class _Column(NamedTuple):
    name: str
    of_try: str
    """Format of its cell in the row of a try."""
    of_loading: str = ""
    """The source of the column in the row of the try's loading."""


_COLUMNS = (
    _Column("Mini-batch Id", "%d", "%d"),
    _Column("Picked Count", "%d", "%d"),
    _Column("Process", "%s", "%s"),
    _Column("Process Start Time", "%s", "%s"),
    _Column("Total", "%d", "%d"),
    _Column("Succeeded", "%d"),
    _Column("Failed", "%d"),
    _Column("Elapsed Seconds", "%.6f", "%.6f"),
    _Column("Process Seconds", "%.6f"),
    _Column("Run Method Seconds", "%.6f"),
    _Column("Status", "%s", "LOAD_DONE"),
    _Column("Error Category", "%s"),
    _Column("Error Message", "%s"),
    _Column("Mini-batch Detail", "%s", "%s"),
)
_OF_USE = (
    "Peak Memory (MB)", "Read (MB)", "Minor Page Faults", "Major Page Faults", "Voluntary Context Switches",
    "Involuntary Context Switches",
)  # fmt: skip
"""The last columns. `cells_of_use` makes their cells, in this order."""
COLUMNS = (*(column.name for column in _COLUMNS), *_OF_USE)
HEADER = ",".join(COLUMNS) + "\n"
_TRY = ",".join(column.of_try for column in _COLUMNS) + ",%s\n"
"""The row of a try, for `%`, one value for each of these columns, and `cells_of_use`: a million rows are made of it."""
_LOADING_AND_TRY = ",".join(column.of_loading for column in _COLUMNS) + "," * len(_OF_USE) + "\n" + _TRY
"""The row of a try's loading, then that of the try; for the values of both."""
_TRY_WITHOUT_CPU = (
    ",".join("%.0s" if column.name == "Process Seconds" else column.of_try for column in _COLUMNS) + ",%s\n"
)
_WITHOUT_CPU = {_TRY: _TRY_WITHOUT_CPU, _LOADING_AND_TRY: _LOADING_AND_TRY.removesuffix(_TRY) + _TRY_WITHOUT_CPU}
"""These rows for tries beside which others ran in the same worker: the cell of its CPU time stays empty."""
_OF_LOADING = sum("%" in column.of_loading for column in _COLUMNS)
"""How many of these values come first, for the row of the loading."""

Key = tuple[str, ...]
"""The cells of `KEY`."""
KEY = ("Mini-batch Id", "Picked Count", "Process", "Process Start Time")
"""The columns that no two tries, and no two phases of workers, have in common. They stay the first ones, since `key_of`
reads them by their position."""
_LEFT_OF_MESSAGES = COLUMNS.index("Error Message")


def row_of_try(
    outcome: Outcome, key: tuple[int, int, str, str], succeeded: int, ending: tuple[str, str, str], *, detail: str,
    used: str, has_loaded: bool,
) -> str:  # fmt: skip
    """The row of a try, below that of its loading if it has loaded.

    Args:
        key: the values of `KEY`.
        ending: its status, and the cells of its error: category and message.
        detail: a cell.
        used: `cells_of_use`.
    """
    number, picked, process, start = key
    status, category, message = ending
    items, process_s = outcome.items, outcome.process_s
    values = (
        number, picked, process, start, items, outcome.load_s, detail,
        number, picked, process, start, items, succeeded, items - succeeded, outcome.elapsed_s, process_s,
        outcome.run_s, status, category, message, detail, used,
    )  # fmt: skip
    row = _LOADING_AND_TRY if has_loaded else _TRY
    if process_s < 0:
        row = _WITHOUT_CPU[row]
    return row % (values if has_loaded else values[_OF_LOADING:])


def row_of_part(
    part: PartTry, key: tuple[int, int, str, str], ending: tuple[str, str, str], *, detail: str, used: str
) -> str:
    """The row of a call of run() for a part of a mini-batch; the arguments are as for `row_of_try`."""
    succeeded = 0 if part.failure is not None else part.items
    return _TRY % (
        *key, part.items, succeeded, part.items - succeeded, part.run_s, 0.0, part.run_s, *ending, detail, used,
    )  # fmt: skip


def cells_of_use(use: Use, cache: dict[Use, str]) -> str:
    """The last cells of a try, joined; what is unknown is empty. Some are remembered in `cache`."""
    peak, read = use.peak_bytes, use.read_bytes
    peak_mb = f"{peak / _MB:.1f}" if peak else ""
    read_mb = f"{read / _MB:.6f}" if read >= 0 else ""
    if len(cache) >= _MAX_KNOWN:
        cache.clear()
    counts = (use.minor_faults, use.major_faults, use.voluntary_switches, use.involuntary_switches)
    cache[use] = cells = ",".join((peak_mb, read_mb, *(str(count) if count >= 0 else "" for count in counts)))
    return cells


def row_of(cells: Mapping[str, str]) -> str:
    """A row with these cells by the names of their columns, and all others empty.

    Raises:
        ValueError: there is no column of such a name.
    """
    row = [""] * len(COLUMNS)
    for name, cell in cells.items():
        row[COLUMNS.index(name)] = cell
    return ",".join(row) + "\n"


def below(header: Sequence[str], rows: str) -> str:
    """These rows for a file that has another header, as of another release: without the columns that it lacks."""
    text = io.StringIO()
    writer = csv.DictWriter(text, header, extrasaction="ignore", lineterminator="\n")
    writer.writerows(csv.DictReader(io.StringIO(rows, newline=""), COLUMNS))
    return text.getvalue()


def cells_of(header: Sequence[str], *names: str) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """A function that returns the cells of these columns, two or more, of a row below this header.

    It raises IndexError for a row that has not all of them.

    Raises:
        ValueError: the header has no such column.
    """
    return itemgetter(*map(header.index, names))


_key_of = cells_of(COLUMNS, *KEY)


def key_of(line: str) -> Key:
    """The key of a row, which need not be complete after it. Raises IndexError: the key itself isn't."""
    return _key_of(line.split(",", _LEFT_OF_MESSAGES)[:-1])
