"""The object stores that a run on this machine reads and writes, asked for before it begins: all credentials are here,
too."""

from __future__ import annotations

from contextlib import suppress

from parallelrun_core.errors import Problem
from parallelrun_core.problems import Problems
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of


def check_inputs(spec: JobSpec) -> None:
    """Make sure that there is something at each URL that a job reads.

    Raises:
        InvalidInput: with one problem for each where there is nothing, or that this machine can't ask for.
    """
    problems = []
    for name, job_input in spec.input_paths():
        if is_url(job_input.path) and (trouble := _trouble(job_input.path)):
            problems.append(Problem(pointer=f"/inputs/{name}/path", message=trouble, hint=_ASK))
    Problems(problems).check()


_ASK = "`parallelrun doctor JOB.yml` looks closer"


def _trouble(path: str) -> str:
    storage = storage_of(path)
    try:
        fixed, _ = storage.split(path)
        return "" if storage.is_there(fixed) else f"there is no object {fixed!r}, and none below it"
    except (OSError, ValueError) as error:
        return str(error).removeprefix(f"[Errno {getattr(error, 'errno', '')}] ")


def is_object(url: str) -> bool:
    """Return whether an output is there already.

    Raises:
        OSError, ValueError: it can't be asked for, or there is no such bucket.
    """
    storage = storage_of(url)
    try:
        storage.version(url)
    except FileNotFoundError:
        with suppress(PermissionError):  # who may only write must not be asked for more
            storage.is_folder(url)  # a question for one object doesn't tell that there is no bucket
        return False
    return True
