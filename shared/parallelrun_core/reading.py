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

from parallelrun_core.assets.names import MODEL_TYPES, Names
from parallelrun_core.azure.batch_deployment import is_deployment, is_of_pipeline, pipeline_of, read_deployment
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import note_image, read_conda_file, read_environment
from parallelrun_core.azure.findings import Findings, Location, Note, relocated
from parallelrun_core.azure.named import named_code, named_environment, named_input
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


def read_job(document: object, *, folder: Path | None = None, names: Names | None = None) -> Reading:
    """The job that a document describes.

    Args:
        folder: of its relative paths, and of the files that it names. None: it came over the network.
        names: where names of assets, such as `azureml:images:1`, are looked up. None: they can't be used.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a job spec is a mapping of settings", "see docs/job-spec.md")
    findings = Findings(names=names)
    location = Location("", folder)
    is_batch = is_deployment(document)
    if is_batch and is_of_pipeline(document):
        document, location = pipeline_of(document, location, findings)
        is_batch = False
    if is_v1(document):
        draft = read_v1(document, location, findings)
    elif is_batch:
        draft = read_deployment(document, location, findings)
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
    if findings.names is not None:
        _put_named(draft, location, findings)
    environment = draft.fields.get("environment")
    if isinstance(environment, dict):
        if isinstance(environment.get("conda_file"), str):
            where = location.below("environment", "conda_file")
            inlined = read_conda_file(environment["conda_file"], where, findings)
            draft.fields["environment"] = {**environment, "conda_file": inlined}
        if environment.get("image"):
            note_image(location.at("environment", "image"), findings)
    return draft


def _put_named(draft: Draft, location: Location, findings: Findings) -> None:
    """Put what names of assets stand for in their place."""
    fields = draft.fields
    if isinstance(fields.get("inputs"), str):
        fields["inputs"] = {"data": fields["inputs"]}
    if isinstance(fields.get("inputs"), dict):
        fields["inputs"] = {
            name: _named_input(given, location.below("inputs", name), findings)
            for name, given in fields["inputs"].items()
        }
    if isinstance(fields.get("environment"), str):
        named = named_environment(fields["environment"], location.below("environment"), findings)
        if named is not None:
            where = location.below("environment")
            fields["environment"], variables = read_environment(named, where, findings)
            if variables and isinstance(given := fields.get("environment_variables", {}), dict):
                fields["environment_variables"] = {**variables, **given}
    if isinstance(fields.get("code"), str):
        fields["code"] = named_code(fields["code"], location.below("code"), findings) or fields["code"]


def _named_input(given: object, location: Location, findings: Findings) -> object:
    """An input of our own form, with the path that stands for its name."""
    fields = {"path": given} if isinstance(given, str) else given
    if not isinstance(fields, dict) or not isinstance(fields.get("path"), str):
        return given
    path = findings.place(fields["path"])
    kind = fields.get("model") or fields.get("type")
    named = named_input(path, str(kind) if kind else None, location, findings)
    if not named:
        return given if path == fields["path"] else {**fields, "path": path}
    own = named["type"] if named["type"] not in MODEL_TYPES else ""
    named["type"] = fields.get("type") or own or "uri_folder"
    return {**fields, **named}
