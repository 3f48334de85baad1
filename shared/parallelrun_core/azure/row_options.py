"""Options of the engine that say how inputs are read become fields of these inputs: `--amlbi_file_format jsonl`,
`--amlbi_dataframe_mixed_types true`, and with them `--amlbi_mini_batch_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from parallelrun_core.azure.findings import Findings
from parallelrun_core.azure.options import FILE_FORMAT, MIXED_TYPES
from parallelrun_core.mltable.formats.json_lines import DICTS
from parallelrun_core.spec.expressions import bound_name, same_name
from parallelrun_core.spec.fields import MiniBatchSize


def field_changes(
    fields: Mapping[str, Any], settings: Mapping[str, Any], pointer: str, findings: Findings
) -> dict[str, Any]:
    """The fields of a job spec that the engine's options set.

    Args:
        fields: those that the document sets.
        settings: what `take_options` has returned.
        pointer: the program arguments.
    """
    changes = {name: value for name, value in settings.items() if name not in (FILE_FORMAT, MIXED_TYPES)}
    size, earlier = changes.get("mini_batch_size"), fields.get("mini_batch_size")
    if size is not None and earlier not in (None, size):
        findings.note(pointer, f"mini-batches have {size.removeprefix('rows:')} rows; mini_batch_size is not used")
    if FILE_FORMAT in settings:
        _check_size(size or earlier, pointer, findings)
        changes["inputs"] = _changed(fields, lambda name, entry: _as_json_lines(name, entry, pointer, findings))
    if settings.get(MIXED_TYPES):
        current = {**fields, **changes}
        changes["inputs"] = _changed(current, lambda _, entry: {**entry, "on_mismatch": "keep"})
    return changes


def _check_size(size: Any, pointer: str, findings: Findings) -> None:
    """Refuse a number of files where rows are meant."""
    try:
        is_of_files = size is not None and MiniBatchSize.parse(size).unit in ("plain", "auto")
    except ValueError:
        return  # reported for the size itself
    if is_of_files:
        message = "--amlbi_file_format jsonl cuts files by rows, and mini_batch_size has no rows"
        findings.wrong(pointer, message, "add --amlbi_mini_batch_rows N, or a size such as mini_batch_size: 1mb")


def _as_json_lines(name: str, entry: dict[str, Any], pointer: str, findings: Findings) -> dict[str, Any]:
    steps = entry.get("transformations")
    if steps and _reads_dicts(steps):
        return entry  # a document that is read again, as a server does with what a client has read
    if entry.get("type") == "mltable" or steps:
        message = f"--amlbi_file_format is for files, and the input {name!r} says itself how it is read"
        findings.wrong(pointer, message, "leave the option out: run() gets a DataFrame")
        return entry
    return {**entry, "transformations": [{"read_json_lines": {"rows_as": DICTS}}]}


def _reads_dicts(steps: Any) -> bool:
    step = steps[0] if isinstance(steps, list | tuple) and len(steps) == 1 else None
    options = step.get("read_json_lines") if isinstance(step, dict) else None
    return isinstance(options, dict) and options.get("rows_as") == DICTS


def _changed(fields: Mapping[str, Any], change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Any:
    """The inputs, with a change of each that is cut; as they are where they can't be read, which others report."""
    inputs = fields.get("inputs")
    if isinstance(inputs, str):
        inputs = {"data": inputs}
    if not isinstance(inputs, dict):
        return inputs
    entries = {name: {"path": entry} if isinstance(entry, str) else entry for name, entry in inputs.items()}
    return {**entries, **{name: change(name, entries[name]) for name in _cut(fields.get("input_data"), entries)}}


def _cut(input_data: object, entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the inputs that are cut into mini-batches."""
    paths = [name for name, entry in entries.items() if isinstance(entry, dict) and "path" in entry]
    if not input_data:
        yield from paths if len(paths) == 1 else ()
        return
    for text in input_data if isinstance(input_data, list | tuple) else [input_data]:
        name = same_name(bound_name(text, "inputs"), entries) if isinstance(text, str) else None
        if name in paths:
            yield name
