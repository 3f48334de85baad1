"""The plan of an input: how it is cut and read, in one record, created when the job begins and frozen in the job
folder.

The master cuts by it and the workers read by it, so a change of an MLTable file while its job runs has no effect.
`inputs.json` is a list of these records, in the order of `input_data`; it is JSON because a worker has only the
standard library.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
from isal.isal_zlib import crc32

from parallelrun_core.durable_files import write_once
from parallelrun_core.errors import CorruptLog, InvalidInput, Problem
from parallelrun_core.layout import INPUTS, Layout
from parallelrun_core.mltable.document import FILE_NAME as TABLE_FILE
from parallelrun_core.mltable.document import MLTable, TableSource, load_mltable
from parallelrun_core.mltable.formats import read_steps, step_for
from parallelrun_core.mltable.partition_format import PartitionFormat, parse_partition_format
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.mltable.steps import (
    AnyStep,
    ExtractColumns,
    KeepColumns,
    RowStep,
    Skip,
    Take,
    TakeRandomSample,
    parse_steps,
)
from parallelrun_core.problems import At, Problems
from parallelrun_core.spec import JobSpec, load_document
from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of

FILES: Final = "files"
"""The kind of an input that is a list of files, and no table."""
PANDAS: Final = "pandas"
FORMAT_LIBRARIES: Final[dict[str, tuple[str, ...]]] = {
    PANDAS: (),
    "arrow": ("pyarrow",),
    "polars": ("pyarrow", "polars"),
    "pandas_pyarrow": ("pyarrow",),
}
"""The libraries which a worker needs, besides those of the read step, for each form of a table's rows."""
_FOR_SHUFFLES: Final = ("duckdb", "pyarrow")
_PATHS: Final = re.compile(rb"paths['\"]?\s*:")
_MAX_TABLE_BYTES: Final = 1 << 20
"""A larger file is no MLTable: `load_document` refuses it, too."""

_CRC: Final = "crc32"


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


def _tail(steps: list[RowStep]) -> int:
    counts = [number for number, step in enumerate(steps) if step.counts_rows]
    drops = [number for number, step in enumerate(steps) if not step.keeps_rows and not step.counts_rows]
    return counts[0] if counts and drops and counts[-1] > drops[0] else len(steps)


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


def plan_inputs(spec: JobSpec, rule: PathRule | None = None, *, fetches: bool = True) -> list[InputPlan]:
    """The plans of a job's inputs. Reads MLTable files, as far as the rule allows it, and no data.

    Args:
        fetches: whether servers that a user names may be asked for anything; otherwise inputs are left out of which
            too little is known without that, and of the others it isn't known whether there is anything.

    Raises:
        InvalidInput: with one problem for each wrong place, in the job spec or in an MLTable file.
    """
    problems: list[Problem] = []
    plans = []
    for name, data_input in spec.data_inputs():
        if not fetches and is_url(data_input.path) and data_input.type == "mltable":
            continue
        keys = list(spec.partition_keys)
        try:
            plan = plan_input(name, data_input, keys, unit=spec.size.unit, rule=rule, fetches=fetches)
            _set_format(plan, spec.mini_batch_format)
            plans.append(plan)
        except InvalidInput as error:
            problems += error.problems
    Problems(problems).check()
    kinds = {plan.is_table for plan in plans}
    if len(kinds) > 1:
        raise InvalidInput.at("/input_data", "inputs must be all files or all tables")
    return plans


