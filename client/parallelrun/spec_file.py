"""Job files, in any spelling: from YAML on disk to a checked job spec without relative paths."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from parallelrun_core.codestore import check_entry_script
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.reading import Reading, read_job
from parallelrun_core.spec import JobSpec, load_document, set_field


def read_job_file(path: str | Path, assignments: Iterable[str] = ()) -> Reading:
    """The job that a file describes.

    Args:
        assignments: `path=value` changes, applied in order, in the file's own spelling. Paths in them, too, are taken
            from the file's folder.

    Raises:
        InvalidInput: the file can't be read, or fields are wrong: all of them at once.
    """
    file = Path(path)
    try:
        document = load_document(file.read_bytes())
    except OSError as error:
        raise InvalidInput.at("", f"{file}: {error.strerror or error}") from error
    for assignment in assignments:
        set_field(document, assignment)
    return read_job(document, folder=file.absolute().parent)


def check_paths(spec: JobSpec) -> None:
    """See to it that what a job reads is on this machine: its inputs, its code, its entry script.

    Raises:
        InvalidInput: something is missing: all of it at once.
    """
    problems = [
        Problem(pointer=f"/inputs/{name}/path", message=f"there is no file or folder {given.path!r}")
        for name, given in spec.input_paths()
        if not _is_there(given.path)
    ]
    if not spec.code:
        hint = "the folder of the entry script, from that of the job file, as in `code: src`"
        problems.append(Problem(pointer="/code", message="this field is required", hint=hint))
    elif not Path(spec.code).is_dir():
        problems.append(Problem(pointer="/code", message=f"there is no folder {spec.code!r}"))
    else:
        try:
            check_entry_script(Path(spec.code), spec.entry_script)
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems=tuple(problems))


def _is_there(path: str) -> bool:
    if Path(path).exists():
        return True
    # The pattern is absolute, which Path.glob doesn't take.
    return glob.has_magic(path) and next(glob.iglob(path, recursive=True), None) is not None  # noqa: PTH207
