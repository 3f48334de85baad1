"""Which trials are made, what they may do, and what is proposed in the end."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from parallelrun.embedded import datastores
from parallelrun.tuning import tuning
from parallelrun.tuning.trials import Tried, spec_of_trial
from parallelrun.tuning.tuning import result, tune
from parallelrun_core.adviser.evidence import MeasuredSettings
from parallelrun_core.adviser.trial import Trial
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.spec import JobSpec
from tests.unit.adviser.jobs import went

FIELDS: dict[str, Any] = {
    "entry_script": "main.py", "code": "/code", "inputs": {"data": {"path": "/inputs"}}, "mini_batch_size": 2,
    "output": "/results", "outputs": {"scores": {"path": "/mine", "asset": {"name": "scores"}}},
    "notify": "https://example.com/", "instance_count": 4, "resume_from": "job_01kav3x8n2h7q5m9c4t6",
}  # fmt: skip


def test_a_trial_writes_nowhere_tells_nobody_and_runs_on_one_node() -> None:
    spec = spec_of_trial(JobSpec.parse(FIELDS), 3, {"mini_batch_size": "8"})

    assert (spec.output, spec.outputs["scores"].path, spec.outputs["scores"].asset) == ("", "", None)
    assert (spec.notify, spec.resume_from, spec.instance_count) == (None, "", 1)
    assert (spec.mini_batch_size, spec.max_concurrency_per_instance) == (8, 3)


def test_what_has_no_mini_batches_is_not_tuned() -> None:
    with pytest.raises(InvalidInput, match="only a job with mini-batches"):
        spec_of_trial(JobSpec.parse({"command": "true", "code": "/code"}), 3, {})


def test_a_job_that_chooses_its_size_is_tried_with_given_ones() -> None:
    auto = JobSpec.parse({**FIELDS, "mini_batch_size": "auto"})
    assert [spec_of_trial(auto, 3, changes).mini_batch_size for changes in ({}, {"mini_batch_size": "8"})] == [1, 8]


def trial(seconds: float, changes: dict[str, str]) -> Tried:
    settings = MeasuredSettings(size=int(changes.get("mini_batch_size", "2")))
    return Tried(changes, Trial(went([seconds] * 400, settings=settings), 4000), is_listed=True)


def test_the_best_of_all_is_proposed_with_as_many_nodes_as_are_needed() -> None:
    slow, quick = trial(2.0, {}), trial(1.0, {"mini_batch_size": "8"})

    tuned = result([slow, quick], 300.0)

    assert tuned.best is quick
    assert tuned.changes == {"mini_batch_size": "8", "instance_count": str(tuned.nodes)}
    assert tuned.seconds <= 300 < quick.trial.seconds((tuned.nodes or 0) - 1)
    assert result([slow], None).changes == {}
    assert result([quick], 0.1).nodes is None


class NoCluster:
    """Nothing is started."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.layout = self
        self.root = Path("/nowhere")

    def __enter__(self) -> NoCluster:
        return self

    def __exit__(self, *_: object) -> None: ...

    def client(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


@pytest.mark.parametrize("helps, tries", [(True, 3), (False, 2)])
def test_what_is_advised_is_tried_as_long_as_it_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, helps: bool, tries: int
) -> None:
    def tried(_: Any, __: Path, spec: JobSpec, changes: dict[str, str], *, seconds: float) -> Tried:
        assert seconds == 2.0
        assert str(spec.mini_batch_size) == changes.get("mini_batch_size", "2")
        return trial(0.002 / int(spec.mini_batch_size or 1) if helps else 0.002 * (1 + len(changes)), changes)

    monkeypatch.setattr(tuning, "Cluster", NoCluster)
    monkeypatch.setattr(tuning, "tried", tried)
    monkeypatch.setattr(datastores, "give_to", lambda _: None)
    (tmp_path / "main.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    own: Reading = read_job({**FIELDS, "code": str(tmp_path), "inputs": str(tmp_path)})
    seen: list[Tried] = []

    tuned = tune(own, target_s=None, trial_s=2.0, most_trials=3, on_note=print, on_trial=seen.append)

    assert len(tuned.tried) == len(seen) == tries
    assert tuned.tried[0].changes == {}
    assert ("mini_batch_size" in tuned.changes) is helps
