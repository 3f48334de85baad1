"""Which folders a job may name, as the API answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def test_roots_that_jobs_must_stay_in(redis_url: str, redis: Redis, site: Site, tmp_path: Path) -> None:
    with (
        ApiServer(tmp_path / "root", redis_url, "--allowed-roots", f"{site.data}:{site.code}") as server,
        server.client() as api,
    ):
        (site.data / "link").symlink_to("/etc")
        fine = api.post("/v1/jobs", json=site.spec())
        outside = api.post("/v1/jobs", json=site.spec(inputs={"data": "/etc"}))
        by_link = api.post("/v1/jobs", json=site.spec(inputs={"data": str(site.data / "link")}))
        by_dots = api.post("/v1/jobs", json=site.spec(inputs={"data": f"{site.data}/../../../etc"}))
        by_pattern = api.post("/v1/jobs", json=site.spec(inputs={"data": "/e*/passwd"}))
        output = api.post("/v1/jobs", json=site.spec(output=str(tmp_path / "out")))

    assert fine.status_code == 202
    for answer in (outside, by_link, by_dots, by_pattern, output):
        assert answer.status_code == 422
        assert "outside of the folders that jobs may use" in answer.json()["errors"][0]["message"]


def test_only_the_shared_folder_when_others_can_reach_the_server(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    with (
        ApiServer(tmp_path / "root", redis_url, "--host", "0.0.0.0", "--token", "t") as server,
        server.client(headers={"Authorization": "Bearer t"}) as api,
    ):
        answer = api.post("/v1/jobs", json=site.spec())

    assert [entry["pointer"] for entry in answer.json()["errors"]] == ["/code", "/inputs/data/path"]


def test_a_named_output_folder_that_a_job_swaps_for_a_link(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    allowed = f"{site.data}:{site.code}:{tmp_path}/out"
    (tmp_path / "out").mkdir()
    with ApiServer(tmp_path / "root", redis_url, "--allowed-roots", allowed) as server, server.client() as api:
        spec = site.spec(output=str(tmp_path / "out" / "mine"), append_row_file_name="passwd")
        job_id = api.post("/v1/jobs", json=spec).json()["id"]
        (tmp_path / "out" / "mine").symlink_to("/etc")

        assert api.get(f"/v1/jobs/{job_id}/outputs/passwd").status_code == 404
        assert api.get(f"/v1/jobs/{job_id}/outputs").status_code == 404
