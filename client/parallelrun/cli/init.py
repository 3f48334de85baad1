"""`parallelrun init`: a first job for one's own data, from three questions."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from parallelrun.cli.data_preview import in_one_line, spec_for
from parallelrun.cli.output import FormatOption, OutputFormat, say, show
from parallelrun.starter.kinds import kind_names
from parallelrun.starter.plan import Answers, Result, SampleData, files_of


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if it isn't there.")] = Path(),
    *,
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="[files|table|PLACE]",
            help="What run() gets: paths of files, or rows of a table; of a path or URL, what it looks like.",
            show_default=False,
        ),
    ] = "",
    where: Annotated[
        str | None,
        typer.Option("--input", metavar="PLACE", help="Path or URL of the data; else a small sample is written."),
    ] = None,
    result: Annotated[
        Result | None,
        typer.Option("--result", help="What comes out: one file of rows, or the script's own files."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar=f"[{'|'.join(kind_names())}]",
            help="A job whose workers wait: for a service, a language model behind an API, or one on their own GPU.",
            show_default=False,
        ),
    ] = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Write a job file and an entry script to start from. They run as they are. Nothing is overwritten.

    What isn't given is asked for on a terminal; otherwise it is a small sample of files, and rows come out. With a path
    or URL as `--data`, the options with which it can be read are found out and written.
    """
    if kind:
        files, script = _of_a_kind(folder, kind, data=data, where=where or "", result=result)
    else:
        files, script = _of_answers(folder, data=data, where=where, result=result)
    written = [str(path) for path in write_new(folder, files)]
    show({"files": written}, form, lines=written)
    _say_what_is_next(folder, script, files)


def _say_what_is_next(folder: Path, script: str, files: Collection[str]) -> None:
    from parallelrun.starter.kind import LIMIT_FILE

    limit = f" --limit {folder / LIMIT_FILE}" if LIMIT_FILE in files else ""
    say(f"run it:     parallelrun run {folder / 'job.yml'}{limit} --output {folder / 'out'}")
    say(f"change it:  {folder / script}")
    if any(path.startswith("src/test_") for path in files):
        say(f"test it:    python -m pytest {(folder / script).parent}")


def _of_a_kind(folder: Path, kind: str, *, data: str, where: str, result: Result | None) -> tuple[dict[str, str], str]:
    """Return the files of a kind of starter, and the path of its script. Raises InvalidInput."""
    from parallelrun.errors import InvalidInput
    from parallelrun.starter.kind import files_of_kind, kind_named

    if kind not in kind_names():
        raise InvalidInput.at("--kind", f"there is no kind {kind!r}", f"one of {', '.join(kind_names())}")
    for option, value in (("--data", data), ("--result", result)):
        if value:
            raise InvalidInput.at(option, "a --kind decides on it", f"leave {option} out; --input names your own data")
    place = _from(folder, where)
    return files_of_kind(kind, name=_job_name(folder), where=place), kind_named(kind).script


def _of_answers(folder: Path, *, data: str, where: str | None, result: Result | None) -> tuple[dict[str, str], str]:
    """Return the files of a job for the data that are given or asked for, and the path of its script."""
    from parallelrun.errors import InvalidInput

    kind, step = SampleData(data) if data in [*SampleData] else None, ""
    if data and kind is None:
        if where:
            raise InvalidInput.at("--input", f"--data already says where: {data}", "leave one of them out")
        where = data
        kind, step = _found(folder, data)
    if sys.stdin.isatty():
        kind, where, result = _asked(kind, where, result)
    answers = Answers(
        name=_job_name(folder),
        data=kind or SampleData.FILES,
        where=_from(folder, where or ""),
        result=result or Result.ROWS,
        step=step,
    )
    return files_of(answers), "src/process.py"


def _job_name(folder: Path) -> str:
    return folder.resolve().name or "job"


def _found(folder: Path, where: str) -> tuple[SampleData, str]:
    """Return what data at a place are, and the step that reads them; what is noticed is printed.

    Raises:
        InvalidInput: there is nothing.
    """
    from parallelrun.errors import InvalidInput
    from parallelrun_core.checks.data_preview import preview
    from parallelrun_core.mltable.partition_format import format_of_paths

    _from(folder, where)
    (input_preview,) = preview(spec_for(where), 1, guesses=True)
    if input_preview.errors and input_preview.read is None:
        raise InvalidInput.at("--data", input_preview.errors[0], f"look at it with: parallelrun data preview {where}")
    for text in (*input_preview.warnings, *input_preview.errors):
        say(f"note: {text}")
    if input_preview.read is None:
        return SampleData.FILES, ""
    names = [column.name for column in input_preview.columns]
    by_path = format_of_paths(input_preview.first_files, input_preview.path, names)
    steps = [input_preview.read, *([{"extract_columns_from_partition_format": by_path}] if by_path else [])]
    return SampleData.TABLE, "\n      - ".join(map(in_one_line, steps))


def _asked(data: SampleData | None, where: str | None, result: Result | None) -> tuple[SampleData, str, Result]:
    """Return what is given, and for the rest what somebody answers."""
    if data is None:
        data = typer.prompt(
            "What are your data: files, or rows of a table?", type=SampleData, default=SampleData.FILES, err=True
        )
    if where is None:
        question = "Where are they? A path or a URL; nothing for a small sample"
        where = typer.prompt(question, default="", show_default=False, err=True)
    if result is None:
        question = "What comes out: one file of rows, or files that the script writes?"
        result = typer.prompt(question, type=Result, default=Result.ROWS, err=True)
    return data, where, result


def _from(folder: Path, where: str) -> str:
    """A place as a job file in this folder names it: a path relative to it, if both have more in common than `/`."""
    from parallelrun.errors import InvalidInput
    from parallelrun_core.storage.location import is_url

    if not where or is_url(where) or where.startswith("azureml:"):
        return where
    target = Path(where).expanduser().absolute()
    if not target.exists() and not any(mark in where for mark in "*?["):
        raise InvalidInput.at("--input", f"there is no file or folder {str(target)!r}", "leave it out for a sample")
    relative = os.path.relpath(target, folder.absolute())
    return str(target) if relative.startswith("../../..") else relative


def write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files below a folder, which is made if it isn't there; returns their paths.

    Raises:
        InvalidInput: one of them is there already. Nothing was written.
    """
    from parallelrun.errors import InvalidInput

    paths = {folder / name: text for name, text in files.items()}
    if existing := [str(path) for path in paths if path.exists() or path.is_symlink()]:
        raise InvalidInput.at(
            "FOLDER", f"there already: {', '.join(existing)}", "name another folder, or move these away"
        )
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(paths)
