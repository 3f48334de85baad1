"""Inputs of a pipeline's steps that are known only once other steps have ended."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from parallelrun_core.described import Strict
from parallelrun_core.names.patterns import PLAIN_NAME

StepName = Annotated[str, Field(pattern=PLAIN_NAME)]


class Deferred(Strict):
    """A model that is built on first use: whoever has no pipelines does without."""

    model_config = ConfigDict(defer_build=True)


class StepOutput(Deferred):
    """An output of a step of the same pipeline."""

    step: StepName
    output: str = Field(min_length=1, max_length=255)


class LaterInput(Deferred):
    """An input whose path, or whose value, is known only when the step begins."""

    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"
    mode: Literal["ro_mount", "direct", "download", "eval_mount", "eval_download"] = "ro_mount"
    transformations: tuple[str | dict[str, Any], ...] = ()
    hidden_files: Literal["", "skip", "read"] = ""
    litter_files: Literal["", "skip", "warn", "read"] = ""
    on_mismatch: Literal["", "keep", "null", "error"] = ""
    model: Literal["", "custom_model", "mlflow_model", "triton_model"] = ""
    literal: Literal["", "string", "number", "integer", "boolean"] = ""
    """The type of the value that the step gets in place of a path; empty: it gets the path."""

    def resolved(self, path_or_value: Any) -> dict[str, Any]:
        """The input of the job, as a job spec has it.

        Args:
            path_or_value: its path, or, of a literal, its value.
        """
        if self.literal:
            return {"value": path_or_value}
        fields = self.model_dump(mode="json", include=set(LATER_FIELDS), exclude={"literal"}, exclude_defaults=True)
        return {"path": path_or_value, **fields}


LATER_FIELDS: Final = tuple(LaterInput.model_fields)
"""Fields of an input that are known before its path."""


class StepInput(LaterInput, StepOutput):
    """An input that is the output of another step: its path is known once that step has completed."""


class PipelineInput(LaterInput):
    """An input of the pipeline itself. It is named where the path isn't known when the pipeline is submitted: in a
    pipeline that is a step, of which an input is the output of another step of the outer one, or changes by turns.
    """

    input: str = Field(min_length=1, max_length=255)


class CarriedInput(LaterInput):
    """An input of a loop's body that is an output of the turn before."""

    output: str = Field(min_length=1, max_length=255)
