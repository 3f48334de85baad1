"""Which image the nodes of a job are of: the one that it names, where its compute has nodes of any image."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.computes.catalog import Catalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.computes.images import has_image, image_of
from parallelrun_core.computes.selection import Selection
from parallelrun_core.spec import JobSpec


@pytest.mark.parametrize("kind, image", [("docker", "team/a:1"), ("local", ""), ("manual", "")])
def test_a_job_is_recorded_with_an_image_only_where_it_gets_one(tmp_path: Path, kind: str, image: str) -> None:
    catalog = Catalog(tmp_path)
    catalog.put(read_definition({"name": "pool", "type": kind}))
    spec = JobSpec.parse(
        {
            "entry_script": "e.py",
            "inputs": "/in",
            "compute": "pool",
            "environment": {"image": "team/a:1", "pip": ["six"]},
        }
    )

    recorded = spec.model_dump(mode="json") | Selection(catalog).place(spec)

    assert image_of(recorded) == image
    assert has_image({"steps": {"one": {"job": recorded}}}) == bool(image)
    assert recorded["environment"]["pip"] == ["six"]


def test_without_a_compute_the_name_of_an_image_has_no_effect(tmp_path: Path) -> None:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "environment": {"image": "team/a:1"}})

    recorded = spec.model_dump(mode="json") | Selection(Catalog(tmp_path)).place(spec)

    assert recorded["environment"]["image"] == "team/a:1"
    assert image_of(recorded) == ""
