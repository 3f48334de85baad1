"""The audit log says who changed or fetched what, and who was turned away, whatever a client puts into its request."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import httpx
import pytest

from parallelrun_api.app import create_app
from parallelrun_api.azure import credentials
from parallelrun_api.context import build_context
from parallelrun_api.http.audit import Audit, AuditFile, ListedRefusals, ReadCounts, ReadKind
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.security.azure_target import ML, UPLOADS

TOKEN = "of-the-submitter"
_NO_JOB = "job_00000000000000000000"
OWN = {"Authorization": f"Bearer {TOKEN}"}


OF_THE_JOB_ITSELF = {
    "get_job",
    "events",
    "show_document",
    "show_settings",
    "show_advice",
    "show_what_if",
    "explain",
    "show_storage",
    "show_node_usage",
    "list_asset_labels",
}
"""Routes that hand out how a job stands and what it was told, and nothing of its logs, inputs and outputs."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


CHANGES: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "resume": lambda api, job: api.post(f"/v1/jobs/{job}:resume", json={}),
    "retry": lambda api, job: api.post(f"/v1/jobs/{job}:retry", json={}),
    "cancel": lambda api, job: api.post(f"/v1/jobs/{job}:cancel"),
    "read_log": lambda api, job: api.get(f"/v1/jobs/{job}/logs/readme.txt"),
    "read_output": lambda api, job: api.get(f"/v1/jobs/{job}/outputs/rows.txt"),
}

OF_AZURE: dict[str, Callable[[httpx.Client], httpx.Response]] = {
    "hand_out_token": lambda api: api.get(f"/azure/identity?resource={ML}", headers={"X-IDENTITY-HEADER": TOKEN}),
    "write_blob": lambda api: api.put(blob_url(), content=b"text", headers={"x-ms-blob-type": "BlockBlob"}),
    "read_output": lambda api: api.get(blob_url()),
}


def blob_url() -> str:
    query = credentials.new_signature(TOKEN.encode(), "default", "azureml-blobstore", "rw", now=time.time())
    return f"{UPLOADS}/a.txt?{query}"


@pytest.mark.integration
def test_changes_downloads_and_refusals_are_on_record(redis_url: str, redis: object, tmp_path: Path) -> None:
    check_record(redis_url, tmp_path)


def check_record(redis_url: str, tmp_path: Path, without: str = "") -> None:
    """Do all that is to be on record, and compare."""
    log, site = tmp_path / "audit.log", Site.made(tmp_path)
    flags = ("--token", TOKEN, "--audit-log", str(log))
    with ApiServer(tmp_path / "root", redis_url, *flags, without=without) as server, server.client(headers=OWN) as api:
        job = api.post("/v1/jobs", json=site.spec(), headers={"X-Request-Id": "of-the-client"}).json()["id"]
        done = [("submit", 202), *((did, ask(api, job).status_code) for did, ask in CHANGES.items())]
        done += [(did, ask(api).status_code) for did, ask in OF_AZURE.items()]
        api.get(f"/v1/jobs/{job}")
        refused = [
            api.get("/v1/jobs", headers={"Authorization": "Bearer wrong"}),
            api.post(f"/v1/jobs/{job}:cancel", headers={"Origin": "https://elsewhere.example"}),
            api.get("/v1/jobs", headers={"Host": "elsewhere.example"}),
        ]
    written = lines_of(log)
    assert [(line["did"], line["status"]) for line in written] == [
        *done, ("refused", 401), ("refused", 403), ("refused", 421)
    ]  # fmt: skip
    assert {line["job_id"] for line in written[:6]} == {job}
    assert [line["path"] for line in written[7:9]] == ["azureml-blobstore/a.txt"] * 2
    assert {line["token_name"] for line in written[:9]} == {"default"}
    assert {line["token_name"] for line in written[9:]} == {""}
    assert {line["address"] for line in written} == {"127.0.0.1"}
    assert written[0]["request_id"] == "of-the-client"
    assert [line["request_id"] for line in written[9:]] == [answer.headers["x-request-id"] for answer in refused]
    assert TOKEN not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.integration
