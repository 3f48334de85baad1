"""Reading: any document that describes a job or a pipeline becomes its spec, with notes for its submitter.

There are three forms: our own (`JobSpec`, docs/job-spec.md), v2 documents of Azure ML, and v1's
`parallel_run_config`; docs/compatibility.md says what becomes of each of their fields. Pipelines are v2 documents
(docs/pipelines.md), whose steps may have any of these forms, or a `PipelineSpec`, in which all is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import DocumentLocation, Findings, Note, relocated
from parallelrun_core.azure.forms import is_deployment, is_of_pipeline, is_v1, is_v2, mistaken_for, with_its_type
from parallelrun_core.azure.own_form import read_own
from parallelrun_core.azure.pipelines.draft import PipelineDraft
from parallelrun_core.errors import InvalidInput, ParallelRunError, Problem
from parallelrun_core.intake.resolved_form import is_resolved, read_resolved
from parallelrun_core.names.assets import Names
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.untrusted.document import RepeatedKeys

__all__ = ["Note", "Reading", "read_job"]

_LEADING_ZERO: Final = re.compile(r"(?:rows:)?(?P<digits>0[0-9]{1,18})(?:kb|mb|gb)?", re.IGNORECASE)
_STEP: Final = re.compile(r"/steps/([^/]+)/job(?=/|$)")
"""Where the fields of a step's job are in the spec of a pipeline."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The spec that was read, and where it came from."""

    spec: JobSpec | PipelineSpec
    notes: tuple[Note, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """The fields of the spec, each with the place in the document that its value came from; empty: it has the default
    of its form."""
    default: str = ""
    """The origin of all other fields."""
    located: Callable[[Problem], Problem] = lambda problem: problem
    """Adds file and line to a problem of the document."""
    steps: Mapping[str, Reading] = field(default_factory=dict)
    """The steps of a pipeline, each without the inputs that other steps make: as far as it can be checked by now."""

    @property
    def job(self) -> JobSpec:
        """The job.

        Raises:
            InvalidInput: it is a pipeline.
        """
        if isinstance(self.spec, PipelineSpec):
            steps = ", ".join(self.spec.steps)
            raise InvalidInput.at("", f"this is a pipeline ({steps}), and here a single job is needed")
        return self.spec

    @property
    def pipeline(self) -> PipelineSpec | None:
        """The pipeline; None if it is a job."""
        return self.spec if isinstance(self.spec, PipelineSpec) else None

    def jobs(self) -> Iterator[tuple[str, Reading]]:
        """Each job in it with its path, such as `prepare`, or `train/score` in a nested pipeline; empty for a job."""
        if self.pipeline is None:
            yield "", self
        for name, step in self.steps.items():
            for path, job in replace(step, located=self.located).jobs():
                yield f"{name}/{path}".rstrip("/"), job

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
        step = _STEP.match(problem.pointer)
        if step is not None and (reading := self.steps.get(step[1])) is not None:
            return replace(reading, located=self.located)._located(
                replace(problem, pointer=problem.pointer[step.end() :])
            )
        return self.located(relocated(problem, self.origins, self.default))


def read_job(document: object, *, folder: Path | None = None, names: Names | None = None) -> Reading:
    """The job or the pipeline that a document describes.

    Args:
        folder: of its relative paths, and of the files that it names. None: it came over the network.
        names: where names of assets, such as `azureml:images:1`, are looked up. None: they can't be used.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "a job spec is a mapping of settings", "see docs/job-spec.md")
    if (mistake := mistaken_for(document)) is not None:
        raise InvalidInput.at("", *mistake)
    findings = Findings(names=names)
    location = DocumentLocation("", folder)
    draft = _read(document, location, findings)
    _note_leading_zeros(document, "", findings)
    spec = draft.finish(findings)
    if folder is not None and isinstance(spec, JobSpec):
        spec = spec.relative_to(folder)
    return _reading(draft, spec, tuple(dict.fromkeys(findings.notes)))


def read_text(load: Callable[[], object], read: Callable[[object], Reading]) -> Reading:
    """The job that a text describes: keys that are given twice hide nothing else that is wrong with it.

    Args:
        load: returns the document in the text.
        read: reads that, as `read_job` does.

    Raises:
        InvalidInput: with one problem for each such key and each wrong field.
    """
    try:
        document = load()
    except RepeatedKeys as repeated:
        try:
            read(repeated.document)
        except InvalidInput as error:
            raise InvalidInput(problems=(*repeated.problems, *error.problems)) from error
        raise
    return read(document)


def _note_leading_zeros(part: object, pointer: str, findings: Findings) -> None:
    """Note sizes such as `"010"`, in which some would see an octal number."""
    if not isinstance(part, dict):
        return
    for name, value in part.items():
        if name == "mini_batch_size" and isinstance(value, str) and (size := _LEADING_ZERO.fullmatch(value.strip())):
            decimal = int(size["digits"])
            message = f"{value!r} is read as the decimal number {decimal:,}; write it without 0 in front"
            findings.note(f"{pointer}/{name}", message)
        _note_leading_zeros(value, f"{pointer}/{name}", findings)


def _read(document: dict[Any, Any], location: DocumentLocation, findings: Findings) -> Draft | PipelineDraft:
    """Return what a document asks for. Azure's readers are imported when they are needed: every service would pay for
    them."""
    is_batch = is_deployment(document)
    if is_batch and is_of_pipeline(document):
        from parallelrun_core.azure.batch_deployment import pipeline_of
        from parallelrun_core.azure.pipelines.reader import read_pipeline

        # Also one of a single step, whose inputs an invocation gives by the names that they have in the pipeline.
        return read_pipeline(*pipeline_of(document, location, findings), findings)
    if is_v1(document):
        from parallelrun_core.azure.v1 import read_v1

        return read_v1(document, location, findings)
    if is_resolved(document):
        return read_resolved(document, location, findings)
    if is_batch:
        from parallelrun_core.azure.batch_deployment import read_deployment

        return read_deployment(document, location, findings)
    typed = with_its_type(document)
    if is_v2(typed):
        from parallelrun_core.azure.v2 import read_v2

        return read_v2(typed, location, findings)
    return read_own(document, location, findings)


def _reading(draft: Draft | PipelineDraft, spec: JobSpec | PipelineSpec, notes: tuple[Note, ...] = ()) -> Reading:
    steps = {}
    if isinstance(draft, PipelineDraft):
        steps = {name: _reading(step.draft, step.known_part) for name, step in draft.steps.items()}
    return Reading(spec, notes, draft.origins, draft.default, steps=steps)
