"""Values in the paths of a table's files (`partition_format`): columns of its rows, and keys of its groups."""

import re
from typing import Any

from parallelrun_worker.tables.conversion import as_dates, convert
from parallelrun_worker.tables.inference import WHOLE, Kind, infer_exactly, infer_kind, oddity
from parallelrun_worker.tables.steps import EXTRACT
from parallelrun_worker.tables.table_format import UnreadableFile
from parallelrun_worker.tables.text_dtype import as_texts, text_dtype_of
from parallelrun_worker.tables.values import Values


class PathKeys:
    """The named parts of the paths of one input.

    Args:
        plan: its record in `inputs.json`.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._known_kinds: dict[str, Kind] | None = None
        self._keeps = plan["read"].get("on_mismatch") == "keep"
        """A part that is no number stays a text in a column of numbers."""
        fits_or_fails = any(step.get("on_mismatch") == "error" for step in plan["steps"] if step["step"] == EXTRACT)
        self._is_strict = plan["extracts_first"] or fits_or_fails
        """A path that doesn't fit the format is an error, and columns need no column of paths."""
        self._are_filled = self._is_strict or plan["read"].get("include_path_column") or bool(plan.get("keys"))

    def values_of(self, path: str) -> dict[str, str] | None:
        """The named parts of a path; None when it doesn't fit the partition format."""
        partition = self._plan["partition"]
        root = self._plan["root"].rstrip("/") + "/"
        below = path[len(root) :] if path.startswith(root) else path
        match = re.search(partition["pattern"], below, re.DOTALL)
        if match is None and partition["starts_above"]:
            match = re.search(partition["pattern"], path, re.DOTALL)
        return dict(zip(partition["names"], match.groups(), strict=True)) if match else None

    def add_to(self, frame: Any, path: str, *, in_front: bool) -> Any:
        """The frame with the columns that the parts of this path become.

        Args:
            in_front: the format comes before the step that reads; these columns then come first, with inferred types.

        Raises:
            ValueError: the path doesn't fit the format, or the data have a column of such a name.
        """
        partition = self._plan["partition"]
        values = self.values_of(path)
        if values is None and self._is_strict:
            raise UnreadableFile(f"{path}: the path doesn't fit the partition format")
        names = sorted(partition["names"], key=lambda name: name == partition["date"])  # the date comes last
        columns = {}
        for name in names:
            if name in frame.columns:
                raise ValueError(f"the partition format names the column {name!r}, which the data have as well")
            value = values[name] if values is not None and self._are_filled else None
            columns[name] = self._column(name, value, frame.index, in_front=in_front)
        order = [*columns, *frame.columns] if in_front else [*frame.columns, *columns]
        return type(frame)(
            {name: columns[name] if name in columns else frame[name] for name in order}, index=frame.index
        )

    def _column(self, name: str, value: str | None, index: Any, *, in_front: bool) -> Any:
        import pandas as pd

        is_date = name == self._plan["partition"]["date"]
        one = pd.Series([value], dtype=object)
        if value is not None and (is_date or in_front):
            one = self._date(value) if is_date else self._read(name, value)[0]
        column = one.repeat(len(index)).set_axis(index)
        is_text = not is_date and (not in_front or self.kinds()[name]["kind"] == "string")
        return as_texts(column, text_dtype_of(self._plan)) if is_text else column

    def _date(self, text: str) -> Any:
        """The date in a path as a column of one row; its text, if it is none and the table keeps such values."""
        import pandas as pd

        column = pd.Series([text], dtype=object)
        dates = as_dates(column, {"formats": [self._plan["partition"]["date_format"]]})
        return column if self._keeps and dates.isna().all() else dates

    def _read(self, name: str, text: str) -> tuple[Any, str]:
        """A part of a path as a column of its type, of one row; and what it became there, if it isn't what it was."""
        import pandas as pd

        read, kind = self._plan["read"], self.kinds()[name]
        if not read.get("has_exact_integers"):
            return convert(pd.Series([text], dtype=object), kind), ""
        values = Values("keep" if self._keeps else "null", is_exact=read.get("inference") == "exact")
        column = values.of_column(name, kind).column([text])
        return column, ("null" if column.isna().all() else str(column.iloc[0])) if values.found else ""

    def kinds(self) -> dict[str, Kind]:
        """Return what the parts of the paths are, if the format comes before the step that reads (reference §4.4)."""
        if self._known_kinds is None:
            sample = [values for path in self._plan["sample"] if (values := self.values_of(path)) is not None]
            names = self._plan["partition"]["names"]
            infer = infer_exactly if self._plan["read"].get("inference") == "exact" else infer_kind
            self._known_kinds = {name: infer([values[name] for values in sample]) for name in names}
        return self._known_kinds

    def changed(self, path: str) -> dict[str, tuple[str, str]]:
        """The parts of a path that columns have otherwise than they stand there, each with what it became."""
        values, date = self.values_of(path) or {}, self._plan["partition"]["date"]
        became = {}
        if self._are_filled and date in values:
            became[date] = values[date], "null" if self._date(values[date]).isna().all() else ""
        if self._plan["extracts_first"]:
            became |= {name: (text, self._read(name, text)[1]) for name, text in values.items() if name != date}
        return {name: each for name, each in became.items() if each[1]}

    def typed(self, values: list[str | None]) -> dict[str, Any]:
        """The values of a group's keys: texts, but numbers if the format comes before the step that reads.

        A text that turns up among numbers stays a text. In the column it is null (reference §4.3), but here null would
        make the groups of two such texts look alike.
        """
        partition = self._plan["partition"] if self._plan["extracts_first"] else {"names": [], "date": ""}
        numbers = {
            name for name in partition["names"] if name != partition["date"] and self.kinds()[name]["kind"] == "int"
        }
        return {
            name: self._number_or_text(value) if value is not None and name in numbers else value
            for name, value in zip(self._plan["keys"], values, strict=False)
        }

    def _number_or_text(self, value: str) -> int | str:
        if not WHOLE.fullmatch(value) or (self._plan["read"].get("inference") == "exact" and oddity(value)):
            return value
        return int(value)
