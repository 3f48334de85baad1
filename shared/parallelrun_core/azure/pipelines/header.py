"""The header of a pipeline: its labels and its settings (reference §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.part import DocumentPart
from parallelrun_core.azure.v2_models import Resources, Task, V2Pipeline, V2RetrySettings, V2Settings, V2Step
from parallelrun_core.azure.v2_reader import check_identity, note_compute

_ONLY_IN_PATHS: Final = (
    "it stands for ${{default_datastore}} in paths; an output without a path is in the job's own outputs, and not there"
)


class PipelineHeader(NamedTuple):
    """The checked fields of a pipeline; those that are wrong are missing."""

    fields: V2Pipeline
    settings: V2Settings

    @property
    def default_datastore(self) -> str:
        """Its name; empty if the settings name none."""
        return (self.settings.default_datastore or "").removeprefix("azureml:")

    @property
    def default_compute(self) -> str:
        """The compute of the steps that name none; empty if none is named."""
        return self.settings.default_compute or self.fields.compute or ""


def read_header(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> PipelineHeader:
    """The fields of a pipeline, with notes on those that have no effect here."""
    fields = findings.validate(V2Pipeline, document, location.pointer, _fields_of_a_step(document)) or V2Pipeline()
    raw_settings = document.get("settings") or {}
    settings = (
        findings.validate(V2Settings, raw_settings, location.at("settings"), ignores_unknown=True) or V2Settings()
    )
    note_compute({"default_compute": settings.default_compute}, location.below("settings"), findings)
    note_compute({"compute": fields.compute}, location, findings)
    if settings.default_datastore is not None:
        findings.note(location.at("settings", "default_datastore"), _ONLY_IN_PATHS)
    check_identity(document, location, findings)
    return PipelineHeader(fields, settings)


def _fields_of_a_step(document: Mapping[str, Any]) -> dict[str, str]:
    """Hints for fields that belong to a step, not to the pipeline."""
    jobs = document.get("jobs")
    step = next((str(name) for name, step in jobs.items() if step), "NAME") if isinstance(jobs, dict) else "NAME"
    parts: dict[str, type[DocumentPart]] = {
        "retry_settings.": V2RetrySettings,
        "resources.": Resources,
        "task.": Task,
        "": V2Step,
    }
    fields = {name: f"jobs.{step}.{part}{name}" for part, model in parts.items() for name in model.model_fields}
    names = fields.keys() - V2Pipeline.model_fields.keys()
    return {name: f"it is a field of the step: {fields[name]}" for name in names}
