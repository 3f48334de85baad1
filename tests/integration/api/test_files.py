"""Logs and outputs: served whole or in part, and never anything else than they are."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.unit.core.factories import names_in

pytestmark = pytest.mark.integration

LINES = b"".join(b"line %d\n" % n for n in range(1000))

PROBLEM = "application/problem+json"

TRAVERSALS = [
    "../job.json",
    "user/../../job.json",
    "..",
    ".",
    "/etc/passwd",
    "//etc/passwd",
    "..%2fjob.json",
    "%2e%2e/job.json",
    "%2e%2e%2fjob.json",
    "%252e%252e%252fjob.json",
    "..%5cjob.json",
    "..\\job.json",
    "user/%00",
    "user%0a",
    "user/%e2%80%a5/job.json",
    "....//job.json",
    ";/../job.json",
    "user/..;/job.json",
    "file:///etc/passwd",
    "~root",
    "%c0%ae%c0%ae/job.json",
    "a" * 300,
    "a/" * 500,
    "%ff%fe",
    "?x=../job.json",
    "#/../job.json",
    "",
]


@pytest.fixture
def folder(root: Path, job_id: str) -> JobFolder:
    made = JobFolder(root, job_id)
    made.layout.make_folders()
    (made.logs / "user").mkdir(parents=True)
    (made.logs / "user" / "a b ü.txt").write_bytes(LINES)
    return made


@pytest.fixture
def log(job_id: str, folder: JobFolder) -> str:
    return f"/v1/jobs/{job_id}/logs/user/{quote('a b ü.txt')}"


class TestListing:
    def test_it_is_recursive_and_by_path(self, api: httpx.Client, job_id: str, folder: JobFolder) -> None:
        (folder.logs / "job_result.txt").write_text("fine")

        found = api.get(f"/v1/jobs/{job_id}/logs").json()

        assert [(entry["path"], entry["bytes"]) for entry in found["items"]] == [
            ("job_result.txt", 4),
            ("user/a b ü.txt", len(LINES)),
        ]
        assert found["items"][0]["modified"].endswith("Z")
        assert found["truncated"] is False

    def test_it_follows_no_link_and_names_nothing_that_cannot_be_asked_for(
        self, api: httpx.Client, job_id: str, folder: JobFolder
    ) -> None:
        (folder.logs / "folder").symlink_to("/etc")
        (folder.logs / "file").symlink_to("/etc/passwd")
        (folder.logs / "loop").symlink_to(".")
        os.mkfifo(folder.logs / "pipe")
        Path(os.fsdecode(bytes(folder.logs) + b"/\xff\xfe")).write_text("")
        (folder.logs / "line\nbreak").write_text("")

        found = api.get(f"/v1/jobs/{job_id}/logs").json()

        assert [entry["path"] for entry in found["items"]] == ["user/a b ü.txt"]

    @pytest.mark.parametrize("kind", ["logs", "outputs"])
    def test_a_long_listing_comes_in_pages(self, kind: str, api: httpx.Client, job_id: str, folder: JobFolder) -> None:
        for n in range(10_001):
            (folder.path / kind / f"{n}.part.gz").touch()
        listing = f"/v1/jobs/{job_id}/{kind}"

        first = api.get(listing).json()
        second = api.get(listing, params={"page_token": first["next_page_token"]}).json()

        assert (len(first["items"]), first["truncated"]) == (10_000, True)
        assert (second["truncated"], second["next_page_token"]) == (False, None)
        paths = [entry["path"] for entry in first["items"] + second["items"]]
        assert paths == sorted(paths)
        assert {f"{n}.part.gz" for n in range(10_001)} <= set(paths)
        assert api.get(listing, params={"page_token": "none"}).status_code == 422

    @pytest.mark.parametrize("kind", ["logs", "outputs"])
    def test_nothing_yet(self, kind: str, api: httpx.Client, root: Path, job_id: str) -> None:
        assert names_in(JobFolder(root, job_id).path) == ["job.json"]
        assert api.get(f"/v1/jobs/{job_id}/{kind}").json()["items"] == []


class TestReading:
    def test_a_whole_log(self, api: httpx.Client, log: str) -> None:
        answer = api.get(log)

        assert (answer.status_code, answer.content) == (200, LINES)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''a%20b%20%C3%BC.txt"
        assert answer.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize(
        "header, begin, end",
        [
            ("bytes=0-0", 0, 1),
            ("bytes=10-19", 10, 20),
            ("bytes=100-", 100, None),
            ("bytes=-5", -5, None),
            ("bytes=0-99999999", 0, None),
            ("bytes=-99999999", 0, None),
        ],
    )
    def test_a_range(self, header: str, begin: int, end: int | None, api: httpx.Client, log: str) -> None:
        answer = api.get(log, headers={"Range": header})

        expected = LINES[begin:end]
        first = begin % len(LINES)
        assert (answer.status_code, answer.content) == (206, expected)
        assert answer.headers["content-range"] == f"bytes {first}-{first + len(expected) - 1}/{len(LINES)}"

    @pytest.mark.parametrize("header", ["bytes=8890-", "bytes=99999-100000", "bytes=-0"])
    def test_a_range_behind_the_end(self, header: str, api: httpx.Client, log: str) -> None:
        answer = api.get(log, headers={"Range": header})

        assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
        assert answer.headers["content-range"] == f"bytes */{len(LINES)}"

    @pytest.mark.parametrize(
        "header", ["bytes=0-1,5-6", "lines=1-2", "bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "bytes=" + "9" * 99]
    )
    def test_ranges_that_are_not_known_give_the_whole(self, header: str, api: httpx.Client, log: str) -> None:
        answer = api.get(log, headers={"Range": header})

        assert (answer.status_code, answer.content) == (200, LINES)

    def test_a_range_of_another_file_gives_the_whole(self, api: httpx.Client, log: str, folder: JobFolder) -> None:
        tag = api.get(log).headers["etag"]
        same = api.get(log, headers={"Range": "bytes=0-3", "If-Range": tag})
        (folder.logs / "user" / "a b ü.txt").write_bytes(b"new")
        other = api.get(log, headers={"Range": "bytes=0-1", "If-Range": tag})

        assert (same.status_code, same.content) == (206, b"line")
        assert (other.status_code, other.content) == (200, b"new")

    @pytest.mark.parametrize("lines", [1, 2, 999, 1000, 5000, 10**12])
    def test_the_last_lines(self, lines: int, api: httpx.Client, log: str) -> None:
        answer = api.get(f"{log}?tail={lines}")

        assert answer.content.splitlines() == LINES.splitlines()[-lines:]

    def test_no_lines(self, api: httpx.Client, log: str) -> None:
        assert api.get(f"{log}?tail=0").content == b""

    def test_the_output(self, api: httpx.Client, job_id: str, master: Master) -> None:
        master.begin(job_id)
        master.end(job_id, JobState.COMPLETED, rows=LINES * 1000)

        answer = api.get(f"/v1/jobs/{job_id}/outputs/parallel_run_step.txt")

        assert answer.content == LINES * 1000
        assert answer.headers["content-type"] == "application/octet-stream"

    def test_a_log_that_grows_while_it_is_read(self, api: httpx.Client, log: str, folder: JobFolder) -> None:
        with api.stream("GET", log) as response, (folder.logs / "user" / "a b ü.txt").open("ab") as file:
            file.write(LINES * 100)
            assert response.read() == LINES


class TestEscapes:
    @pytest.mark.parametrize("path", TRAVERSALS)
    @pytest.mark.parametrize("kind", ["logs", "outputs"])
    def test_no_path_leads_outside(
        self, kind: str, path: str, shared_api: ApiServer, job_id: str, folder: JobFolder
    ) -> None:
        status, media_type, body = shared_api.get(f"/v1/jobs/{job_id}/{kind}/{path}")

        assert (status, media_type) in ((404, PROBLEM), (422, PROBLEM)), body
        assert b"root:" not in body
        assert b"entry_script" not in body

    @pytest.mark.parametrize("job", ["..", "%2e%2e", "..%2f..", "job_x%2f..", "%00", "job_0000000000000000000%0a", "*"])
    @pytest.mark.parametrize("rest", ["", "/logs", "/logs/x", "/outputs", "/outputs/x", "/events", "/mini-batches"])
    def test_no_id_leads_outside(self, job: str, rest: str, api: httpx.Client, shared_api: ApiServer) -> None:
        status, media_type, body = shared_api.get(f"/v1/jobs/{job}{rest}")

        assert (status, media_type) == (404, PROBLEM), body

    @pytest.mark.parametrize("kind", ["logs", "outputs"])
    def test_links_that_a_job_planted_are_not_there(
        self, kind: str, api: httpx.Client, job_id: str, folder: JobFolder
    ) -> None:
        place = folder.path / kind
        (place / "file").symlink_to("/etc/passwd")
        (place / "inside").symlink_to("../job.json")
        (place / "folder").symlink_to("/etc")
        (place / "hidden").mkdir()
        os.mkfifo(place / "pipe")

        for path in ("file", "inside", "folder", "folder/passwd", "hidden", "pipe"):
            assert api.get(f"/v1/jobs/{job_id}/{kind}/{path}").status_code == 404, path

    @pytest.mark.parametrize("kind", ["logs", "outputs"])
    def test_the_folder_itself_may_be_a_link(
        self, kind: str, api: httpx.Client, job_id: str, folder: JobFolder
    ) -> None:
        (folder.path / kind).rename(folder.path / "away")
        (folder.path / kind).symlink_to("/etc")

        assert api.get(f"/v1/jobs/{job_id}/{kind}/passwd").status_code == 404
        assert api.get(f"/v1/jobs/{job_id}/{kind}").json()["items"] == []


class TestNamedOutputFolder:
    def test_only_the_jobs_own_file_is_shown(self, api: httpx.Client, site: Site, master: Master) -> None:
        out = site.folder / "out"
        out.mkdir()
        (out / "private.txt").write_text("secret")
        job_id = api.post("/v1/jobs", json=site.spec(output=str(out))).json()["id"]
        outputs = f"/v1/jobs/{job_id}/outputs"
        before = api.get(outputs).json()["items"]
        master.begin(job_id)
        master.end(job_id, JobState.COMPLETED, rows=b"1\n")

        after = api.get(outputs).json()["items"]

        assert before == []
        assert [entry["path"] for entry in after] == ["parallel_run_step.txt"]
        assert api.get(f"{outputs}/parallel_run_step.txt").content == b"1\n"
        assert api.get(f"{outputs}/private.txt").status_code == 404

    def test_a_folder_that_was_replaced_by_a_link(self, api: httpx.Client, site: Site) -> None:
        """With all of the machine allowed, a link leads where it leads, but not to a link again."""
        out = site.folder / "out"
        spec = site.spec(output=str(out), append_row_file_name="link")
        job_id = api.post("/v1/jobs", json=spec).json()["id"]
        out.mkdir()
        (out / "link").symlink_to("/etc/passwd")

        assert api.get(f"/v1/jobs/{job_id}/outputs/link").status_code == 404
        assert api.get(f"/v1/jobs/{job_id}/outputs").json()["items"] == []

    def test_none_for_a_job_without_rows(self, api: httpx.Client, site: Site) -> None:
        spec = site.spec(output=str(site.folder), output_action="summary_only")
        job_id = api.post("/v1/jobs", json=spec).json()["id"]

        assert api.get(f"/v1/jobs/{job_id}/outputs").status_code == 404

    def test_outputs_with_a_path_of_their_own_are_below_their_names(self, api: httpx.Client, site: Site) -> None:
        where, file = site.folder / "models", site.folder / "else" / "report.csv"
        outputs = {
            "models": {"path": str(where)},
            "report": {"type": "uri_file", "path": str(file)},
            "here": {},
        }
        job_id = api.post("/v1/jobs", json=site.spec(outputs=outputs)).json()["id"]
        (where / "deep").mkdir(parents=True)
        (where / "deep" / "a.bin").write_bytes(b"model")
        (where / "link").symlink_to("/etc/passwd")
        file.parent.mkdir(parents=True)
        file.write_text("a,b\n")
        (file.parent / "private.csv").write_text("secret")

        found = api.get(f"/v1/jobs/{job_id}/outputs").json()["items"]

        assert [(entry["path"], entry["bytes"]) for entry in found] == [
            ("models/deep/a.bin", 5),
            ("report/report.csv", 4),
        ]
        got = {entry["path"]: api.get(f"/v1/jobs/{job_id}/outputs/{entry['path']}").content for entry in found}
        assert got == {"models/deep/a.bin": b"model", "report/report.csv": b"a,b\n"}
        for path in ("models/link", "report/private.csv", "models", "report", "deep/a.bin", "here/x", "models/../x"):
            assert api.get(f"/v1/jobs/{job_id}/outputs/{quote(path, safe='')}").status_code in (404, 422), path

    def test_named_outputs_in_a_folder_that_the_job_named(self, api: httpx.Client, site: Site) -> None:
        out = site.folder / "out"
        outputs = {"models": {}, "report": {"type": "uri_file", "file_name": "r.csv"}}
        job_id = api.post("/v1/jobs", json=site.spec(output=str(out), outputs=outputs)).json()["id"]
        (out / "models").mkdir(parents=True)
        for path in ("models/a", "r.csv", "private", "parallel_run_step.txt"):
            (out / path).touch()
        found = api.get(f"/v1/jobs/{job_id}/outputs").json()["items"]
        assert [entry["path"] for entry in found] == ["models/a", "parallel_run_step.txt", "r.csv"]

    def test_outputs_in_stores_are_named_and_not_read(self, api: httpx.Client, site: Site) -> None:
        outputs = {"images": {}, "report": {"type": "uri_file", "path": "gs://b/r.csv"}, "local": {}}
        outputs["local"] = {"path": str(site.folder / "local")}
        spec = site.spec(output="s3://b/out", outputs=outputs)
        refused = api.post("/v1/jobs", json=spec).json()["errors"]
        assert [problem["pointer"] for problem in refused] == ["/outputs/report/type"]
        job_id = api.post("/v1/jobs", json={**spec, "append_row_to": "report"}).json()["id"]
        (site.folder / "local").mkdir()
        (site.folder / "local" / "a.txt").write_text("a")
        answer = api.get(f"/v1/jobs/{job_id}/outputs").json()
        assert [each["path"] for each in answer["items"]] == ["local/a.txt"]
        assert answer["elsewhere"] == [
            {"output": "images", "url": "s3://b/out/images"}, {"output": "report", "url": "gs://b/r.csv"},
            {"output": "", "url": "s3://b/out"},
        ]  # fmt: skip
        spec["outputs"].clear()
        job_id = api.post("/v1/jobs", json=spec).json()["id"]
        rows = api.get(f"/v1/jobs/{job_id}/outputs/parallel_run_step.txt")
        assert rows.status_code == 404
        assert "s3://b/out/parallel_run_step.txt" in rows.json()["detail"]

    def test_two_jobs_cannot_write_the_same_object(self, api: httpx.Client, site: Site) -> None:
        assert api.post("/v1/jobs", json=site.spec(output="s3://b/same")).status_code == 202
        second = api.post("/v1/jobs", json=site.spec(output="s3a://b/same/"))
        assert (second.status_code, second.json()["errors"][0]["pointer"]) == (409, "/output")

    def test_an_output_that_became_a_link_to_our_own_files_is_not_shown(
        self, api: httpx.Client, site: Site, root: Path
    ) -> None:
        where = site.folder / "models"
        job_id = api.post("/v1/jobs", json=site.spec(outputs={"models": {"path": str(where)}})).json()["id"]
        for target in (root, root / "jobs", root.parent):
            where.symlink_to(target)
            assert api.get(f"/v1/jobs/{job_id}/outputs").json()["items"] == []
            where.unlink()
