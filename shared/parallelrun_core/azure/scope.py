"""The context in which a step of a pipeline is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from parallelrun_core.azure.findings import Findings
from parallelrun_core.spec.expressions import UNIQUE_NAME

Fields = dict[str, Any]
"""One input or output, as the job spec has it, with `LATER` if its path is not known yet."""

LATER: Final = "later"
STAND_IN: Final = "/to/be/known/later"
"""In the place of such a path, while the job is checked."""


class Later(NamedTuple):
    """What an input is, whose path is not known yet."""

    step: str
    """The step whose output it is; empty: an input of the pipeline itself."""
    name: str
    """Of that output or input."""


@dataclass
class PipelineScope:
    """The context in which a step is read: its pipeline's inputs and outputs, its other steps, and the findings."""

    findings: Findings
    job_name: str = "job"
    unique_name: str = UNIQUE_NAME
    """What `${{name}}` stands for: no other job has this name."""
    default_datastore: str = ""
    """What the pipeline's settings name; empty if they name none."""
    inputs: Mapping[str, Fields | None] = field(default_factory=dict)
    """None for one that is optional and not given."""
    outputs: Mapping[str, Fields] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """From the pointer of an input of the step to that of the pipeline's input that it is bound to."""
    inputs_at: str = "/inputs"
    """The pointer of the pipeline's inputs."""
    outputs_at: str = "/outputs"
    """The pointer of its outputs."""
    depth: int = 0
    """In how many other pipelines this one is."""
    steps: Mapping[str, Mapping[str, str]] | None = None
    """The type of each output of each step; None: the step is the only one."""
    later: dict[str, Later] = field(default_factory=dict)
    """By name, the inputs of the step that have a stand-in for their path."""
    outputs_to: dict[str, str] = field(default_factory=dict)
    """From the name of an output of the step to that of the pipeline's output which it is."""
