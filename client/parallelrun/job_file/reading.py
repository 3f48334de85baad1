"""Job specs as users give them, in any spelling: checked, and without relative paths."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from parallelrun.job_file.positions import Source
from parallelrun_core.code.entry_script_check import check_entry_script
from parallelrun_core.code.source import is_there, source_of
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.intake.reading import Reading, read_job, read_text
from parallelrun_core.names.assets import INCLUDES, Names
from parallelrun_core.problems import Problems, did_you_mean
from parallelrun_core.spec import JobSpec, PipelineSpec, load_document, set_field
from parallelrun_core.spec.fields import NAME
from parallelrun_core.storage.location import datastore_of
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.supported import absolute_path
from parallelrun_core.untrusted.document import RepeatedKeys

_MAX_NAMES: Final = 1000

NamesFor = Callable[[Path], Names]
"""The names for a document, by its folder: a site file may be there."""


@runtime_checkable
class Document(Protocol):
    """Something that can describe a job as a job file would: a `ParallelRunStep` or a `parallel_run_function`."""

    def document(self) -> dict[str, Any]:
        """The content of the job file."""
        ...


def read_spec(
    spec: JobSpec | PipelineSpec | dict[str, Any] | Document | str | Path, names: NamesFor | None = None
) -> Reading:
    """The job spec in any form that a user may give, and the notes on it. Relative paths start from the folder of the
    job file, or from the current one.

    Args:
        names: where names of assets are looked up.

    Raises:
        InvalidInput: the file can't be read, or a field is wrong.
    """
    if isinstance(spec, JobSpec):
        return Reading(spec.relative_to(Path.cwd()))
    if isinstance(spec, PipelineSpec):
        return read_job(spec.model_dump(mode="json", exclude_unset=True), folder=Path.cwd())
    if isinstance(spec, dict):
        return read_job(_with_plain_paths(spec), folder=Path.cwd(), names=names and names(Path.cwd()))
    if isinstance(spec, Document):
        return read_job(_with_plain_paths(spec.document()), folder=Path.cwd(), names=names and names(Path.cwd()))
    return read_job_file(spec, names=names)


def _with_plain_paths(part: object) -> object:
    """Return a document with paths as the texts that a job file would have."""
    match part:
        case dict():
            return {key: _with_plain_paths(value) for key, value in part.items()}
        case list():
            return [_with_plain_paths(value) for value in part]
        case os.PathLike():
            return os.fspath(part)
    return part


def read_job_file(path: str | Path, assignments: Iterable[str] = (), names: NamesFor | None = None) -> Reading:
    """The job that a file describes.

    Args:
        assignments: `path=value` changes, applied in order, with the names of the file's own format. Relative paths in
            them start from the file's folder, too.
        names: where names of assets are looked up.

    Raises:
        InvalidInput: the file can't be read, or fields are wrong, all of which are reported at once.
    """
    file = Path(path)
    text = _text_of(file)

    def read(document: object) -> Reading:
        assigned = []
        for assignment in assignments:
            set_field(document, assignment)
            assigned.append(assignment.partition("=")[0])
        source = Source(file, text, document, assigned)
        folder = file.absolute().parent
        try:
            reading = read_job(document, folder=folder, names=names and names(folder))
        except InvalidInput as error:
            error.replace_problems(source.located)
            raise
        return replace(reading, located=source.located, notes=(*reading.notes, *source.notes()))

    return read_text(lambda: _document_in(text, file), read)


@contextmanager
def read_definition(definition: Mapping[str, Any] | str | Path, **changes: str) -> Iterator[tuple[Any, Path]]:
    """A document, and the folder that its relative paths start from: of its file, or else the current one.

    Problems that are raised in this block get their lines in the file. Keys that are given twice are raised at its end,
    with these.

    Args:
        definition: the document, or the path of a file with it.
        changes: fields in place of the document's, unless they are empty.

    Raises:
        InvalidInput: the file can't be read, or has keys twice.
    """
    changed = {field: value for field, value in changes.items() if value}
    if isinstance(definition, Mapping):
        yield {**definition, **changed}, Path.cwd()
        return
    file = Path(definition)
    text = _text_of(file)
    repeated: RepeatedKeys | None = None
    try:
        document = _document_in(text, file)
    except RepeatedKeys as error:
        document, repeated = error.document, error
    source = Source(file, text, document, [])
    try:
        yield {**document, **changed} if isinstance(document, dict) else document, file.absolute().parent
    except InvalidInput as error:
        error.replace_problems(lambda problem: problem if problem.place else source.located(problem))
        if repeated is not None:
            raise InvalidInput(problems=(*repeated.problems, *error.problems)) from error
        raise
    if repeated is not None:
        raise repeated


def _text_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error


def _document_in(text: bytes, file: Path) -> object:
    try:
        return load_document(text)
    except InvalidInput as error:
        if file.suffix == ".py":
            hint = f"`parallelrun init` writes one, which names the script: entry_script: {file.name}"
            raise InvalidInput.at("", f"{file} is a script, and a job file is expected", hint) from error
        error.replace_problems(lambda problem: replace(problem, place=str(file)))
        raise


def input_assignments(inputs: Iterable[str]) -> list[str]:
    """The assignments that give inputs their places: `NAME=PLACE`, or only a place, for the one that is called `data`.
    A local path is relative to the current folder.

    Raises:
        InvalidInput: one is no place, or the name is none.
    """
    assignments = []
    for text in inputs:
        name, equals, place = text.partition("=")
        if not equals or not NAME.fullmatch(name):
            name, place = "data", text
        if not place:
            raise InvalidInput.at("--input", f"{text!r} has no place", "as in --input ./data, or --input images=./data")
        where = absolute_path(place, Path.cwd())
        assignments.append(f"inputs.{name}.path={json.dumps(where)}")
    return assignments


def check_paths(spec: JobSpec) -> None:
    """Check that what a job reads is on this machine: its inputs, its code, its entry script.

    Raises:
        InvalidInput: something is missing; all of it is reported at once.
    """
    problems = [
        Problem(
            pointer=f"/inputs/{name}/path", message=trouble.message, hint=trouble.hint or _suggestion(job_input.path)
        )
        for name, job_input in spec.input_paths()
        if (
            trouble := storage_of(job_input.path).input_trouble(
                job_input.path, is_one_file=job_input.type == "uri_file"
            )
        )
    ]
    problems += _unknown_datastores(spec)
    problems += _trouble_with_code(spec)
    Problems(problems).check()


def _trouble_with_code(spec: JobSpec) -> Sequence[Problem]:
    """Problems with the folder of the code and its entry script; a command may need neither."""
    source = source_of(spec.code, spec.additional_includes)
    missing = [
        Problem(pointer=f"/{INCLUDES}/{number}", message=f"there is no file or folder {path!r}", hint=_suggestion(path))
        for number, path in enumerate(spec.additional_includes)
        if not is_there(Path(path))
    ]
    if missing:
        return missing
    if not spec.code and not spec.command and not spec.additional_includes:
        hint = "the folder of the entry script, relative to the job file, as in `code: src`"
        return [Problem(pointer="/code", message="this field is required", hint=hint)]
    if spec.code and not Path(spec.code).is_dir():
        return [Problem(pointer="/code", message=f"there is no folder {spec.code!r}", hint=_suggestion(spec.code))]
    try:
        if spec.entry_script:
            check_entry_script(
                source.folder_of(spec.entry_script) or Path(), spec.entry_script, spec.environment.python, spec.contract
            )
    except InvalidInput as error:
        return error.problems
    return []


def _unknown_datastores(spec: JobSpec) -> list[Problem]:
    """Problems with datastores that this process would know if they were defined."""
    catalog = datastore_registry.catalog()
    paths = [(f"/inputs/{name}/path", output.path) for name, output in spec.input_paths()]
    paths += [(f"/outputs/{name}/path", output.path) for name, output in spec.outputs.items()]
    return [
        Problem(pointer=pointer, message=f"there is no datastore {name!r}", hint=catalog.hint(name))
        for pointer, path in [*paths, ("/output", spec.output)]
        if catalog is not None and (name := datastore_of(path)) and name not in catalog.names()
    ]


def _suggestion(path_text: str) -> str:
    """A hint at a file or folder with nearly the name of a missing one; empty if there is none."""
    path = Path(path_text)
    missing = next((each for each in (path, *path.parents) if each.parent.is_dir()), path)
    try:
        with os.scandir(missing.parent) as entries:
            names = [entry.name for entry in islice(entries, _MAX_NAMES)]
    except OSError:
        return ""
    return did_you_mean(missing.name, names)
