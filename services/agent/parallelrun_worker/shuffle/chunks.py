"""One piece of a table for the shuffle: the records that the table's steps leave, and their keys."""

from typing import Any

from parallelrun_worker.shuffle.keys import KeyTexts, joined, sortable
from parallelrun_worker.shuffle.sorting import Keyed
from parallelrun_worker.tables import grouped, parquet
from parallelrun_worker.tables.steps import apply_step
from parallelrun_worker.tables.table import KEEP_ROWS, Piece, Table, salt_of


class Records:
    """The records of one piece; some of them can be read again by themselves."""

    def __init__(self, table: Table, piece: Piece, *, is_text: bool) -> None:
        self._table = table
        self._path = piece[0]
        self.header: list[str | None] = []
        self._arrow: Any = None
        if is_text:
            data, self.header = table.text(piece)
            self._lines = table.records(data)
        else:
            self._arrow = table.arrow(piece)

    def __len__(self) -> int:
        return len(self._lines) if self._arrow is None else int(self._arrow.num_rows)

    def frame(self, wanted: list[int] | None = None) -> Any:
        """All of them, or these, as a DataFrame with an index from 0."""
        if self._arrow is not None:
            rows = self._arrow if wanted is None else self._arrow.take(wanted)
            return self._table.frame_of_arrow(rows, self._path)
        lines = self._lines if wanted is None else [self._lines[at] for at in wanted]
        found = self._table.frame_of_text(b"".join(lines), self.header)
        if len(found) != len(lines):
            raise ValueError(f"{len(lines)} records were read as {len(found)} rows")
        return found

    def keyed(self, wanted: list[int], keys: list[bytes], source: int) -> Keyed:
        """These, with their keys: text record by record, rows of Parquet files together if they have the same key."""
        if self._arrow is None:
            return Keyed(keys, [source] * len(keys), [self._lines[at] for at in wanted])
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = self._arrow.take([wanted[at] for at in order])
        found = Keyed([], [], [])
        start = 0
        for end in range(1, len(order) + 1):
            if end == len(order) or keys[order[end]] != keys[order[start]]:
                found.keys.append(keys[order[start]])
                found.sources.append(source)
                found.records.append(parquet.write_stream(rows.slice(start, end - start)))
                start = end
        return found


class ChunkReader:
    """Reads the pieces of one table, one after another.

    Args:
        plan: its record in `inputs.json`.
        schema_path: where its columns are frozen.
    """

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        self._plan = plan
        self._table = Table(plan, schema_path)
        self._is_text = plan["kind"] in ("delimited", "json_lines")
        self._texts = KeyTexts()
        self._has_rows = False
        self._tail = plan["steps"][self._table.tail :]
        self._rest = [step.get("rows", 0) for step in self._tail]
        """How many rows each `take` and `skip` still has to take or skip."""
        self._converts = any(step["step"] == "convert_column_types" for step in plan["steps"])
        read = plan["read"]
        self._needs_source = (
            plan["kind"] == "delta_lake"
            or plan["partition"] is not None
            or read["include_path_column"]
            or read.get("header") == "all_files_different_headers"
        )
        self.sources: list[grouped.Source] = []

    def read(self, piece: Piece) -> Keyed:
        """The records of one piece that the table's steps leave.

        Raises:
            OSError, ValueError, ImportError: it can't be read, or has no such column.
        """
        path = piece[0]
        with self._table.naming(path):
            records = Records(self._table, piece, is_text=self._is_text)
            frame = records.frame()
            steps = self._plan["steps"][: self._table.tail]
            frame = self._counted(self._table.dressed(frame, path, steps, salt_of(piece)), path, piece)
            if not len(frame):
                return Keyed([], [], [])
            keys = joined([self._values(frame, name, path, records) for name in self._plan["keys"]])
            return records.keyed(frame.index.tolist(), keys, self._source(path, records.header))

    def _counted(self, frame: Any, path: str, piece: Piece) -> Any:
        """Apply the steps that count rows which are known only after reading, and the steps after them."""
        for number, step in enumerate(self._tail):
            if step["step"] == "take":
                frame = frame.iloc[: self._rest[number]]
                self._rest[number] -= len(frame)
            elif step["step"] == "skip":
                skipped = min(len(frame), self._rest[number])
                frame = frame.iloc[skipped:]
                self._rest[number] -= skipped
            elif step["step"].startswith("extract_"):
                frame = self._table.path_keys.add_to(frame, path, in_front=False)
            else:
                frame = apply_step(frame, step, salt_of(piece))
        return frame

    def _values(self, frame: Any, name: str, path: str, records: Records) -> list[bytes]:
        """The values of one key, one for each row."""
        partition = self._plan["partition"]
        if partition is not None and name in partition["names"]:
            found = self._table.path_keys.values_of(path)
            return [sortable(None if found is None else found[name])] * len(frame)
        if name not in frame.columns:
            if not self._has_rows:
                columns = ", ".join(map(str, frame.columns))
                raise ValueError(f"there is no column {name!r} to group by; the table has {columns}")
            return [sortable(None)] * len(frame)
        self._has_rows = True
        values = self._texts.of_column(frame[name], name)
        missing = frame[name].isna()
        if missing.any() and not missing.all() and (frame[name].dtype.kind == "f" or self._converts):
            # Read them again by themselves: beside a null, whole numbers are floats and lose digits.
            places = [at for at, is_missing in enumerate(missing.tolist()) if not is_missing]
            labels = frame.index.tolist()
            steps = [step for step in self._plan["steps"] if step["step"] in KEEP_ROWS]
            full = self._table.dressed(records.frame([labels[at] for at in places]), path, steps, [])
            for at, value in zip(places, self._texts.of_column(full[name], name), strict=True):
                values[at] = value
        return values

    def _source(self, path: str, header: list[str | None]) -> int:
        if not self._needs_source:
            return -1
        if not self.sources or self.sources[-1][0] != path:
            self.sources.append((path, header))
        return len(self.sources) - 1
