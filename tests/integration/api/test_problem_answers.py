"""Errors have one form, whatever was wrong, and those of the contract."""

from __future__ import annotations

import json
import socket
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

JOB = "job_" + "0" * 20


def _answer(port: int, request: bytes) -> HTTPResponse:
    """The head of the answer to what is sent at once on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        answer = HTTPResponse(connection)
        answer.begin()
        return answer


class TestProblems:
    @pytest.mark.parametrize(
        "path, allowed",
        [
            ("/v1/jobs", "GET, POST"),
            (f"/v1/jobs/{JOB}", "DELETE, GET"),
            (f"/v1/jobs/{JOB}:retry", "POST"),
            (f"/v1/jobs/{JOB}/logs/a/b", "GET"),
        ],
    )
    def test_a_wrong_method_is_answered_with_all_that_are_right(
        self, path: str, allowed: str, api: httpx.Client
    ) -> None:
        answer = api.request("TRACE", path)

        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)

    @pytest.mark.parametrize("ids", ["[false]", "[1.0]", '["1"]', "[-1]", "[18446744073709551616]"])
    def test_ids_are_whole_numbers_and_nothing_that_could_be_one(self, ids: str, api: httpx.Client) -> None:
        body = f'{{"mini_batches": {ids}}}'
        answer = api.post(f"/v1/jobs/{JOB}:retry", content=body, headers={"Content-Type": "application/json"})

        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/body/mini_batches/0")

    def test_a_key_that_is_given_twice_hides_nothing_else(self, api: httpx.Client, site: Site) -> None:
        text = (
            f"entry_script: main.py\ncode: {site.code}\nnodes: 2\ncode: x\ninputs: {site.data}\nretries: 1\ncode: y\n"
        )
        answer = api.post("/v1/jobs", content=text, headers={"Content-Type": "application/yaml"})
        told = [f"{each['pointer']} {each['message']}" for each in answer.json()["errors"]]
        assert answer.status_code == 422
        assert [each.partition("the key ")[2] for each in told[:2]] == ["'code' is given twice, first on line 2"] * 2, (
            told
        )
        assert [each.partition(" ")[0] for each in told[2:]] == ["/nodes", "/retries"], told

    def test_a_body_that_is_no_text_is_a_problem_of_the_contract(self, api: httpx.Client) -> None:
        headers = {"Content-Type": "application/json"}
        answer = api.post(f"/v1/jobs/{JOB}:retry", content=b"\xff\xfe", headers=headers)

        documented = api.get("/v1/openapi.json").json()["paths"]["/v1/jobs/{job_id}:retry"]["post"]["responses"]
        assert str(answer.status_code) in documented

    @pytest.mark.parametrize(
        "method, path, status, code",
        [
            ("GET", "/nowhere", 404, "not_found"),
            ("GET", "/v1/jobs/", 404, "not_found"),
            ("GET", "/docs", 404, "not_found"),
            ("PUT", "/v1/jobs", 405, "method_not_allowed"),
            ("PUT", f"/v1/jobs/{JOB}", 405, "method_not_allowed"),
            ("GET", f"/v1/jobs/{JOB}:cancel", 405, "method_not_allowed"),
            ("GET", "/v1/jobs?limit=x", 422, "invalid_input"),
        ],
    )
    def test_every_error_has_the_same_form(
        self, method: str, path: str, status: int, code: str, api: httpx.Client
    ) -> None:
        answer = api.request(method, path)

        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
        assert problem["type"] == f"urn:parallelrun:problem:{code}"
        assert problem["instance"] == path.partition("?")[0]
        assert problem["title"]
        assert problem["detail"]

    def test_a_bug_is_told_as_one_and_found_in_the_log(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
            record = JobFolder(server.root, job_id).path / "job.json"
            record.write_text(json.dumps({**json.loads(record.read_text()), "submitted": 1e300}))  # no date

            answer = api.get(f"/v1/jobs/{job_id}")
            entry = server.wait_for("request_failed")

        assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
        assert answer.json()["trace_id"] == entry["trace_id"]
        assert "Traceback" not in answer.text

    def test_a_body_over_the_limit(self, redis_url: str, tmp_path: Path) -> None:
        with (
            ApiServer(tmp_path, redis_url, "--max-body-bytes", "2000") as server,
            server.client() as api,
        ):
            declared = api.post("/v1/jobs", content=b"x" * 2001, headers={"Content-Type": "application/yaml"})
            form = api.post("/v1/jobs", data={"spec": "a: 1"}, files={"code": b"x" * 2001})
            chunked = api.post(
                "/v1/jobs", content=iter([b"x" * 1500] * 2), headers={"Content-Type": "application/yaml"}
            )

        for answer in (declared, form, chunked):
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")

    def test_who_is_answered_before_the_body_was_sent_is_told_that_the_connection_ends(
        self, redis_url: str, tmp_path: Path
    ) -> None:
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/yaml\r\nContent-Length: 2001\r\n\r\n"
        with ApiServer(tmp_path, redis_url, "--max-body-bytes", "2000") as server:
            answers = [_answer(server.port, head), _answer(server.port, head + b"x" * 2001)]

        assert [answer.status for answer in answers] == [413, 413]
        assert [answer.getheader("connection") for answer in answers] == ["close", None]
