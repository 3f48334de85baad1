"""The stages of a leader's term: each transition that is drawn is allowed, and no other."""

from __future__ import annotations

import re
import textwrap
from itertools import product
from pathlib import Path

import pytest

from parallelrun_master.policy import stages
from parallelrun_master.policy.stages import IllegalStage, Stage, TermStages

ARCHITECTURE = Path(__file__).parents[3] / "docs" / "architecture.md"
LEGAL = {
    "candidate": "recovering, turned away",
    "recovering": "starting, processing, finalizing, concluding, retiring, resigned, set back, fenced, cut off",
    "starting": "starting, processing, concluding, resigned, set back, fenced, cut off",
    "processing": "starting, processing, finalizing, concluding, resigned, set back, fenced, cut off",
    "finalizing": "starting, processing, finalizing, concluding, resigned, set back, fenced, cut off",
    "concluding": "retiring, resigned, set back, fenced, cut off",
    "retiring": "retired, resigned, set back, fenced, cut off",
}
PAIRS = {(Stage(first), Stage(then)) for first, following in LEGAL.items() for then in following.split(", ")}
ENDS = set(Stage) - {first for first, _ in PAIRS}


def at(stage: Stage) -> TermStages:
    """A term that has come to this stage."""
    term = TermStages()
    for each in way_to(stage):
        term.enter(each)
    assert term.now is stage
    return term


def way_to(stage: Stage) -> list[Stage]:
    """The shortest way from the beginning."""
    ways: dict[Stage, list[Stage]] = {Stage.CANDIDATE: []}
    while stage not in ways:
        ways |= {then: [*ways[first], then] for first, then in PAIRS if first in ways and then not in ways}
    return ways[stage]


@pytest.mark.parametrize("first, then", sorted(PAIRS))
def test_what_may_follow_a_stage_is_entered(first: Stage, then: Stage) -> None:
    term = at(first)
    term.enter(then)
    assert term.now is then


@pytest.mark.parametrize("first, then", sorted(set(product(Stage, Stage)) - PAIRS))
def test_whatever_else_would_follow_a_stage_is_refused(first: Stage, then: Stage) -> None:
    term = at(first)
    with pytest.raises(IllegalStage, match=f"'{then}'.* can't follow .*'{first}'"):
        term.enter(then)
    assert term.now is first


def test_nothing_follows_the_end_of_a_term() -> None:
    assert {stage.value for stage in ENDS} == {"turned away", "retired", "resigned", "set back", "fenced", "cut off"}


def test_the_drawing_has_all_stages_and_is_also_in_the_documentation() -> None:
    text = stages.__doc__ or ""
    drawing = textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ")))
    assert [stage for stage in Stage if not re.search(rf"\b{stage.value}\b", text.partition("These are")[0])] == []
    assert drawing in ARCHITECTURE.read_text(encoding="utf-8").replace("\n\n", "\n")
