"""The plan of an input: how it is cut and read, in one record, created when the job begins and frozen in the job
folder.

The master cuts by it and the workers read by it, so a change of an MLTable file while its job runs has no effect.
`inputs.json` is a list of these records, in the order of `input_data`; it is JSON because a worker has only the
standard library.
"""

from __future__ import annotations

import os
import re
import secrets
from importlib.util import find_spec
from typing import Final

import msgspec

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.mltable.document import FILE_NAME as TABLE_FILE
from parallelrun_core.mltable.document import MLTable, load_mltable
from parallelrun_core.mltable.formats import step_for
from parallelrun_core.mltable.input_plan import OBJECT, PANDAS, InputPlan
from parallelrun_core.mltable.partition_format import parse_partition_format
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.mltable.steps import (
    AnyStep,
    ExtractColumns,
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
from parallelrun_core.untrusted.document import MAX_DOCUMENT_BYTES

_FOR_SHUFFLES: Final = ("duckdb", "pyarrow")
_PATHS: Final = re.compile(rb"paths['\"]?\s*:")


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
            plan.string_dtype = spec.string_dtype or OBJECT
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
        hint = "give the number of files: mini_batch_size: 10; or read a table, as by transformations: [read_delimited]"
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
            text = opened.read(MAX_DOCUMENT_BYTES + 1)  # a larger file is no MLTable
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
