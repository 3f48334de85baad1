"""Documents that make a job like another one."""

from __future__ import annotations

from typing import Any, Final

import yaml

from parallelrun_core.answers.drafts import JobDocument
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.names.assets import INCLUDES, code_called
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline_steps import with_steps

_HIDDEN: Final = "environment_variables"
"""Values that nobody is shown."""
_LEFT_OUT: Final = (_HIDDEN, "resume_from", INCLUDES)
_FIRST: Final = ("name", "entry_script", "command", "code", "inputs", "mini_batch_size")


def document_of(record: JobRecord) -> JobDocument:
    """The settings that were given for a job, or a pipeline's with all expressions resolved, as YAML, with the code as
    it is kept."""
    content, is_hidden = _of_pipeline(record) if record.is_pipeline else _of_job(record)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
    return JobDocument(text=text, left_out=[_HIDDEN] if is_hidden else [])


def _of_job(record: JobRecord) -> tuple[dict[str, Any], bool]:
    """Return the document, and whether a part of it is hidden."""
    spec = record.job_spec()
    names = set(record.origins) if record.origins is not None else _unlike_defaults(spec)
    content = spec.model_dump(mode="json", include=names - {*_LEFT_OUT})
    return _ordered(content, record.code), bool(spec.environment_variables)


def _of_pipeline(record: JobRecord) -> tuple[dict[str, Any], bool]:
    spec = record.pipeline_spec()
    defaults = JobSpec.model_construct().model_dump(mode="json", warnings=False)
    is_hidden = False

    def written(_: tuple[str, ...], step: dict[str, Any]) -> dict[str, Any]:
        nonlocal is_hidden
        is_hidden = is_hidden or bool(step["job"].get(_HIDDEN))
        names = {name for name, value in step["job"].items() if value != defaults.get(name)} - {*_LEFT_OUT}
        job = _ordered({name: step["job"][name] for name in names}, step.get("code", ""))
        return {**{name: value for name, value in step.items() if name not in ("code", "job")}, "job": job}

    content = spec.model_dump(mode="json", exclude_defaults=True, exclude={"resume_from"})
    return {"type": "pipeline", **with_steps(content, written)}, is_hidden


def _ordered(content: dict[str, Any], code: str) -> dict[str, Any]:
    named = content | ({"code": code_called(code)} if code else {})
    return {name: named[name] for name in (*_FIRST, *sorted(named.keys() - {*_FIRST})) if name in named}


def _unlike_defaults(spec: JobSpec) -> set[str]:
    values: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    return set(values)
