"""The main job on real input: by command line, over HTTP, in containers; the same bytes come out of all of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.compose import Compose
from tests.acceptance.embedded import Embedded, parallelrun
from tests.acceptance.http_user import HttpUser, zip_of

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

OUTPUT = "digits.txt"


@pytest.fixture(scope="session")
def rows(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The output of the job when it is run as the README says it."""
    folder = tmp_path_factory.mktemp("command") / "out"
    said = parallelrun(
        "run", digits / "job.yml", "--output", folder, "--nodes", "2", "--processes", "2", cwd=folder.parent
    )
    assert said.code == 0, said
    assert said.out.splitlines() == [f"output: {folder / OUTPUT}", f"logs: {folder / 'logs'}"]
    assert sorted(path.name for path in folder.iterdir()) == [OUTPUT, "logs"]
    return (folder / OUTPUT).read_bytes()


def test_by_command_line_every_image_has_its_row(digits: Path, rows: bytes) -> None:
    with (digits / "data" / "labels.csv").open(newline="") as file:
        truth = dict(csv.reader(file))
    found = dict(line.split(" ") for line in rows.decode().splitlines())

    assert [line.split(" ")[0] for line in rows.decode().splitlines()] == sorted(truth)
    assert len(truth) == 899
    assert sum(found[name] == digit for name, digit in truth.items()) / len(truth) > 0.95


def test_over_http_the_same_bytes(digits: Path, rows: bytes, embedded: Embedded) -> None:
    with embedded.user() as user:
        assert bytes_by_http(user, digits, digits) == rows


@pytest.mark.docker
@pytest.mark.timeout(600)
def test_in_containers_the_same_bytes(digits: Path, rows: bytes, compose: Compose) -> None:
    with compose.user() as user:
        assert bytes_by_http(user, digits, Path("/inputs") / digits.relative_to(compose.inputs)) == rows


def bytes_by_http(user: HttpUser, digits: Path, there: Path) -> bytes:
    """Run the job of the example's own job file.

    Args:
        there: where the cluster finds the example.
    """
    spec: dict[str, Any] = yaml.safe_load((digits / "job.yml").read_text())
    code = digits / spec.pop("code")
    spec["inputs"]["images"] = str(there / spec["inputs"]["images"])
    spec["inputs"]["model"]["path"] = str(there / spec["inputs"]["model"]["path"])
    job_id = user.submit(spec, zip_of(code))
    job = user.completed(job_id)
    assert job["progress"]["rows"] == job["progress"]["items_done"] == 899
    return user.download(job_id, OUTPUT)
