"""The plan of an input, and its record in the job folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
from isal.isal_zlib import crc32

from parallelrun_core.durable_files import write_once
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.layout import INPUTS, Layout
from parallelrun_core.mltable.document import TableSource
from parallelrun_core.mltable.formats import read_steps
from parallelrun_core.mltable.partition_format import PartitionFormat
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.mltable.steps import ExtractColumns, KeepColumns, RowStep, Skip, Take

FILES: Final = "files"
"""The kind of an input that is a list of files, and no table."""
PANDAS: Final = "pandas"
OBJECT: Final = "object"
_CRC: Final = "crc32"
FORMAT_LIBRARIES: Final[dict[str, tuple[str, ...]]] = {
    PANDAS: (),
    "arrow": ("pyarrow",),
    "polars": ("pyarrow", "polars"),
    "pandas_pyarrow": ("pyarrow",),
}
"""The libraries which a worker needs, besides those of the read step, for each form of a table's rows."""


class InputPlan(msgspec.Struct, kw_only=True):
    """An input that is cut into mini-batches."""

    name: str
    kind: str = FILES
    """`files`, or a kind of table: a module of `formats`."""
    is_copied: bool = False
    """Files are copied to the node's own disk before run() (modes download and eval_download)."""
    is_staged: bool = False
    """Files, or the parts of them that a mini-batch needs, are elsewhere, and brought to the node before run(). Not
    files in mode direct, which gives their URLs."""
    root: str = ""
    """The folder below which partition formats are matched: that of the MLTable file, or the input itself."""
    sources: list[TableSource] = []
    """The paths to list, in order; empty: the input's path itself, which may be a glob pattern."""
    path: str = ""
    left_out: str = ""
    """A file that is not data: the MLTable itself."""
    hidden_files: str = ""
    """The handling of hidden files, as in `spec.fields.Input`; empty: an earlier release has made the plan, and left
    nothing out."""
    litter_files: str = ""
    """Likewise."""
    read: ReadStep | None = None
    """The read step of a table."""
    steps: list[RowStep] = []
    """The steps after it."""
    partition: PartitionFormat | None = None
    extracts_first: bool = False
    """The partition format comes before the read step: its columns come first, with types of their own."""
    keys: list[str] = []
    """The job's partition_keys."""
    is_shuffled: bool = False
    """True if not all keys are parts of the paths: the rows are grouped by them before anything is cut."""
    sample: list[str] = []
    """The first files, from which the types of a text table are inferred."""
    first_with_text: str | None = None
    """The first file of the sample that isn't empty, or an empty string; None: who reads them finds it out."""
    libraries: list[str] = []
    """The libraries that the workers must be able to import for it."""
    rows_wanted: tuple[int, int | None] | None = None
    """The first row and the end of the rows that `skip` and `take` leave; None: all, or the reader counts them."""
    mini_batch_format: str = PANDAS
    """The form in which run() gets rows of a table."""
    string_dtype: str = OBJECT
    """The dtype of its texts in pandas: `object`, as in jobs of earlier releases, or `pandas`, which that one makes."""
    tail: int | None = None
    """The first step before which the rows of all files must be together, since one of them counts rows that are known
    only once they are read; the number of steps if there is none."""
    keeping: list[int] = []
    """The steps that keep every row, by their positions."""

    @property
    def is_table(self) -> bool:
        return self.kind != FILES

    @property
    def is_indivisible(self) -> bool:
        """Return whether the table is one mini-batch, because of its `tail`."""
        return self.tail is not None and self.tail < len(self.steps)

    @property
    def needs_fitting_paths(self) -> bool:
        """Return whether a path that doesn't fit the partition format is an error."""
        steps = (step for step in self.steps if isinstance(step, ExtractColumns))
        return self.extracts_first or any(step.on_mismatch == "error" for step in steps)

    def columns_read(self, names: list[str]) -> list[str]:
        """Return which columns of a file with these the first steps leave: all, if they leave none."""
        columns = names
        for step in self.steps:
            if not isinstance(step, KeepColumns):
                break
            columns = step.left(columns)
        return columns or names

    def freeze_answers(self) -> None:
        """Put into the plan what follows from its steps: master and workers then have the same answers."""
        libraries = (
            (*self.read.libraries_needed, *FORMAT_LIBRARIES[self.mini_batch_format]) if self.read is not None else ()
        )
        self.libraries = [*dict.fromkeys(libraries)]
        self.keeping = [number for number, step in enumerate(self.steps) if step.keeps_rows]
        self.tail = _tail(self.steps)
        self.rows_wanted = None if self.is_indivisible else _rows_wanted(self.steps)


def _rows_wanted(steps: list[RowStep]) -> tuple[int, int | None] | None:
    first, end, is_counted = 0, None, False
    for step in steps:
        if isinstance(step, Skip):
            first += step.rows
        elif isinstance(step, Take):
            limit = first + step.rows
            end = limit if end is None else min(end, limit)
        elif not step.keeps_rows:
            break
        is_counted = is_counted or step.counts_rows
    return (first, end) if is_counted else None


def _tail(steps: list[RowStep]) -> int:
    counts = [number for number, step in enumerate(steps) if step.counts_rows]
    drops = [number for number, step in enumerate(steps) if not step.keeps_rows and not step.counts_rows]
    return counts[0] if counts and drops and counts[-1] > drops[0] else len(steps)


def as_json(plans: InputPlan | list[InputPlan]) -> bytes:
    """The form that workers read. A byte of a name that is not UTF-8 is a lone surrogate, which msgspec refuses."""
    return json.dumps(msgspec.to_builtins(plans), indent=1).encode()


def save_plans(folder: Path, plans: list[InputPlan]) -> list[InputPlan]:
    """Freeze the plans; returns those of an earlier leader if there are any."""
    try:
        records = [_with_crc(record) for record in msgspec.to_builtins(plans)]
        write_once(Layout(folder).inputs, json.dumps(records, indent=1).encode())
    except FileExistsError:
        return load_plans(folder) or plans
    return plans


def load_plans(folder: Path) -> list[InputPlan] | None:
    """The frozen record, or None before there is one.

    Raises:
        InvalidInput: it has a step that this release doesn't know.
        CorruptLog: it isn't what was written.
    """
    path = Layout(folder).inputs
    try:
        records = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CorruptLog(f"{path} can't be read: {error}") from error
    for record in records:
        crc = record.pop(_CRC, None)
        if crc is not None and crc != _with_crc(record)[_CRC]:
            raise CorruptLog(f"{path} can't be read: it isn't what was written")
    try:
        return [_plan_of(record) for record in records]
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{INPUTS} of the job is not one of this release: {error}") from error


def _with_crc(record: dict[str, Any]) -> dict[str, Any]:
    """A record with a checksum, as workers check it, too (`parallelrun_worker/tables/plan_records.py`)."""
    return {**record, _CRC: crc32(json.dumps(record, sort_keys=True).encode())}


def _plan_of(record: dict[str, Any]) -> InputPlan:
    read = record.pop("read", None) or None
    plan = msgspec.convert(record, type=InputPlan)
    if read is not None:
        step_names = read_steps()
        if read["step"] not in step_names:
            raise InvalidInput(f"input {plan.name!r} is read with {read['step']!r}, which this release doesn't know")
        plan.read = msgspec.convert(read, type=step_names[read["step"]])
        plan.kind = plan.read.kind()
    elif plan.is_table:
        raise InvalidInput(f"input {plan.name!r} is of the kind {plan.kind!r}, which this release doesn't know")
    if plan.tail is None:  # planned by a release that left this to each reader
        plan.freeze_answers()
    return plan
