"""A pipeline's spec in the making, with the origin of each of its fields in the user's document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import Findings
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec, PipelineSpec


class StepDraft(NamedTuple):
    draft: Draft | PipelineDraft
    known_part: JobSpec | PipelineSpec
    """Its spec, without the inputs that other steps make."""


@dataclass
class PipelineDraft:
    """Fields of a pipeline's spec, and where in the document their values came from."""

    fields: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """The fields of the spec, each with a pointer into the document."""
    default: str = ""
    """The pointer for all other fields."""
    steps: dict[str, StepDraft] = field(default_factory=dict)

    def finish(self, findings: Findings) -> PipelineSpec:
        """The pipeline's spec.

        Raises:
            InvalidInput: with all problems that were found.
        """
        findings.check()
        try:
            return PipelineSpec.parse(self.fields)
        except InvalidInput as error:
            findings.take(error, self.origins, self.default)
        findings.check()
        raise AssertionError("a pipeline is wrong without a problem")