def test_it_tells_apart_who_has_a_token_of_their_own(redis_url: str, redis: object, tmp_path: Path) -> None:
    log, tokens = tmp_path / "audit.log", tmp_path / "tokens"
    tokens.write_text("anna token-of-anna-0001\nci.nightly token-of-nightly-01\n")
    flags = ("--token", TOKEN, "--tokens-file", str(tokens), "--audit-log", str(log))
    with ApiServer(tmp_path / "root", redis_url, *flags) as server, server.client() as api:
        for token in (TOKEN, "token-of-anna-0001", "token-of-nightly-01", "token-of-anna-0002"):
            api.post(f"/v1/jobs/{_NO_JOB}:cancel", headers={"Authorization": f"Bearer {token}"})
    assert [line["token_name"] for line in lines_of(log)] == ["default", "anna", "ci.nightly", ""]
    assert "token-of" not in log.read_text() + "".join(server.raw_log)


@pytest.mark.integration
def test_without_a_file_it_is_among_the_other_lines(redis_url: str, redis: object, tmp_path: Path) -> None:
    with ApiServer(tmp_path / "root", redis_url, "--token", TOKEN) as server, server.client() as api:
        answer = api.post("/v1/jobs", headers={"X-Request-Id": "not an id"})
        server.stop()

    audit = [line for line in server.log if line["action"] == "audit"]
    assert [(line["did"], line["status"], line["asked"]) for line in audit] == [("refused", 401, "POST /v1/jobs")]
    assert audit[0]["request_id"] == answer.headers["x-request-id"]


@pytest.mark.integration
def test_a_change_of_anything_names_it(redis_url: str, redis: object, tmp_path: Path) -> None:
    log, names = tmp_path / "audit.log", {"job_id": _NO_JOB, "kind": "data", "asset": "images", "version": "3"}
    with (
        ApiServer(tmp_path / "root", redis_url, "--token", TOKEN, "--audit-log", str(log)) as server,
        server.client(headers=OWN) as api,
    ):
        paths: dict[str, dict[str, Any]] = api.get("/v1/openapi.json").json()["paths"]
        changes = [
            (method, path, re.findall(r"\{(\w+)", path))
            for path, methods in paths.items()
            for method in methods
            if method not in ("get", "parameters") and "{" in path
        ]
        for method, path, keys in changes:
            api.request(method, path.format(**{key: names.get(key, f"a-{key}") for key in keys}), json={})
    things: set[str] = set()
    for line, (method, path, keys) in zip(lines_of(log), changes, strict=True):
        named = {key: names.get(key, f"a-{key}") for key in keys}
        if "asset" in named:
            named["asset"] = f"{named.pop('kind')}/{named['asset']}"
        assert line.items() >= named.items(), (method, path)
        things |= named.keys()
    assert things >= {"job_id", "asset", "schedule", "endpoint", "deployment", "limit", "node", "compute", "name"}


def asked(
    path: str = "/", *, method: str = "POST", state: dict[str, str] | None = None, **more: object
) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "client": ("10.1.2.3", 1), "state": state or {}, **more}


def test_what_a_client_writes_stays_one_harmless_line(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    audit = Audit(AuditFile(log))
    path = '/a\n{"did": "cancel"}\r\x1b[2J\x7f\u202e\u2028\ud800' + "x" * 5000
    audit.answered(asked(path), 401, [])
    audit.close()

    raw = log.read_bytes()
    assert raw.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in raw[:-1])
    assert len(raw) < 4000
    (line,) = lines_of(log)
    assert (line["did"], line["asked"]) == ("refused", f"POST {path}"[:1000])


def test_a_line_says_what_the_address_names_and_who_was_handed_a_right(tmp_path: Path) -> None:
    audit = Audit(AuditFile(tmp_path / "audit.log"))
    for route, given in (
        ("put_asset", {"kind": "data", "asset": "images"}),
        ("write_blob", {"container": "up-1", "blob": "a/b.txt"}),
        ("put_schedule", {"schedule": "nightly"}),
    ):
        audit.answered(asked(route=SimpleNamespace(name=route), path_params=given), 201, [])
    audit.answered(asked(method="GET", route=SimpleNamespace(name="hand_out_token", reads="each")), 200, [])
    audit.close()

    lines = lines_of(tmp_path / "audit.log")
    assert [line["did"] for line in lines] == ["put_asset", "write_blob", "put_schedule", "hand_out_token"]
    assert (lines[0]["asset"], lines[1]["path"], lines[2]["schedule"]) == ("data/images", "up-1/a/b.txt", "nightly")


