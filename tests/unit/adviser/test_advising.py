"""Each thing that can be wrong with a job is found, and nothing where nothing is."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from parallelrun_core.adviser import findings
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import DONE, FAILED, Evidence, MeasuredSettings, NodeUse
from parallelrun_core.adviser.findings.case import Guide
from parallelrun_core.adviser.reading.evidence import settings_of
from parallelrun_core.adviser.what_if import curve_of
from parallelrun_core.adviser.words import lines_of
from parallelrun_core.errors import Conflict
from parallelrun_core.spec import JobSpec
from tests.unit.adviser.jobs import advice, ids, went
from tests.unit.test_docs import ROOT, headings

CHANCE = random.Random(19)


def even(count: int, seconds: float, spread: float = 0.2) -> list[float]:
    return [seconds * CHANCE.uniform(1 - spread, 1 + spread) for _ in range(count)]


def test_nothing_is_said_of_a_job_that_is_fine() -> None:
    said = advice(went(even(400, 10)))

    assert said.findings == []
    assert said.summary.startswith("Nothing to change in 400 mini-batches on 1 node, ")
    assert said.basis is not None
    assert said.basis.unexplained_s == pytest.approx(0, abs=0.1)


def test_of_a_job_that_was_only_tried_out_smaller_savings_are_counted() -> None:
    tried = went(even(2, 20), items=100, settings=MeasuredSettings(size=100))
    said = advice(tried)

    assert said.findings == []
    assert "; 1 finding would save less." in said.summary
    assert len(advice(tried, least_s=1).findings) == 1


def test_nothing_is_said_of_a_job_that_has_hardly_begun() -> None:
    assert advice(went([1.0])).findings == []
    nothing = advice(
        Evidence(tries=went([1.0]).tries.where(np.zeros(0, dtype=np.int64)), nodes=[], processes=[], seconds=0)
    )
    assert (nothing.basis, nothing.findings) == (None, [])


def test_tiny_mini_batches_are_to_be_larger() -> None:
    said = advice(went(even(20_000, 0.005), items=1, settings=MeasuredSettings(size=1)), least_s=10)

    first = said.findings[0]
    assert first.id == "mini_batch_too_small"
    assert int(first.change.set["mini_batch_size"]) >= 16
    assert first.saving_s == pytest.approx(20_000 * 0.005 / 4, rel=0.1)
    assert "   see docs/choosing-a-compute.md#mini-batches" in lines_of(said)


def test_findings_lead_to_sections_of_the_guide_that_there_are() -> None:
    listed = (ROOT / "docs" / "advice.md").read_text()
    assert all(section in headings(ROOT / page) for page, _, section in (each.partition("#") for each in Guide))
    texts = [each.read_text() for each in Path(findings.__path__[0]).glob("*.py")]
    names = {name for text in texts for name in re.findall(r'(?:id=|faster\(\s+)"(\w+)"', text)}
    assert len(names) > 15
    assert [each for each in names if f"`{each}`" not in listed] == []


def test_few_large_mini_batches_are_to_be_smaller() -> None:
    assert ids(went(even(3, 300), items=100, settings=MeasuredSettings(size=100)))[0] == "too_few_mini_batches"
    assert ids(went(even(5, 300), items=100, settings=MeasuredSettings(size=100)))[0] == "mini_batch_too_large"


def test_one_giant_item_is_named() -> None:
    work = even(100, 5)
    work[90] = 400.0

    first = advice(went(work, items=1, settings=MeasuredSettings(size=1))).findings[0]

    assert (first.id, first.mini_batches) == ("giant_item", [90])


def test_of_one_that_was_stopped_nobody_knows_how_large_it_is() -> None:
    work = even(200, 1)
    work[90] = 60.0
    outcomes: dict[str, Sequence[float]] = {
        "status": [FAILED if each == 60 else DONE for each in work],
        "category": [int(each == 60) for each in work],
    }
    stopped = went(work, items=1, columns_too=outcomes, categories=["", "RUN_TIMEOUT"])

    said = advice(stopped, least_s=1).findings

    assert [finding.id for finding in said] == ["timeout_too_tight"]
    assert said[0].change.text.startswith("Find out what these few wait for")


@pytest.mark.parametrize("fails_whole", [True, False])
def test_items_that_are_lost_with_others_are_counted(fails_whole: bool) -> None:
    """In 17 mini-batches of four items, at least one item each was bad: 51 of these 68 could have been kept."""
    bad = [each < 17 for each in range(50)]
    outcomes: dict[str, Sequence[float]] = {
        "status": [FAILED if each else DONE for each in bad],
        "category": [int(each) for each in bad],
    }
    settings = MeasuredSettings(size=4, fails_whole=fails_whole)
    evidence = went(even(50, 1), items=4, settings=settings, columns_too=outcomes, categories=["", "USER_EXCEPTION"])

    findings = [each for each in advice(evidence).findings if each.id == "whole_mini_batches"]

    assert [(each.title, each.change.set) for each in findings] == [
        (
            "Mini-batches fail as a whole: up to 51 of these 68 items would have been kept.",
            {"on_failure": "isolate"},
        )
    ] * fails_whole


def test_a_large_group_of_a_key_is_named() -> None:
    work = even(100, 5)
    work[3] = 500.0

    assert ids(went(work, settings=MeasuredSettings(unit="", has_keys=True)))[0] == "skewed_keys"


def test_idle_gpus_get_more_workers() -> None:
    use = NodeUse(cpus=8, gpu_share=0.2, gpu_memory_share=0.15, memory_bytes=64e9)
    evidence = went(even(400, 10), processes=1, uses={"node000": use}, settings=MeasuredSettings(processes=1))

    (finding,) = advice(evidence).findings

    assert (finding.id, finding.change.set) == (
        "gpu_idle",
        {"workers_per_gpu": "4", "max_concurrency_per_instance": "4"},
    )
    assert finding.predicted_s == pytest.approx(evidence.seconds / 4, rel=0.02)


def test_workers_of_busy_gpus_stay_as_they_are() -> None:
    use = NodeUse(cpus=8, gpu_share=0.9, gpu_memory_share=0.15)

    assert ids(went(even(400, 10), processes=1, uses={"node000": use})) == []


def test_a_job_that_chooses_its_sizes_is_advised_no_other_one() -> None:
    """Nor are its larger mini-batches taken for items that are hard."""
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "mini_batch_size": "auto"})
    items = [1] * 160 + [16] * 6 + [100]
    chosen = went([3.0 * each for each in items], items=items, settings=settings_of(spec, is_table=False))
    given = went([3.0 * each for each in items], items=items, settings=MeasuredSettings(unit="", size=1))

    assert [finding.id for finding in advise(given).findings] == ["giant_item"]
    assert advise(chosen).findings == []
    with pytest.raises(Conflict, match="the job chooses it"):
        curve_of(chosen, "mini_batch_size", [10])
    assert curve_of(chosen, "nodes", [1, 2]).points
