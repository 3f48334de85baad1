"""Documents that make a job like another one."""

from __future__ import annotations

from typing import Any, Final

from parallelrun_core.answers.drafts import JobDocument
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.names.assets import INCLUDES, code_called
from parallelrun_core.spec import JobSpec

_HIDDEN: Final = "environment_variables"
"""Values that nobody is shown."""
_FIRST: Final = ("name", "entry_script", "command", "code", "inputs", "mini_batch_size")


def document_of(record: JobRecord) -> JobDocument:
    """The settings that were given for a job, as YAML, with its code as it is kept.

    Raises:
        Conflict: it is a pipeline.
    """
    if record.is_pipeline:
        raise Conflict(f"Job {record.job_id} is a pipeline: ask for the document of the job of one of its steps.")
    import yaml

    spec = record.job_spec()
    names = set(record.origins) if record.origins is not None else _unlike_defaults(spec)
    content = spec.model_dump(mode="json", include=names - {_HIDDEN, "resume_from", INCLUDES})
    if record.code:
        content["code"] = code_called(record.code)
    ordered = {name: content[name] for name in (*_FIRST, *sorted(content.keys() - {*_FIRST})) if name in content}
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=1000)
    return JobDocument(text=text, left_out=[_HIDDEN] if spec.environment_variables else [])


def _unlike_defaults(spec: JobSpec) -> set[str]:
    values: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    return set(values)