def test_refusals_in_masses_are_counted_and_hide_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    audit = Audit(AuditFile(log), ListedRefusals(lambda: 100.0))
    for _ in range(1000):
        audit.answered(asked(), 401, [])
    audit.answered(asked(state={"token_name": "default"}), 202, [(b"location", b"/v1/jobs/job_1")])
    for _ in range(10):
        audit.answered(asked(), 403, [])
    audit.close()

    listed = lines_of(log)
    assert len(listed) < 50
    assert sum(line.get("count", 1) for line in listed if line["did"].startswith("refused")) == 1010
    assert [line["job_id"] for line in listed if line["did"] == "unknown"] == ["job_1"]


def test_a_full_file_is_put_aside_and_a_few_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    audit = Audit(AuditFile(log, max_bytes=1000))
    for number in range(100):
        audit.answered(asked(state={"request_id": str(number)}), 202, [])
    audit.close()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.log", *(f"audit.log.{number}" for number in range(1, 6))]
    kept = [line["request_id"] for name in [*names[:0:-1], names[0]] for line in lines_of(tmp_path / name)]
    assert kept == [str(number) for number in range(100 - len(kept), 100)]
    for name in names:
        assert (tmp_path / name).stat().st_size <= 1000
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("of somebody else")
    (tmp_path / "audit.log").symlink_to("other")

    with pytest.raises(OSError, match="symbolic links"):
        AuditFile(tmp_path / "audit.log")


def test_what_the_file_cannot_take_goes_to_stderr_and_no_half_of_a_line_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, write = tmp_path / "audit.log", os.write
    audit = Audit(AuditFile(log))
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        audit.answered(asked(state={"request_id": "1"}), 202, [])
    audit.answered(asked(state={"request_id": "2"}), 202, [])
    audit.close()

    assert [line["request_id"] for line in lines_of(log)] == ["2"]
    assert '"request_id": "1"' in capsys.readouterr().err


def test_audit_log_knows_each_route_that_hands_out_what_jobs_have_made() -> None:
    app = create_app(build_context(ApiSettings()), Token())
    routes = app.state.late.routes
    reading = [each for each in routes if each.methods == {"GET"} and re.search("{job_id|{asset", each.path)]
    assert {each.name for each in reading if not each.reads} == OF_THE_JOB_ITSELF
    assert {each.reads for each in routes} == {*get_args(ReadKind)}
    text = Path("docs/rest-api.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text.partition("The kinds are")[2][:200] for kind in get_args(ReadKind)[2:])


def test_reads_of_several_people_are_counted_and_push_out_no_change(tmp_path: Path) -> None:
    log, reads, now = tmp_path / "audit.log", tmp_path / "audit.log.reads", [0.0]
    audit = Audit(
        AuditFile(log, max_bytes=1000), reads_file=AuditFile(reads, max_bytes=1000), reads=ReadCounts(lambda: now[0])
    )
    audit.has_people = lambda: True
    audit.answered(asked(state={"request_id": "change"}), 202, [])
    for number in range(600):
        now[0] = number * 10.0
        for route, job_id in (("list_mini_batches", "job_1"), ("search_logs", "job_1"), ("list_mini_batches", "job_2")):
            state = {"token_name": "anna", "request_id": str(number)}
            named = SimpleNamespace(name=route, reads="logs" if "logs" in route else "mini_batches")
            audit.answered(asked(method="GET", state=state, route=named, path_params={"job_id": job_id}), 200, [])
    audit.close()
    assert [line["request_id"] for line in lines_of(log)] == ["change"]
    names = sorted((path for path in tmp_path.iterdir() if ".reads" in path.name), key=lambda path: path.name)
    assert len(names) == 6
    lines = [line for path in names for line in lines_of(path)]
    assert {(line["did"], line["token_name"]) for line in lines} == {("read", "anna")}
    assert {(line["kind"], line["job_id"]) for line in lines} == {
        ("mini_batches", "job_1"), ("logs", "job_1"), ("mini_batches", "job_2"),
    }  # fmt: skip
    assert 29 <= max(line["count"] for line in lines) <= 31, "of five minutes"


def test_what_a_person_alone_reads_is_not_on_record(tmp_path: Path) -> None:
    audit = Audit(AuditFile(tmp_path / "audit.log"), reads_file=AuditFile(tmp_path / "reads"))
    audit.answered(asked(method="GET", route=SimpleNamespace(name="search_logs", reads="logs")), 200, [])
    audit.close()
    assert not (tmp_path / "reads").read_text()
