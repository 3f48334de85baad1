"""The context in which a step of a pipeline is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from parallelrun_core.azure.findings import Findings
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.expressions import UNIQUE_NAME
from parallelrun_core.spec.pipeline_steps import MAX_STEPS_READ

Fields = dict[str, Any]
"""One input or output, as the job spec has it, with `LATER` if its path is not known yet."""

LATER: Final = "later"
STAND_IN: Final = "/to/be/known/later"
"""In the place of such a path, or of such a value, while the job is checked."""


class Later(NamedTuple):
    """An input whose path, or whose value, is not known yet."""

    step: str
    """The step whose output it is; empty: an input of the pipeline itself."""
    name: str
    """The name of that output or input."""
    literal: str = ""
    """The type of the value that it is; empty: it is a path."""


class DocumentTooLarge(InvalidInput):
    """Pipelines are in pipelines without an end, or have too many or too large steps: nothing more of them is read."""


MAX_TEXT: Final = 32 << 20
"""Characters of all steps with their components: a large one to which many refer would take any amount of memory."""


@dataclass
class ReadBudget:
    """The budget of reading: a component that has itself as its steps would have no end of them."""

    steps: int = MAX_STEPS_READ
    text: int = MAX_TEXT

    def take(self, steps: int, pointer: str) -> None:
        """Count the steps of a pipeline, before any of them is read.

        Raises:
            DocumentTooLarge: there were too many, with those of all pipelines before.
        """
        self.steps -= steps
        if self.steps < 0:
            message = f"it has more than {MAX_STEPS_READ:,} steps with those of the pipelines in it"
            raise DocumentTooLarge.at(pointer, message, "make several pipelines of it")

    def take_text(self, document: Any, pointer: str) -> None:
        """Count what a component has, or what a step is made of.

        Raises:
            DocumentTooLarge: there was too much, with all before.
        """
        self.text -= len(repr(document))
        if self.text < 0:
            message = f"with what its steps refer to, the pipeline has more than {MAX_TEXT >> 20} MiB"
            raise DocumentTooLarge.at(
                pointer, message, "make components and environments smaller, or several pipelines of it"
            )


@dataclass
class PipelineScope:
    """The context in which a step is read: its pipeline's inputs and outputs, its other steps, and the findings."""

    findings: Findings
    job_name: str = "job"
    unique_name: str = UNIQUE_NAME
    """The value of `${{name}}`: no other job has this name."""
    default_datastore: str = ""
    """The datastore that the pipeline's settings name; empty if they name none."""
    default_compute: str = ""
    """The compute that the pipeline names for all of its steps; empty if it names none."""
    inputs: Mapping[str, Fields | None] = field(default_factory=dict)
    """None for one that is optional and not given."""
    outputs: Mapping[str, Fields] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """Pointers of the step's inputs, each with that of the pipeline's input that it is bound to."""
    inputs_at: str = "/inputs"
    """The pointer of the pipeline's inputs."""
    outputs_at: str = "/outputs"
    """The pointer of its outputs."""
    depth: int = 0
    """Number of other pipelines that this one is in."""
    budget: ReadBudget = field(default_factory=ReadBudget)
    """The budget of a document, one for all of its pipelines."""
    steps: Mapping[str, Mapping[str, str]] | None = None
    """The type of each output of each step; None: the step is the only one."""
    later: dict[str, Later] = field(default_factory=dict)
    """By name, the inputs of the step that have a stand-in for their path, or for their value."""
    outputs_to: dict[str, str] = field(default_factory=dict)
    """Names of the step's outputs, each with that of the pipeline's output which it is."""
