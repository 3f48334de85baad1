"""Submission: what is accepted is durable, what isn't leaves nothing behind."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from parallelrun import Client
from parallelrun_api.submission.key_claims import KeyClaims
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.store import keys
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq.entries import LEAD, queue
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import ENTRY_SCRIPT, Site, footprint
from tests.integration.api.server import ApiServer, Master

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


class TestAccepted:
    def test_the_answer_says_where_the_job_is(self, api: httpx.Client, site: Site) -> None:
        answer = api.post("/v1/jobs", json=site.spec(name="digits"))

        job = answer.json()
        assert answer.status_code == 202
        assert answer.headers["location"] == f"/v1/jobs/{job['id']}" == job["links"]["self"]
        assert (job["name"], job["state"], job["version"]) == ("digits", "queued", 0)
        again = api.get(answer.headers["location"]).json()
        assert {**again, "pace": None} == {**job, "pace": None}, "but for its pace, which is that of each moment"

    def test_the_job_is_on_disk_and_waits_for_a_leader(
        self, api: httpx.Client, site: Site, root: Path, redis: Redis
    ) -> None:
        job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]

        record = JobFolder(root, job_id).record()
        assert record.job_spec().data_paths() == [str(site.data)]
        assert (JobFolder(root, job_id).code(record) / "main.py").read_text() == ENTRY_SCRIPT
        assert Registry(redis).active_jobs() == [job_id]
        assert queue(redis, LEAD).job_ids == [f"lead-{job_id}-0"]

    @pytest.mark.parametrize("media_type", ["application/yaml", "text/yaml", "application/x-yaml; charset=utf-8"])
    def test_yaml(self, api: httpx.Client, site: Site, media_type: str) -> None:
        answer = api.post("/v1/jobs", content=yaml.safe_dump(site.spec()), headers={"Content-Type": media_type})

        assert answer.status_code == 202, answer.text

    def test_json_with_tabs_and_escapes_that_yaml_does_not_know(self, api: httpx.Client, site: Site) -> None:
        text = json.dumps(site.spec(description="\N{GRINNING FACE}"), indent="\t", ensure_ascii=True)

        answer = api.post("/v1/jobs", content=text, headers={"Content-Type": "application/json"})

        assert answer.json()["spec"]["description"] == "\N{GRINNING FACE}"

    def test_a_zip_of_the_code(self, api: httpx.Client, site: Site, root: Path) -> None:
        answer = api.post(
            "/v1/jobs",
            data={"spec": yaml.safe_dump(site.spec(code=None, entry_script="pkg/main.py"))},
            files={"code": ("code.zip", zipped({"pkg/main.py": ENTRY_SCRIPT, "pkg/model.bin": "x"}))},
        )

        assert answer.status_code == 202, answer.text
        folder = JobFolder(root, answer.json()["id"])
        assert {path.name for path in (folder.code(folder.record()) / "pkg").iterdir()} == {"main.py", "model.bin"}

    def test_a_zip_and_characters_that_json_writes_in_two_halves(self, shared_api: ApiServer, site: Site) -> None:
        told = {"\N{GRINNING FACE}": "a \N{ROCKET} \u2028 b"}

        with Client(f"http://127.0.0.1:{shared_api.port}") as client:
            job = client.jobs.create(site.spec(tags=told, description="\N{ROCKET}"))

            assert client.jobs.get(job.id).spec["tags"] == told
            assert job.spec["description"] == "\N{ROCKET}"

    def test_the_parts_of_the_form_may_come_in_any_order(self, api: httpx.Client, site: Site) -> None:
        spec = json.dumps(site.spec(code=None)).encode()

        answer = api.post(
            "/v1/jobs",
            files=[
                ("code", ("code.zip", zipped({"main.py": ENTRY_SCRIPT}))),
                ("spec", ("job.yml", spec, "application/yaml")),
            ],
        )

        assert answer.status_code == 202, answer.text

    def test_equal_code_is_kept_once(self, api: httpx.Client, site: Site, root: Path) -> None:
        first, second = (api.post("/v1/jobs", json=site.spec()).json()["id"] for _ in range(2))

        assert JobFolder(root, first).record().code == JobFolder(root, second).record().code

    def test_a_code_folder_that_holds_the_shared_folder(self, redis_url: str, redis: Redis, site: Site) -> None:
        """As when a job file lies beside `.parallelrun`: jobs must not become part of the code of later jobs."""
        root = site.code / "deep" / "root"
        root.parent.mkdir()
        with ApiServer(root, redis_url) as server, server.client() as api:
            first, second = (api.post("/v1/jobs", json=site.spec()).json()["id"] for _ in range(2))

        folder = JobFolder(root, second)
        assert JobFolder(root, first).record().code == folder.record().code
        assert [path.name for path in folder.code(folder.record()).rglob("*.py")] == ["main.py"]

    @pytest.mark.parametrize("pattern", ["*.txt", "o?e.txt", "../data/*", "**/*.txt"])
    def test_a_pattern_as_input(self, api: httpx.Client, site: Site, pattern: str) -> None:
        answer = api.post("/v1/jobs", json=site.spec(inputs={"data": f"{site.data}/{pattern}"}))

        assert answer.status_code == 202, answer.text

    def test_an_output_folder_that_is_yet_to_be_made(self, api: httpx.Client, site: Site) -> None:
        answer = api.post("/v1/jobs", json=site.spec(output=str(site.folder / "new" / "out")))

        assert answer.status_code == 202, answer.text
        assert not (site.folder / "new").exists()

    def test_values_of_environment_variables_are_masked(self, api: httpx.Client, site: Site, root: Path) -> None:
        answer = api.post("/v1/jobs", json=site.spec(environment_variables={"KEY": "canary-4412"}))

        job_id = answer.json()["id"]
        assert answer.json()["spec"]["environment_variables"] == {"KEY": "***"}
        assert "canary-4412" not in api.get("/v1/jobs").text + api.get(f"/v1/jobs/{job_id}").text
        assert JobFolder(root, job_id).record().spec["environment_variables"] == {"KEY": "canary-4412"}


Change = Callable[[Site], dict[str, Any]]


def changed(**changes: Any) -> Change:
    return lambda site: site.spec(**changes)


def empty_folder(site: Site) -> dict[str, Any]:
    (site.folder / "empty" / "below").mkdir(parents=True)
    return site.spec(inputs={"data": str(site.folder / "empty")})


def broken_script(source: str) -> Change:
    def change(site: Site) -> dict[str, Any]:
        (site.code / "main.py").write_text(source)
        return site.spec()

    return change


def output_is_a_file(site: Site) -> dict[str, Any]:
    (site.folder / "out").write_text("")
    return site.spec(output=str(site.folder / "out"))


def file_as_code(site: Site) -> dict[str, Any]:
    return site.spec(code=str(site.code / "main.py"))


REFUSED: dict[str, tuple[Change, str, str]] = {
    "a missing folder": (
        lambda site: site.spec(inputs={"data": str(site.folder / "none")}),
        "/inputs/data/path",
        "there is no file or folder",
    ),
    "an empty folder": (empty_folder, "/inputs/data/path", "has no files"),
    "a pattern without a match": (
        lambda site: site.spec(inputs={"data": f"{site.data}/*.csv"}),
        "/inputs/data/path",
        "no file matches",
    ),
    "a pattern in a missing folder": (
        lambda site: site.spec(inputs={"data": f"{site.folder}/none/*.csv"}),
        "/inputs/data/path",
        "there is no file or folder",
    ),
    "a folder as uri_file": (
        lambda site: site.spec(inputs={"data": {"path": str(site.data), "type": "uri_file"}}),
        "/inputs/data/path",
        "is a folder",
    ),
    "a relative input": (changed(inputs={"data": "data"}), "/inputs/data/path", "is relative, but there is no job"),
    "a relative code folder": (changed(code="./code"), "/code", "is relative, but there is no job"),
    "a relative output": (changed(output="out"), "/output", "is relative, but there is no job"),
    "a URL after file:, as input": (changed(inputs={"data": "file:s3://b/x"}), "/inputs/data/path", "is relative"),
    "a URL after file:, as code": (changed(code="file:s3://b/x"), "/code", "is relative"),
    "a URL after file:, as output": (changed(output="file:s3://b/x"), "/output", "is relative"),
    "a path with a NUL": (changed(code="/a\0b"), "/code", "NUL"),
    "no code at all": (changed(code=None), "/code", "required"),
    "a missing code folder": (changed(code="/no/such/folder"), "/code", "there is no folder"),
    "a file as code": (file_as_code, "/code", "there is no folder"),
    "no entry script": (changed(entry_script="other.py"), "/entry_script", "there is no file 'other.py'"),
    "an entry script outside": (changed(entry_script="../main.py"), "/entry_script", "there is no file"),
    "a syntax error": (broken_script("def run(:\n"), "/entry_script", "invalid syntax"),
    "an entry script without run": (broken_script("def main(): pass\n"), "/entry_script", "does not define run()"),
    "an entry script too deep to parse": (broken_script("-" * 100_000 + "1"), "/entry_script", "too deeply"),
    "an output that is a file": (output_is_a_file, "/output", "is not a folder"),
    "an output that is no file": (changed(output="/proc/parallelrun"), "/output", "no file on a disk"),
    "an unknown field": (changed(mini_batch_sise=3), "/mini_batch_sise", "unknown field"),
    "a wrong type": (changed(mini_batch_size="many"), "/mini_batch_size", "a whole number"),
    "half a character in a value": (changed(tags={"a": "b\ud800"}), "", "half of a character"),
    "half a character in a variable": (changed(environment_variables={"A\ud800": "b"}), "", "half of a character"),
    "half a character": (changed(**{"x\ud800": 1}), "", "half of a character"),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED)
    def test_what_is_wrong_is_said_where_it_is(
        self, case: str, api: httpx.Client, site: Site, root: Path, redis: Redis
    ) -> None:
        change, pointer, message = REFUSED[case]
        spec = change(site)
        before = footprint(root)

        answer = api.post("/v1/jobs", content=json.dumps(spec), headers={"Content-Type": "application/json"})

        problem = answer.json()
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert [entry["pointer"] for entry in problem["errors"]] == [pointer]
        assert message in problem["errors"][0]["message"]
        assert footprint(root) - before <= {"code"}
        assert redis.keys(f"{keys.PREFIX}*") == []

    def test_unknown_fields_come_with_what_was_probably_meant(self, api: httpx.Client, site: Site) -> None:
        answer = api.post("/v1/jobs", json=site.spec(mini_batch_sise=3))

        assert answer.json()["errors"][0]["hint"] == "did you mean 'mini_batch_size'?"

    def test_everything_that_is_wrong_is_said_at_once(self, api: httpx.Client, site: Site) -> None:
        answer = api.post(
            "/v1/jobs", json=site.spec(code="/no/code", inputs={"data": "/no/data"}, output="/proc/parallelrun")
        )

        pointers = [entry["pointer"] for entry in answer.json()["errors"]]
        assert pointers == ["/code", "/inputs/data/path", "/output"]

    def test_an_output_that_is_there_already(self, api: httpx.Client, site: Site) -> None:
        (site.folder / "parallel_run_step.txt").write_text("precious")

        answer = api.post("/v1/jobs", json=site.spec(output=str(site.folder)))

        assert answer.status_code == 409
        assert "another folder" in answer.json()["errors"][0]["hint"]

    def test_an_output_that_another_job_will_write(self, api: httpx.Client, site: Site, master: Master) -> None:
        out, also_out = site.folder / "out", site.folder / "also-out"
        out.mkdir()
        also_out.symlink_to(out)
        first = api.post("/v1/jobs", json=site.spec(output=str(out))).json()["id"]

        answer = api.post("/v1/jobs", json=site.spec(output=str(also_out)))

        assert answer.status_code == 409
        (problem,) = answer.json()["errors"]
        assert problem["pointer"] == "/output"
        assert f"job {first} will write 'parallel_run_step.txt'" in problem["message"]
        other_name = site.spec(output=str(out), append_row_file_name="other.txt")
        for spec in (other_name, site.spec(output=str(site.folder / "elsewhere")), site.spec(), site.spec()):
            assert api.post("/v1/jobs", json=spec).status_code == 202
        master.begin(first)
        master.end(first, JobState.FAILED)
        second = api.post("/v1/jobs", json=site.spec(output=str(out)))
        assert second.status_code == 202, "the first one doesn't write it any more"
        again = api.post(f"/v1/jobs/{first}:resume")
        assert again.status_code == 409
        assert f"job {second.json()['id']} will write" in again.text

    @pytest.mark.parametrize("inner", ["jobs", "code", "jobs/job_x/outputs"])
    def test_an_output_among_the_files_of_the_services(
        self, inner: str, api: httpx.Client, site: Site, root: Path
    ) -> None:
        answer = api.post("/v1/jobs", json=site.spec(output=str(root / inner)))

        assert answer.status_code == 422
        assert "is among ParallelRun's own files" in answer.text

    def test_a_zip_and_a_code_folder(self, api: httpx.Client, site: Site) -> None:
        answer = api.post(
            "/v1/jobs",
            data={"spec": json.dumps(site.spec())},
            files={"code": zipped({"main.py": ENTRY_SCRIPT})},
        )

        assert answer.json()["errors"][0]["pointer"] == "/code"

    def test_values_of_environment_variables_are_not_repeated(self, api: httpx.Client, site: Site) -> None:
        answer = api.post("/v1/jobs", json=site.spec(environment_variables={"PIN": [77317731]}))

        assert answer.status_code == 422
        assert "77317731" not in answer.text

    @pytest.mark.parametrize(
        "body, media_type, status, code",
        [
            (b"{", "application/json", 422, "invalid_input"),
            (b"[1]", "application/json", 422, "invalid_input"),
            (b"\xff\xfe\xfd", "application/json", 422, "invalid_input"),
            (b"[" * 100_000, "application/json", 422, "invalid_input"),
            (b"a: [", "application/yaml", 422, "invalid_input"),
            (b"!!python/object/apply:os.system [id]", "application/yaml", 422, "invalid_input"),
            (b"", "application/yaml", 422, "invalid_input"),
            (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
            (b"a=b", None, 415, "unsupported_media_type"),
            (b"x" * (1 << 20) + b"x", "application/yaml", 413, "body_too_large"),
            (b"", "multipart/form-data", 422, "invalid_input"),
            (b"", "multipart/form-data; boundary=x", 422, "invalid_input"),
            (b"--y\r\n", "multipart/form-data; boundary=x", 422, "invalid_input"),
            (
                b'--x\r\nContent-Disposition: form-data; name="spec"\r\n\r\na: 1',
                "multipart/form-data; boundary=x",
                422,
                "invalid_input",
            ),
            (
                b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\n1\r\n--x--\r\n',
                "multipart/form-data; boundary=x",
                422,
                "invalid_input",
            ),
            (
                b'--x\r\nContent-Disposition: form-data; name="code"\r\n\r\n1\r\n--x--\r\n',
                "multipart/form-data; boundary=x",
                422,
                "invalid_input",
            ),
        ],
    )
    def test_bodies_that_are_no_job(
        self, body: bytes, media_type: str | None, status: int, code: str, api: httpx.Client
    ) -> None:
        answer = api.post("/v1/jobs", content=body, headers={"Content-Type": media_type} if media_type else {})

        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


class TestIdempotency:
    def test_fifty_at_once_become_one_job(
        self, api: httpx.Client, site: Site, key: str, root: Path, redis: Redis
    ) -> None:
        before = footprint(root)
        answers: list[httpx.Response] = []
        start = threading.Barrier(50)

        def submit() -> None:
            start.wait()
            answers.append(api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key}))

        threads = [threading.Thread(target=submit) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {answer.status_code for answer in answers} == {202}
        ids = {answer.json()["id"] for answer in answers}
        assert len(answers) == 50
        assert len(ids) == 1
        assert {path for path in footprint(root) - before if path.startswith("jobs/")} == {f"jobs/{ids.pop()}"}
        assert redis.zcard(keys.ACTIVE_JOBS) == 1

    def test_another_body_is_refused(self, api: httpx.Client, site: Site, key: str) -> None:
        api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})

        answer = api.post("/v1/jobs", json=site.spec(name="other"), headers={"Idempotency-Key": key})

        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")

    def test_the_same_form_is_the_same_request(self, api: httpx.Client, site: Site, key: str) -> None:
        def submit(code: bytes) -> httpx.Response:
            return api.post(
                "/v1/jobs",
                data={"spec": json.dumps(site.spec(code=None))},
                files={"code": code},
                headers={"Idempotency-Key": f'"{key}"'},
            )

        code = zipped({"main.py": ENTRY_SCRIPT})
        first, again, other = submit(code), submit(code), submit(zipped({"main.py": ENTRY_SCRIPT + "\n"}))

        assert first.json()["id"] == again.json()["id"]
        assert other.json()["code"] == "idempotency_key_reused"

    def test_a_refused_request_can_be_mended_under_its_key(self, api: httpx.Client, site: Site, key: str) -> None:
        first = api.post("/v1/jobs", json=site.spec(code="/no/code"), headers={"Idempotency-Key": key})
        again = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})

        assert (first.status_code, again.status_code) == (422, 202)

    def test_a_refused_request_can_be_repeated(self, api: httpx.Client, site: Site, key: str) -> None:
        (site.data / "one.txt").rename(site.folder / "one.txt")
        first = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})
        (site.folder / "one.txt").rename(site.data / "one.txt")

        again = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})

        assert (first.status_code, again.status_code) == (422, 202)

    def test_the_answer_stays_the_same_when_the_input_has_gone(self, api: httpx.Client, site: Site, key: str) -> None:
        first = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})
        (site.data / "one.txt").unlink()

        again = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": key})

        assert again.json()["id"] == first.json()["id"]

    def test_a_request_that_died_half_way_is_finished_by_the_next(
        self, api: httpx.Client, site: Site, key: str, redis: Redis, root: Path
    ) -> None:
        """The key is claimed, and nothing else has happened: its owner was killed right then."""
        body = json.dumps(site.spec()).encode()
        claimed = "job_" + "1" * 20  # other tests ask for the one of zeros, which isn't there
        now = Registry(redis).now()
        KeyClaims(root).claim(key, hashlib.sha256(body).hexdigest(), claimed, now=now)

        answer = api.post(
            "/v1/jobs", content=body, headers={"Idempotency-Key": key, "Content-Type": "application/json"}
        )

        assert (answer.status_code, answer.json()["id"]) == (202, claimed)

    @pytest.mark.parametrize("key", ["", "a b", "x" * 129, "ü", "a/b", "{k}"])
    def test_unusable_keys(self, key: str, api: httpx.Client, site: Site) -> None:
        answer = api.post("/v1/jobs", json=site.spec(), headers={b"Idempotency-Key": key.encode()})

        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/header/idempotency-key"
