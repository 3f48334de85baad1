"""Outputs become assets once, whoever registers them and however often."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest

from parallelrun_core.assets import registering
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.registering import register_outputs
from parallelrun_core.spec.fields import Output, OutputAsset

JOB = "job_01kav3x8n2h7q5m9c4t6"
OTHER = "job_01kav3x8n2h7q5m9c4t7"


def output(version: str = "", kind: str = "uri_folder") -> dict[str, Output]:
    return {"rows": Output(asset=OutputAsset(name="scores", version=version, type=kind))}  # type: ignore[arg-type]


def register(
    root: Path, job: str, version: str = "", kind: str = "uri_folder", generation: int = 0
) -> tuple[list[str], list[str]]:
    (place := root / "jobs" / job / "rows").mkdir(parents=True, exist_ok=True)
    made, refused = register_outputs(root, job, output(version, kind), {"rows": str(place)}, generation)
    return [asset.id for asset in made], refused


def test_an_output_is_registered_once_however_often_a_leader_does_it(tmp_path: Path) -> None:
    assert register(tmp_path, JOB) == register(tmp_path, JOB) == (["azureml:scores:1"], [])
    assert register(tmp_path, OTHER) == (["azureml:scores:2"], [])
    assert register(tmp_path, JOB) == (["azureml:scores:1"], [])
    assert len(Catalog(tmp_path).versions("data", "scores")) == 2


def test_what_a_job_has_made_in_a_later_generation_is_another_version(tmp_path: Path) -> None:
    assert register(tmp_path, JOB) == (["azureml:scores:1"], [])
    for _ in range(2):
        assert register(tmp_path, JOB, generation=1) == (["azureml:scores:2"], [])
        assert register(tmp_path, JOB) == (["azureml:scores:1"], [])
    assert register(tmp_path, JOB, "7") == (["azureml:scores:7"], [])
    made, (refused,) = register(tmp_path, JOB, "7", generation=1)
    assert made == []
    assert "a version never changes" in refused


def test_a_catalog_that_can_not_be_written_is_told_or_waited_for(tmp_path: Path) -> None:
    (tmp_path / "assets").touch()
    made, (refused,) = register(tmp_path, JOB)
    assert made == []
    assert "'rows' is not registered as 'scores'" in refused
    full = OSError(errno.ENOSPC, "no room")
    with patch.object(registering, "add_made", side_effect=full), pytest.raises(OSError, match="no room"):
        register(tmp_path, JOB)


def test_leaders_that_register_at_the_same_time_make_one_version_for_each_job(tmp_path: Path) -> None:
    jobs = [f"{JOB[:-1]}{number}" for number in range(6)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda job: register(tmp_path, job)[0], jobs * 4))
    assert made[:6] == made[6:12] == made[12:18] == made[18:]
    assert len({version for (version,) in made}) == 6
    assert len(Catalog(tmp_path).versions("data", "scores")) == 6


def test_a_version_that_somebody_took_after_it_was_chosen_is_left_to_him(tmp_path: Path) -> None:
    register(tmp_path, JOB)
    catalog = Catalog(tmp_path)
    (record,) = (tmp_path / "assets" / "data" / "scores" / "versions").iterdir()
    record.unlink()  # it died between choosing and making it
    catalog.add("data", "scores", {"type": "uri_folder", "path": "/other"}, version="1")
    assert register(tmp_path, JOB) == register(tmp_path, JOB) == (["azureml:scores:2"], [])
    assert catalog.get("data", "scores", "1").content["path"] == "/other"


def test_a_model_becomes_one_and_a_version_that_there_is_stays_what_it_is(tmp_path: Path) -> None:
    assert register(tmp_path, JOB, "7", "custom_model") == (["azureml:scores:7"], [])
    assert Catalog(tmp_path).names("model") == ["scores"]
    made, (refused,) = register(tmp_path, OTHER, "7", "custom_model")
    assert made == []
    assert "'rows' is not registered as 'scores'" in refused
    assert "a version never changes" in refused


def test_what_was_never_written_is_not_registered(tmp_path: Path) -> None:
    made, refused = register_outputs(tmp_path, JOB, output(), {"rows": str(tmp_path / "nothing")})
    assert (made, len(refused)) == ([], 1)
    made, refused = register_outputs(tmp_path, JOB, output(), {"rows": "s3://bucket/rows"})
    assert ([asset.id for asset in made], refused) == (["azureml:scores:1"], [])


@pytest.mark.parametrize("outputs", [{}, {"rows": Output()}])
def test_outputs_without_a_name_leave_nothing(tmp_path: Path, outputs: dict[str, Output]) -> None:
    assert register_outputs(tmp_path, JOB, outputs, {"rows": str(tmp_path)}) == ([], [])
    assert list(tmp_path.iterdir()) == []
