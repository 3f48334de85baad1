"""Defaults for each form of document: put into the job spec when it is read.

From then on nothing asks which form a job came in. A spec of an earlier release lacks these fields, and keeps what its
jobs had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.job import JobSpec


class DataDefaults(NamedTuple):
    """The values of a form of document in fields that it leaves empty."""

    inputs: Mapping[str, str]
    """Defaults of each input that the job cuts."""
    tables: Mapping[str, str]
    """Defaults of a job whose inputs are tables."""
    rows: Mapping[str, str]
    """Defaults of a job that writes rows."""
    on_failure: str
    """Defaults of a job whose mini-batches are cut by number or size."""
    fail_fast: bool
    """Defaults of a job without a threshold."""


OWN: Final = DataDefaults(
    inputs={"hidden_files": "skip", "litter_files": "skip"},
    tables={"string_dtype": "pandas"},
    rows={"append_row_columns": "name", "append_row_objects": "refuse", "empty_output": "complete"},
    on_failure="isolate",
    fail_fast=True,
)
AZURE: Final = DataDefaults(
    inputs={"hidden_files": "skip", "litter_files": "warn"},
    tables={"string_dtype": "object"},
    rows={"append_row_columns": "position", "append_row_objects": "text", "empty_output": "fail"},
    on_failure="mini_batch",
    fail_fast=False,
)
"""A list of files has every file there (reference §4.1), so nothing is left out of one. Without a row, the reference
lets a job fail (§3.5); it doesn't compare the columns of DataFrames (§7)."""


def with_data_defaults(spec: JobSpec, defaults: DataDefaults) -> JobSpec:
    """Return the spec with these values in the fields that are empty.

    An MLTable file is a document of Azure ML wherever it is named.

    Raises:
        InvalidInput: items are to be run apart of mini-batches that one worker runs at the same time.
    """
    if spec.on_failure == "isolate" and spec.mini_batches_in_flight != 1:
        raise InvalidInput.at(
            "/on_failure",
            "with several mini_batches_in_flight, nobody knows which of them has ended a worker, so items can't be run "
            "apart",
            "leave it out, and let run() return an ItemError for an item that fails",
        )
    inputs = {name: _complete(data_input, defaults.inputs) for name, data_input in spec.data_inputs()}
    changes: dict[str, Any] = {"inputs": {**spec.inputs, **inputs}} if inputs else {}
    if spec.reads_tables:
        table_defaults = AZURE.tables if _has_mltable(spec) else defaults.tables
        changes |= {name: value for name, value in table_defaults.items() if not getattr(spec, name)}
    if spec.writes_rows:
        changes |= {name: value for name, value in defaults.rows.items() if not getattr(spec, name)}
    if not spec.on_failure:
        changes["on_failure"] = _on_failure(spec, defaults.on_failure)
    if spec.fail_fast is None and not spec.command:
        changes["fail_fast"] = defaults.fail_fast and not spec.has_threshold
    return spec.model_copy(update=changes) if changes else spec


def _on_failure(spec: JobSpec, default: str) -> str:
    """Return what becomes of a mini-batch that fails for good.

    What is cut by number or size is run apart. A mini-batch of a partition key is a whole, and one of several in flight
    can't be.
    """
    is_whole = spec.partition_keys or spec.rank_mini_batch_count or spec.command or spec.mini_batches_in_flight != 1
    return AZURE.on_failure if is_whole or _has_mltable(spec) else default


def _has_mltable(spec: JobSpec) -> bool:
    return any(each.type == "mltable" for _, each in spec.data_inputs())


def _complete(data_input: Input, defaults: Mapping[str, str]) -> Input:
    defaults = AZURE.inputs if data_input.type == "mltable" else defaults
    missing = {name: value for name, value in defaults.items() if not getattr(data_input, name)}
    return data_input.model_copy(update=missing) if missing else data_input