def plan_input(
    name: str,
    data_input: Input,
    keys: list[str],
    *,
    unit: str = "plain",
    rule: PathRule | None = None,
    fetches: bool = True,
) -> InputPlan:
    """The plan of one input.

    Args:
        unit: that of the mini-batch size (`MiniBatchSize.unit`).
        fetches: as of `plan_inputs`.

    Raises:
        InvalidInput: with one problem for each wrong place.
    """
    pointer = f"/inputs/{name}"
    plan = InputPlan(
        name=name,
        path=data_input.path,
        root=_root(data_input.path, is_one_file=data_input.type == "uri_file"),
        keys=keys,
        hidden_files=data_input.hidden_files, litter_files=data_input.litter_files,
    )  # fmt: skip
    problems = Problems()
    steps = parse_steps(data_input.transformations, At(f"{pointer}/transformations", problems))
    problems.check()
    if data_input.type == "mltable" and not _is_source(data_input.path, steps, pointer, rule):
        table = _load(data_input.path, pointer, rule, fetches=fetches)
        plan.sources, plan.root, plan.left_out = table.sources, os.path.dirname(table.file), table.file
        steps = [*table.steps, *steps]
    _sort_steps(plan, steps, pointer, on_mismatch=data_input.on_mismatch)
    plan.is_staged = _is_staged(plan, f"{pointer}/path") and (plan.is_table or data_input.mode != "direct")
    plan.is_copied = data_input.mode in ("download", "eval_download") and not plan.is_table and not plan.is_staged
    if unit == "auto" and plan.is_table:
        problem = f"auto applies to lists of files, and input {name!r} is a table"
        hint = "give bytes or rows, such as 1mb or rows:500; `parallelrun tune JOB.yml` tries some, and says which"
        raise InvalidInput.at("/mini_batch_size", problem, hint)
    if unit not in ("plain", "auto") and not plan.is_table:
        problem = f"{unit} apply to tables, and input {name!r} is a list of files"
        hint = "give the number of files, as in: mini_batch_size: 10; or say how the files are read as a table"
        raise InvalidInput.at("/mini_batch_size", problem, hint)
    _check_keys(plan)
    return plan


def _is_staged(plan: InputPlan, pointer: str) -> bool:
    """Return whether it is on no disk which the nodes share.

    Raises:
        InvalidInput: some are and some aren't.
    """
    elsewhere = {is_url(source.path) for source in plan.sources} or {is_url(plan.path)}
    if len(elsewhere) > 1:
        raise InvalidInput.at(pointer, "it names both local files and URLs", "make two inputs of them")
    return True in elsewhere


def _is_source(path: str, steps: list[AnyStep], pointer: str, rule: PathRule | None) -> bool:
    """Return whether the path of an input of type mltable has the data themselves: files, which the job says how to
    read.

    Raises:
        InvalidInput: such files, and no step of the job reads them.
    """
    storage = storage_of(path)
    name, step = os.path.basename(path), step_for(path)
    try:
        if name == TABLE_FILE or storage.is_folder(path):
            return False
    except OSError:
        return False  # the MLTable can't be read, either
    is_read = any(isinstance(each, ReadStep) for each in steps)
    is_data = bool(step or storage.split(path)[1]) or (
        is_read and not name.endswith((".yml", ".yaml")) and not _is_mltable(path, rule)
    )
    if is_data and not is_read:
        message = f"{path!r} is not an MLTable, which is a folder with a file {TABLE_FILE}"
        hint = f"say how these data are read, as in: transformations: [{step or 'read_delimited'}]"
        raise InvalidInput.at(f"{pointer}/path", message, hint)
    return is_data


def _is_mltable(path: str, rule: PathRule | None) -> bool:
    """Return whether a file whose name doesn't tell is an MLTable by its content."""
    try:
        with storage_of(path).open(path, rule) as opened:
            text = opened.read(_MAX_TABLE_BYTES + 1)
        if not _PATHS.search(text):  # spares most data the slow parser
            return False
        document = load_document(text)
    except StoreAway:
        raise
    except (OSError, InvalidInput):
        return False
    return isinstance(document, dict) and "paths" in document


def _load(path: str, pointer: str, rule: PathRule | None, *, fetches: bool) -> MLTable:
    try:
        return load_mltable(path, rule, fetches=fetches)
    except InvalidInput as error:
        where = f"{pointer}/path"
        raise InvalidInput(
            problems=tuple(
                Problem(
                    pointer=where,
                    message=f"MLTable, {problem.pointer}: {problem.message}" if problem.pointer else problem.message,
                    hint=problem.hint,
                )
                for problem in error.problems
            )
        ) from error


