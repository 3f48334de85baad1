"""`python -P -m parallelrun_master.planning.preview`: what `run()` would get of a job's inputs, before anything runs.

On standard input a `PreviewRequest` (`core/checks/data_preview.py`), on standard output a list of `InputPreview`, one
for each input that the job cuts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun_core.answers.drafts import InputPreview, PreviewColumn
from parallelrun_core.azure.own_form import with_own_options
from parallelrun_core.checks.data_preview import PreviewRequest
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import InputPlan, load_plans
from parallelrun_core.mltable.partition_format import format_of_paths
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.problems import did_you_mean
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.data_defaults import OWN
from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.message import Piece, decode, described_of, files_of, is_described
from parallelrun_master.planning.column_check import ask_worker
from parallelrun_master.planning.guessed_read import guessed_read
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput

_MOST_PIECES: Final = 8
_MOST_PATHS: Final = 20
_MOST_BYTES: Final = 16 << 20
"""The most bytes of an answer to a server."""
_LISTING_S: Final = 5.0
"""How long files are listed, once there is something to show."""


def preview(spec: JobSpec, rows: int, *, guesses: bool = False, rule: PathRule | None = None) -> Iterator[InputPreview]:
    """Yield what is known of each input that the job cuts.

    Args:
        rule: which files may be listed and opened; None: any.
    """
    for name, job_input in spec.data_inputs():
        is_guess = guesses and not job_input.transformations and job_input.type != "mltable"
        input_preview = _empty(name, job_input.path)
        try:
            if is_guess:
                job_input = _with_read(job_input, input_preview, rule)  # noqa: PLW2901 - with how it is read
            with tempfile.TemporaryDirectory(prefix="parallelrun-preview-") as folder:
                changes = {
                    "inputs": {name: job_input},
                    "input_data": (name,),
                    "partition_keys": (),
                    "mini_batch_size": None,
                    "string_dtype": spec.string_dtype or OWN.tables["string_dtype"],  # if how it is read is a guess
                }
                _fill(input_preview, spec.model_copy(update=changes), Path(folder), rows, rule)
            names = [column.name for column in input_preview.columns]
            by_path = format_of_paths(input_preview.first_files, input_preview.path, names) if is_guess else ""
            if by_path and input_preview.read is not None:
                step = f"extract_columns_from_partition_format: '{by_path}'"
                input_preview.warnings.append(f"names of folders hold values; this step makes columns of them: {step}")
            by_itself = spec.model_copy(update={"input_data": (name,)})
            (plan,) = plan_inputs(by_itself, rule) if spec.partition_keys else (None,)
            if plan is not None and plan.is_shuffled:
                _tell_of_groups(input_preview, plan)
            elif plan is not None or (spec.mini_batch_size is not None and not spec.size.is_auto):
                with tempfile.TemporaryDirectory(prefix="parallelrun-preview-") as folder:
                    _count(input_preview, by_itself, Path(folder), rule)
        except ParallelRunError as error:
            problems = getattr(error, "problems", ())
            messages = [f"{each.message}{each.hint and f' ({each.hint})'}" for each in problems]
            input_preview.errors += messages or [str(error)]
        except OSError as error:
            input_preview.errors.append(str(error))
        yield input_preview


def _empty(name: str, path: str) -> InputPreview:
    return InputPreview(
        name=name, path=path, kind="files", read=None, files=0, mini_batches=0, is_complete=False, first_files=[],
        columns=[], rows=[], sampled_from=[], encodings={}, compressions={}, warnings=[], errors=[],
    )  # fmt: skip


def _with_read(job_input: Input, input_preview: InputPreview, rule: PathRule | None) -> Input:
    step = guessed_read(job_input, rule)
    if step is None:
        return job_input
    input_preview.read = step
    return job_input.model_copy(update={"transformations": (with_own_options(step),)})


def _fill(input_preview: InputPreview, spec: JobSpec, folder: Path, rows: int, rule: PathRule | None) -> None:
    data_warnings: list[DataWarning] = []
    pieces: list[Piece] = []
    paths: dict[bytes, None] = {}
    until = time.monotonic() + _LISTING_S
    for cut in InputCuts(folder, spec, KnownInput(), warn=data_warnings.append, rule=rule):
        if cut is None:
            continue
        input_preview.mini_batches += 1
        message = decode(cut.raw)
        paths |= dict.fromkeys(files_of(message))
        if is_described(message) and len(pieces) < _MOST_PIECES:
            pieces += described_of(message).pieces
        if time.monotonic() > until:
            break
    else:
        input_preview.is_complete = True
    input_preview.files = len(paths)
    input_preview.first_files = [path.decode(errors="replace") for path in list(paths)[:_MOST_PATHS]]
    for plan in filter(lambda plan: plan.is_table, load_plans(folder) or []):
        data_warnings += _read_rows(input_preview, plan, pieces, Layout(folder).schema(0), rows=rows, rule=rule)
    input_preview.warnings = [each.in_words() for each in data_warnings]


def _count(input_preview: InputPreview, spec: JobSpec, folder: Path, rule: PathRule | None) -> None:
    """Count the mini-batches that the job would cut, of the input as the job has it."""
    until = time.monotonic() + _LISTING_S
    input_preview.mini_batches = 0
    for cut in InputCuts(folder, spec, KnownInput(), rule=rule):
        input_preview.mini_batches += cut is not None
        if time.monotonic() > until:
            input_preview.is_complete = False
            return


def _tell_of_groups(input_preview: InputPreview, plan: InputPlan) -> None:
    """Say which keys are no columns. How many groups there are is known once all rows are read."""
    input_preview.mini_batches, input_preview.is_complete = 1, False
    columns = [column.name for column in input_preview.columns]
    groupable = {*columns, *(plan.partition.names if plan.partition else ())}
    for key in plan.keys if columns else ():
        if key not in groupable:
            hint = did_you_mean(key, groupable, f"there are {', '.join(columns[:_MOST_PATHS])}")
            input_preview.warnings.append(f"the first rows have no column {key!r} to group by; {hint}")


def _read_rows(
    input_preview: InputPreview, plan: InputPlan, pieces: list[Piece], schema: Path, *, rows: int, rule: PathRule | None
) -> list[DataWarning]:
    """Have the first rows read as a worker reads them."""
    input_preview.kind, input_preview.sampled_from = plan.kind, plan.sample
    request = {"schema": str(schema), "pieces": [_for_worker(piece) for piece in pieces], "rows": rows}
    answer_text = ask_worker("preview", plan, rule, lambda record: {"plan": record, **request})
    answer = json.loads(answer_text or b"{}")
    if not answer:
        input_preview.errors.append("its first rows can't be read: the reader has ended without an answer")
    input_preview.columns = msgspec.convert(answer.get("columns", []), list[PreviewColumn])
    input_preview.rows = answer.get("rows", [])
    input_preview.errors += answer.get("errors", [])
    input_preview.encodings = answer.get("files", {}).get("encodings", {})
    input_preview.compressions = answer.get("files", {}).get("compressions", {})
    return msgspec.convert(answer.get("warnings", []), list[DataWarning])


def _for_worker(piece: Piece) -> list[Any]:
    return [piece.path.decode(errors="surrogateescape"), *piece.rest]


def _bounded(previews: list[InputPreview]) -> list[InputPreview]:
    """Leave the rows and columns out of previews that take too many bytes: a server holds all of its answers in memory,
    and the name of a column may be of any length."""
    for each in previews:
        if len(msgspec.json.encode(each)) > _MOST_BYTES // len(previews):
            each.columns, each.rows = [], []
            each.errors.append("the names of its columns are too many, or too long, to be shown here")
    return previews


def main() -> int:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=PreviewRequest)
    rule = request.bounds.impose() if request.bounds is not None else None
    spec = JobSpec.model_validate(request.spec)
    previews = list(preview(spec, request.rows, guesses=request.guesses, rule=rule))
    sys.stdout.buffer.write(msgspec.json.encode(previews if rule is None else _bounded(previews)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
