"""`parallelrun data preview`: what run() would get, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from parallelrun.cli.exit_codes import ExitCode
from parallelrun.cli.output import FormatOption, OutputFormat, show
from parallelrun.cli.server import Commands
from parallelrun.progress.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parallelrun_core.answers.drafts import InputPreview
    from parallelrun_core.spec import JobSpec

_TABLE_FILE: Final = "MLTable"


def add_preview(group: Commands) -> None:
    group.command("preview")(preview_command)


def preview_command(
    source: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="A path, a pattern or a URL of data, or a job file.", show_default=False),
    ],
    *,
    rows: Annotated[int, typer.Option(min=0, max=10_000, help="Rows of each table.")] = 20,
    read: Annotated[
        str,
        typer.Option(
            metavar="STEP", help="How to read it, as in 'read_delimited: {delimiter: \";\"}'.", show_default=False
        ),
    ] = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show what run() would get, and with what types.

    It shows rows, the types of columns, encodings, compressions, skipped files and warnings.

    Nothing is run. Without a job file or a step, how the files are read is found out, and shown.
    """
    from parallelrun.job_file.reading import read_job_file
    from parallelrun.resources.names import local_resolver
    from parallelrun_core.checks.data_preview import preview

    is_job = source.endswith((".yml", ".yaml")) and Path(source).is_file() and not read
    if is_job:
        specs = [each.job for _, each in read_job_file(source, names=local_resolver).jobs()]
    else:
        specs = [spec_for(source, _step(read))]
    previews = [each for spec in specs for each in preview(spec, rows, guesses=not is_job)]
    show(previews, form, lines=(clean(line, most=2000) for each in previews for line in _lines(each)))
    raise typer.Exit(ExitCode.USAGE if any(each.errors for each in previews) else ExitCode.OK)


def _step(text: str) -> dict[str, Any] | None:
    from parallelrun_core.spec import load_document

    if not text:
        return None
    step = load_document(text.encode())
    if isinstance(step, str):
        return {step: None}
    if isinstance(step, dict) and len(step) == 1:
        return step
    raise typer.BadParameter("it must be one step, as in read_json_lines: {}", param_hint="--read")


def _lines(input_preview: InputPreview) -> Iterator[str]:
    from parallelrun_core.figures import counted

    least = "" if input_preview.is_complete else "at least "
    mini_batches = counted(input_preview.mini_batches, "mini-batch")
    yield f"input {input_preview.name}: {input_preview.path}"
    yield f"  {least}{counted(input_preview.files, 'file')}, {least}{mini_batches}"
    if input_preview.read is not None:
        yield f"  read as if the job had: transformations: [{{{in_one_line(input_preview.read)}}}]"
    if input_preview.kind == "files":
        yield "  run() gets paths of files:"
        yield from (f"    {path}" for path in input_preview.first_files)
    else:
        yield from _table_lines(input_preview)
    yield from (f"  warning: {each}" for each in input_preview.warnings)
    yield from (f"  error: {each}" for each in input_preview.errors)


def _table_lines(input_preview: InputPreview) -> Iterator[str]:
    from parallelrun_core.figures import counted

    for label, counts in (("encoding", input_preview.encodings), ("compression", input_preview.compressions)):
        if counts:
            words = [f"{name} ({counted(count, 'file')})" for name, count in counts.items()]
            yield f"  {label}: {', '.join(words)}"
    if input_preview.sampled_from:
        others = f" and {len(input_preview.sampled_from) - 1:,} more" if len(input_preview.sampled_from) > 1 else ""
        yield f"  types from the first rows of {input_preview.sampled_from[0]}{others}:"
    yield from (f"    {column.name}: {column.type}" for column in input_preview.columns)
    if input_preview.rows:
        names = [column.name for column in input_preview.columns]
        table = [names, *([_cell(row.get(name)) for name in names] for row in input_preview.rows)]
        widths = [min(40, max(len(row[at]) for row in table)) for at in range(len(names))]
        for row in table:
            yield "  " + "  ".join(f"{cell[:width]:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(value: str | None) -> str:
    return "null" if value is None else value


def spec_for(path: str, read: dict[str, Any] | None = None) -> JobSpec:
    """Make a job spec whose only input is this path, for a preview of it.

    Raises:
        InvalidInput: no job can have such an input.
    """
    from parallelrun_core.intake.reading import read_job

    is_table_file = Path(path).name == _TABLE_FILE or (Path(path) / _TABLE_FILE).is_file()
    job_input: dict[str, Any] = {"path": path, "type": "mltable" if is_table_file else "uri_folder"}
    if read:
        job_input["transformations"] = [read]
    return read_job({"entry_script": "preview.py", "inputs": {"data": job_input}}, folder=Path.cwd()).job


def in_one_line(step: dict[str, Any]) -> str:
    """Write a step as YAML on one line."""
    return ", ".join(f"{name}: {json.dumps(options or {}, ensure_ascii=False)}" for name, options in step.items())
