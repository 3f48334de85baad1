"""Fields that a document sets and that have no effect, because of other fields of it: each gets a note, none is passed
over in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from parallelrun_core.spec.data_defaults import AZURE, OWN
from parallelrun_core.spec.expressions import is_expression
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.job import JobSpec
from parallelrun_core.wire.row_formats import row_format, row_formats

_OF_ROWS: Final = (
    "append_row_file_name", "append_row_separator", "append_row_dataframe_header", "append_row_safe_output",
    "append_row_columns", "append_row_objects", "empty_output",
)  # fmt: skip
_OF_DATA: Final = ("input_data", "mini_batch_size", "mini_batch_format", "partition_keys")
_OF_TABLES: Final = ("hidden_files", "on_mismatch")


def unused_fields(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Return the fields that have no effect, each with the reason.

    A field with the value that it has anyway is none of them.

    Args:
        spec: as it was submitted, before defaults of its form are put into it.
    """
    if spec.command:
        if spec.fail_fast:
            yield "fail_fast", "a command is a single mini-batch"
        return
    folders = spec.environment_variables.get("PYTHONPATH", "").split(os.pathsep)
    if not all(os.path.isabs(folder) or is_expression(folder) for folder in folders if folder):
        reason = "it names a folder below the working folder, of which each worker has its own, and which is empty"
        yield "environment_variables/PYTHONPATH", reason
    yield from _of_rows(spec)
    yield from _of_data(spec)


def _of_rows(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if not spec.writes_rows:
        yield from ((name, "with output_action: summary_only no rows are kept") for name in _set(spec, _OF_ROWS))
        return
    file_name = spec.append_row_file_name
    if spec.append_row_to and (output := spec.outputs[spec.append_row_to]).type == "uri_file":
        file_name = output.path or output.file_name or spec.append_row_to
        for name in _set(spec, ("append_row_file_name",)):
            yield name, f"the rows go to the file that the output {spec.append_row_to!r} is"
    formats = row_formats()
    row_options = formats[row_format(file_name)].options
    others = dict.fromkeys(name for each in formats.values() for name in each.options if name not in row_options)
    for name in _set(spec, (*others,)):
        yield name, f"the rows go to {file_name.rpartition('/')[2]!r}, whose format has no such option"


def _of_data(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if spec.rank_mini_batch_count:
        for name in _set(spec, _OF_DATA):
            yield name, "with rank_mini_batch_count, no input is cut into mini-batches"
        if spec.on_failure == "isolate":
            yield "on_failure", "with rank_mini_batch_count, a mini-batch has no items that could be run apart"
        return
    if not spec.reads_tables:
        for name in _set(spec, ("mini_batch_format",)):
            yield name, "no input is a table: run() gets the paths of files"
    cut = {name for name, _ in spec.data_inputs()}
    for name, each in spec.input_paths():
        fields = ("litter_files", *_OF_TABLES) if name not in cut else () if spec.reads_tables else _OF_TABLES
        why = "it is for tables, and this input is a list of files" if name in cut else "this input isn't cut"
        yield from ((f"inputs/{name}/{field}", why) for field in _set_of_input(each, fields))


def _set(spec: JobSpec, names: tuple[str, ...]) -> Iterator[str]:
    """Return those of these fields that have another value than they get when they are left out."""
    for name in names:
        value: Any = getattr(spec, name)
        defaults = (JobSpec.model_fields[name].default, OWN.rows.get(name), AZURE.rows.get(name))
        is_of_its_own = name in spec.model_fields_set and value not in defaults
        # The only input is written into `input_data` by the spec itself.
        if is_of_its_own and (name != "input_data" or len(list(spec.input_paths())) != len(value)):
            yield name


def _set_of_input(job_input: Input, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        defaults = ("", OWN.inputs.get(name), AZURE.inputs.get(name))
        if name in job_input.model_fields_set and getattr(job_input, name) not in defaults:
            yield name
