"""From any document that describes a job to the job spec, with notes for its submitter.

There are three forms: our own (`JobSpec`, docs/job-spec.md), v2 documents of Azure ML, and v1's
`parallel_run_config`; docs/compatibility.md says what becomes of each of their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import note_image, read_conda_file
from parallelrun_core.azure.findings import Findings, Location, Note, relocated
from parallelrun_core.azure.v1 import is_v1, read_v1
from parallelrun_core.azure.v2 import is_v2, read_v2
from parallelrun_core.errors import InvalidInput, ParallelRunError, Problem
from parallelrun_core.spec import JobSpec

__all__ = ["Note", "Reading", "read_job"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The job spec that was read, and where it came from."""

    spec: JobSpec
    notes: tuple[Note, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """From a field of the spec to where in the document its value came from."""
    default: str = ""
    """The origin of all other fields."""
    located: Callable[[Problem], Problem] = lambda problem: problem
    """Adds file and line to a problem of the document."""

    @contextmanager
    def locating_problems(self) -> Iterator[None]:
        """Locate problems of the spec that are raised in this block in the document."""
        try:
            yield
        except ParallelRunError as error:
            error.replace_problems(self._located)
            raise

    def _located(self, problem: Problem) -> Problem:
        if problem.pointer.startswith("-"):  # an option of a command line
            return problem
        return self.located(relocated(problem, self.origins, self.default))


def read_job(document: object, *, folder: Path | None = None) -> Reading:
    """The job that a document describes.

    Args:
        folder: of its relative paths, and of the files that it names. None: it came over the network.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a job spec is a mapping of settings", "see docs/job-spec.md")
    findings = Findings()
    location = Location("", folder)
    if is_v1(document):
        draft = read_v1(document, location, findings)
    elif is_v2(document):
        draft = read_v2(document, location, findings)
    else:
        draft = _read_own(document, location, findings)
    spec = draft.finish(findings)
    if folder is not None:
        spec = spec.relative_to(folder)
    return Reading(spec, tuple(findings.notes), draft.origins, draft.default)


def _read_own(document: dict[Any, Any], location: Location, findings: Findings) -> Draft:
    """A job spec, with the content of the file that its environment names."""
    draft = Draft(dict(document))
    environment = document.get("environment")
    if isinstance(environment, dict):
        if isinstance(environment.get("conda_file"), str):
            where = location.below("environment", "conda_file")
            inlined = read_conda_file(environment["conda_file"], where, findings)
            draft.fields["environment"] = {**environment, "conda_file": inlined}
        if environment.get("image"):
            note_image(location.at("environment", "image"), findings)
    return draft