def _sort_steps(plan: InputPlan, steps: list[AnyStep], pointer: str, *, on_mismatch: str) -> None:
    read = [number for number, step in enumerate(steps) if isinstance(step, ReadStep)]
    extract = [number for number, step in enumerate(steps) if isinstance(step, ExtractColumns)]
    if len(read) > 1 or len(extract) > 1:
        problem = "the MLTable file and transformations must not both have a read step, or both a partition format"
        raise InvalidInput.at(f"{pointer}/transformations", problem)
    for step in steps:
        if isinstance(step, ReadStep):
            plan.read, plan.kind = step.with_on_mismatch(on_mismatch), step.kind()
        elif isinstance(step, ExtractColumns):
            plan.partition = parse_partition_format(step.partition_format)
    plan.extracts_first = bool(read and extract) and extract[0] < read[0]
    plan.steps = [
        _seeded(step)
        for step in steps
        if not isinstance(step, ReadStep) and not (plan.extracts_first and isinstance(step, ExtractColumns))
    ]
    if not plan.is_table:
        wrong = [step.name() for step in plan.steps if not isinstance(step, ExtractColumns)]
        if wrong:
            hint = "add a read step before it, as in: - read_delimited"
            raise InvalidInput.at(f"{pointer}/transformations", f"{wrong[0]} applies to the rows of a table", hint)
    if plan.read is not None and plan.read.has_dict_rows:
        others = [step.name() for step in steps if not isinstance(step, ReadStep | Skip | Take)]
        if others or plan.keys:
            hint = "leave out rows_as: dicts, or do in run() what it does"
            message = f"{others[0] if others else 'partition_keys'} applies to DataFrames, and run() gets dicts"
            raise InvalidInput.at(f"{pointer}/transformations", message, hint)
    plan.freeze_answers()


def _set_format(plan: InputPlan, mini_batch_format: str) -> None:
    """Set the form of a table's rows.

    Raises:
        InvalidInput: there is no table.
    """
    if mini_batch_format == PANDAS:
        return
    if plan.read is None:
        hint = "leave it out, or say how the files are read as a table, as in: transformations: [read_parquet]"
        message = f"{mini_batch_format} is a form of tables, and input {plan.name!r} is a list of files"
        raise InvalidInput.at("/mini_batch_format", message, hint)
    if plan.read.has_dict_rows:
        message = f"run() gets dicts of input {plan.name!r}, and no table"
        raise InvalidInput.at("/mini_batch_format", message, "leave it out, or leave out rows_as: dicts")
    plan.mini_batch_format = mini_batch_format
    plan.freeze_answers()


def _seeded(step: RowStep) -> RowStep:
    if isinstance(step, TakeRandomSample) and step.seed is None:
        return msgspec.structs.replace(step, seed=secrets.randbits(32))
    return step


def _check_keys(plan: InputPlan) -> None:
    if not plan.keys:
        return
    offered = plan.partition.names if plan.partition else []
    invalid = [key for key in plan.keys if key not in offered]
    if not invalid:
        return
    if plan.is_table:
        needed = dict.fromkeys((*_FOR_SHUFFLES, *plan.libraries))
        missing = [name for name in needed if find_spec(name) is None]
        if not missing:
            plan.is_shuffled = True
            return
        hint = f"install {' and '.join(missing)} there: pip install '.[tables]' in the checkout"
        message = f"grouping rows by {', '.join(invalid)} needs libraries that are not installed on the server"
        raise InvalidInput.at("/partition_keys", message, hint)
    if plan.partition is None:
        hint = "keys are parts of the files' paths: add the step extract_columns_from_partition_format"
        message = f"input {plan.name!r} has no partition format, so it has no keys"
    else:
        hint = f"its keys are {', '.join(offered)}"
        message = f"invalid keys of input {plan.name!r}: {', '.join(invalid)}"
    raise InvalidInput.at("/partition_keys", message, hint)


def _root(path: str, *, is_one_file: bool = False) -> str:
    if is_url(path):  # without asking the store, so that the API can do this, too
        return os.path.dirname(path) if is_one_file else storage_of(path).split(path)[0]
    return path if storage_of(path).is_folder(path) else os.path.dirname(path)


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
    """A record with a checksum, as workers check it, too (`parallelrun_worker/tables/checked_json.py`)."""
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
