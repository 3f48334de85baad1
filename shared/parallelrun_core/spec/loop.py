"""`Loop`: the turns of a pipeline that has one step, its body (`parallel_for` and `do_while`)."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from parallelrun_core.spec.fields import AnyInput
from parallelrun_core.spec.later_inputs import CarriedInput, Deferred, StepName

MAX_TURNS: Final = 1000
"""Turns of one loop, which are steps of a pipeline (Azure ML's client allows as many of a `do_while`)."""


class Loop(Deferred):
    """The turns of a loop, and the inputs that its body has in each."""

    type: Literal["parallel_for", "do_while"]
    items: dict[StepName, dict[str, AnyInput]] = Field(default_factory=dict, max_length=MAX_TURNS)
    """`parallel_for`: the names of the turns, each with the inputs of the body that are its own."""
    items_from: str = Field(default="", max_length=255)
    """`parallel_for`: the input of the pipeline that has the items, as JSON; empty: `items` has them."""
    carried: dict[str, CarriedInput] = Field(default_factory=dict)
    """`do_while`: inputs of the body that are outputs of the turn before; in the first turn, inputs of the pipeline."""
    condition: str = Field(default="", max_length=255)
    """`do_while`: the output of the body that holds true when another turn is to follow; empty: one always is."""
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=MAX_TURNS)
    """`do_while`: most turns."""
