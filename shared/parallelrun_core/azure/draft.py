"""A job spec in the making, with the origin of each of its fields in the user's document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from parallelrun_core.azure.findings import Findings
from parallelrun_core.azure.options import take_options
from parallelrun_core.azure.row_options import field_changes
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.data_defaults import AZURE, OWN, DataDefaults, with_data_defaults
from parallelrun_core.spec.unused_fields import unused_fields

_FEW_BYTES: Final = 1 << 10
_FOR_PARENTS: Final = ("copy_logs_to_parent", "metrics_name_prefix", "push_metrics_to_parent")


@dataclass
class Draft:
    """Fields of a job spec, and where in the document their values came from."""

    fields: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """The fields of the spec, each with a pointer into the document; empty if nobody has given it."""
    default: str = ""
    """The pointer for all other fields."""
    is_step: bool = False
    """True if the job is a step of a pipeline."""
    data_defaults: DataDefaults = AZURE
    """The reading of data and the writing of rows where the document says nothing."""

    def put(self, name: str, value: Any, pointer: str) -> None:
        """Set a field, unless there is nothing to set."""
        self.origins[name] = pointer
        if value is not None:
            self.fields[name] = value

    def finish(self, findings: Findings) -> JobSpec:
        """The job spec, with the settings from the engine's options among its arguments.

        Raises:
            InvalidInput: with all problems that were found.
        """
        findings.check()
        arguments = self.origins.get("program_arguments", f"{self.default}/program_arguments")
        text, inputs = self.fields.get("program_arguments"), self.fields.get("inputs")
        settings = take_options(text, inputs, arguments, findings)
        for name, value in field_changes(self.fields, settings, arguments, findings).items():
            if name == "inputs":
                self.fields[name] = value  # they are where they were
            else:
                self.put(name, value, arguments)
        for name in _FOR_PARENTS if not self.is_step else ():
            if self.fields.get(name):
                pointer = self.origins.get(name, f"{self.default}/{name}")
                findings.note(pointer, f"{name}: the job has no parent, so there is nothing to do")
        findings.check()
        try:
            spec = JobSpec.parse(self.fields)
            self._note_unused(spec, findings)
            self._note_size(spec, findings)
            completed = with_data_defaults(spec, self.data_defaults)
            self.origins |= dict.fromkeys(completed.model_fields_set - spec.model_fields_set, "")
            return completed
        except InvalidInput as error:
            findings.take(error, self.origins, self.default)
        findings.check()
        raise AssertionError("a job spec is wrong without a problem")

    def _note_unused(self, spec: JobSpec, findings: Findings) -> None:
        """Note the fields of our own form that have no effect. Those of Azure ML are in compatibility.md."""
        for name, why in unused_fields(spec) if self.data_defaults is OWN and not self.is_step else ():
            field_name, _, below = name.partition("/")
            pointer = self.origins.get(field_name, f"{self.default}/{field_name}")
            findings.note(f"{pointer}/{below}" if below else pointer, f"{why}, so this has no effect")

    def _note_size(self, spec: JobSpec, findings: Findings) -> None:
        """Note a size of a table's mini-batches in bytes where rows are probably meant."""
        number, unit = spec.size.number, spec.size.unit
        if number is None or number >= _FEW_BYTES or unit not in ("plain", "bytes") or spec.partition_keys:
            return
        if any(_is_read(step) for _, each in spec.data_inputs() for step in each.transformations):
            pointer = self.origins.get("mini_batch_size", f"{self.default}/mini_batch_size")
            counted = f"{number} byte{'s' if number > 1 else ''}"
            findings.note(
                pointer, f"mini_batch_size of a table is in bytes: {counted} here; for rows write rows:{number}"
            )


def _is_read(step: str | dict[str, Any]) -> bool:
    return next(iter([step] if isinstance(step, str) else step), "").startswith("read_")
