"""A job in pictures: what its tries have left in its folder, summed up for a screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.layout import Logs
from parallelrun_core.wire.outcome import Failure, encode_all
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import RUN_FAILED, ApiServer, Master, outcome
from tests.unit.api.reports import REPORT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

BEGIN = 1763700000.0


def read(api: httpx.Client, job_id: str, what: str) -> dict[str, Any]:
    """The whole of an answer, which may take more than one request."""
    deadline = time.monotonic() + 20
    while True:
        answer = api.get(f"/v1/jobs/{job_id}/{what}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        if shown["read_share"] == 1:
            return shown
        assert time.monotonic() < deadline


@pytest.fixture
def finished(root: Path, job_id: str, master: Master) -> str:
    """A job of ten mini-batches on two workers: 3 took long, 6 was retried, 7 has failed."""
    retry = outcome(6, status="retry", rows=0, started=BEGIN + 6, failure=RUN_FAILED)
    log = open_term(JobFolder(root, job_id).path, "retries", 1)
    log.append(encode_all([retry]))
    log.sync()
    log.close()
    made = []
    for number in range(10):
        changes: dict[str, Any] = {"started": BEGIN + number, "run_s": 0.5, "elapsed_s": 0.75, "load_s": 0.25}
        changes["process"] = f"process00{number % 2}"
        if number == 3:
            changes |= {"run_s": 5.0, "elapsed_s": 5.25}
        if number == 6:
            changes |= {"tries": 2, "started": BEGIN + 6.5}
        if number == 7:
            changes |= {"status": "failed", "rows": 0, "failure": RUN_FAILED, "tries": 3}
        made.append(outcome(number, **changes))
    master.decide(job_id, 1, [made[:4], made[4:5], made[5:]])
    master.begin(job_id)
    report = Logs(JobFolder(root, job_id).logs).job_report
    report.mkdir(parents=True)
    (report / "processed_mini-batches.csv").write_text(REPORT)
    master.end(job_id, JobState.COMPLETED)
    return job_id


def test_tiles_of_all_of_it_and_of_a_part(api: httpx.Client, finished: str) -> None:
    whole = read(api, finished, "tiles?buckets=4")

    assert (whole["first"], whole["end"], whole["bucket_size"], whole["median_of"]) == (0, 10, 4, "all")
    assert whole["completed"] == [4, 3, 2]
    assert whole["failed"] == [0, 1, 0]
    assert whole["retried"] == [0, 2, 0]
    assert whole["failed_items"] == [0, 10, 0]
    assert whole["waiting"] == whole["running"] == [0, 0, 0]
    assert whole["min_run_s"] == [0.5] * 3
    assert whole["median_run_s"] == [0.5] * 3
    assert whole["max_run_s"] == [5.0, 0.5, 0.5]

    part = read(api, finished, "tiles?first=3&end=5&buckets=100")
    assert (part["bucket_size"], part["completed"], part["max_run_s"]) == (1, [1, 1], [5.0, 0.5])


def test_what_is_recorded_while_one_looks_is_in_the_next_answer(
    api: httpx.Client, root: Path, job_id: str, master: Master
) -> None:
    assert read(api, job_id, "tiles")["completed"] == []
    master.begin(job_id)
    master.decide(job_id, 1, [[outcome(2), outcome(0)]])
    tiles = read(api, job_id, "tiles")
    assert (tiles["waiting"], tiles["completed"], tiles["max_run_s"]) == ([0, 1, 0], [1, 0, 1], [0.4, None, 0.4])

    master.decide(job_id, 2, [[outcome(1, status="failed", failure=RUN_FAILED)]])
    assert read(api, job_id, "tiles")["failed"] == [0, 1, 0]

    master.end(job_id, JobState.COMPLETED)
    JobFolder(root, job_id).reopen(Reopening(generation=1, at=time.time(), retry_failed=True))
    again = read(api, job_id, "tiles")
    assert (again["waiting"], again["failed"], again["retried"]) == ([0, 1, 0], [0, 0, 0], [0, 1, 0])


def test_the_timeline_has_a_lane_for_each_worker(api: httpx.Client, finished: str) -> None:
    shown = read(api, finished, "timeline?buckets=10")

    assert shown["start"] == "2025-11-21T04:39:58.000Z"
    one, two = shown["lanes"]
    assert [(lane["node"], lane["process"], lane["tries"]) for lane in (one, two)] == [
        ("node0", "process000", 6),
        ("node0", "process001", 5),
    ]
    assert sum(one["init"]) == pytest.approx(2, abs=1e-3)
    assert sum(one["load"]) == pytest.approx(5 * 0.25, abs=1e-3)
    assert sum(two["run"]) == pytest.approx(5 + 4 * 0.5, abs=1e-3)
    assert one["failed_tries"] == two["failed_tries"] == 1
    assert shown["slowest"][0]["mini_batch"] == 3
    assert shown["slowest"][0]["times_median"] == 10
    assert two["spans"]["outcome"] == ["completed"] * 3 + ["failed", "completed"]

    first = read(api, finished, "timeline?limit=1")
    token = first["next_page_token"]
    second = read(api, finished, f"timeline?limit=1&page_token={token}")
    assert [lane["process"] for lane in first["lanes"] + second["lanes"]] == ["process000", "process001"]
    assert second["next_page_token"] is None

    zoomed = read(api, finished, "timeline?begin_s=6.1&end_s=6.2&buckets=2")
    assert [lane["run"] for lane in zoomed["lanes"]][1] == pytest.approx([0.05, 0.05], abs=1e-3)


def test_throughput_figures_and_errors(api: httpx.Client, finished: str) -> None:
    throughput = read(api, finished, "throughput?points=5")
    assert sum(throughput["mini_batches"]) == 10
    assert (sum(throughput["items"]), sum(throughput["failed"]), sum(throughput["retried"])) == (100, 1, 1)

    figures = read(api, finished, "figures")
    assert (figures["rows"], figures["tries"], figures["failed_tries"], figures["workers"]) == (3, 11, 2, 2)
    assert (figures["median_run_s"], figures["max_run_s"], figures["init_s"]) == (0.5, 5.0, 2.0)

    errors = read(api, finished, "errors")
    assert errors["count"] == 2
    assert [(kind["count"], kind["mini_batches"]) for kind in errors["items"]] == [(2, [7, 6])]
    assert errors["items"][0]["log"] == "user/error/node0/process001.txt"


def test_words_of_the_script_are_masked_and_made_visible(
    api: httpx.Client, site: Site, master: Master, redis_url: str
) -> None:
    job_id = api.post("/v1/jobs", json=site.spec(environment_variables={"KEY": "a-secret-value"})).json()["id"]
    failure = Failure("RUN_EXCEPTION", "KeyError: a-secret-value \x1b[2J", "")
    master.decide(job_id, 1, [[outcome(0, status="failed", failure=failure)]])

    kind = read(api, job_id, "errors")["items"][0]
    tries = read(api, job_id, "mini-batches/0")["tries"]

    assert kind["message"] == tries[0]["failure"]["message"] == r"KeyError: *** \x1b[2J"


def test_one_mini_batch_with_all_its_tries(api: httpx.Client, finished: str) -> None:
    shown = read(api, finished, "mini-batches/6")

    assert shown["status"] == "done"
    assert [(each["outcome"], each["tries"]) for each in shown["tries"]] == [("retried", 1), ("completed", 2)]
    assert api.get(f"/v1/jobs/{finished}/mini-batches/10").status_code == 404


def test_the_list_in_another_order(api: httpx.Client, finished: str) -> None:
    read(api, finished, "tiles")

    def ids(query: str) -> tuple[list[int], str | None]:
        page = api.get(f"/v1/jobs/{finished}/mini-batches?{query}").json()
        return [item["id"] for item in page["items"]], page["next_page_token"]

    slowest, token = ids("order_by=slowest&limit=4")
    assert slowest[0] == 3
    rest, last = ids(f"order_by=slowest&limit=50&page_token={token}")
    assert (sorted(slowest + rest), last) == (list(range(10)), None)
    part, token = ids("order_by=id&first=2&end=9&limit=5")
    assert part == [2, 3, 4, 5, 6]
    assert ids(f"order_by=id&first=2&end=9&limit=5&page_token={token}") == ([7, 8], None)
    assert ids("order_by=id&status=failed") == ([7], None)
    wrong = api.get(f"/v1/jobs/{finished}/mini-batches?order_by=id&status=running")
    assert wrong.json()["errors"][0]["pointer"] == "/query/order_by"


def test_settings_say_where_they_were_given(api: httpx.Client, site: Site) -> None:
    other = api.post("/v1/jobs", json=site.spec(mini_batch_size=3, environment_variables={"A": "b"})).json()["id"]
    one = api.post("/v1/jobs", json=site.spec(program_arguments="--task_overhead_timeout 5")).json()["id"]

    settings = {item["name"]: item for item in api.get(f"/v1/jobs/{other}/settings").json()["items"]}
    assert (settings["mini_batch_size"]["value"], settings["mini_batch_size"]["origin"]) == (3, "given")
    assert settings["run_max_try"]["value"] == settings["run_max_try"]["default"] == 3
    assert settings["run_max_try"]["origin"] == "default"
    assert settings["environment_variables"]["value"] == {"A": "***"}
    given = {item["name"]: item["given_at"] for item in api.get(f"/v1/jobs/{one}/settings").json()["items"]}
    assert (given["task_overhead_timeout"], given["inputs"]) == ("/program_arguments", "/inputs")

    shown = read_both(api, one, other)
    assert {"name": "task_overhead_timeout", "values": [5.0, 600.0]} in shown["settings"]
    assert [job["id"] for job in shown["jobs"]] == [one, other]


def read_both(api: httpx.Client, one: str, other: str) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"/v1/jobs/{one}/comparison?other={other}").json()
    return shown


def test_what_has_not_changed_is_not_sent_again(api: httpx.Client, finished: str) -> None:
    read(api, finished, "tiles")
    first = api.get(f"/v1/jobs/{finished}/tiles")

    again = api.get(f"/v1/jobs/{finished}/tiles", headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    large = api.get(f"/v1/jobs/{finished}/timeline?buckets=1000")
    assert large.headers["content-encoding"] == "gzip"
    assert len(large.json()["lanes"][0]["run"]) == 1000


def test_log_lines_with_a_text(api: httpx.Client, root: Path, job_id: str) -> None:
    logs = JobFolder(root, job_id).logs
    (logs / "user").mkdir(parents=True)
    (logs / "user" / "one.txt").write_text("first\nA needle \x1b[1m\nthird\n")
    (logs / "user" / "two.txt").write_text("x" * 3_000_000 + "\nneedle\n" + "needle\n" * 3)
    (logs / "other.txt").write_text("needle\n")

    def lines_with(query: str) -> list[tuple[str, int, int]]:
        items: list[dict[str, Any]] = []
        token: str | None = ""
        while token is not None:
            page = api.get(f"/v1/jobs/{job_id}/log-lines?text=needle&{query}&page_token={token}").json()
            items += page["items"]
            token = page["next_page_token"]
        assert all(len(item["text"]) <= 1000 for item in items)
        return [(item["path"], item["line"], item["offset"]) for item in items]

    assert lines_with("path=user/one") == [("user/one.txt", 2, 6)]
    everywhere = lines_with("limit=2")
    assert everywhere[:2] == [("other.txt", 1, 0), ("user/one.txt", 2, 6)]
    assert everywhere[2:] == [("user/two.txt", 2 + each, 3_000_001 + 7 * each) for each in range(4)]
    shown = api.get(f"/v1/jobs/{job_id}/log-lines?text=NEEDLE&any_case=true&path=user/one").json()["items"]
    assert shown[0]["text"] == r"A needle \x1b[1m"
    assert lines_with("path=nowhere") == []


def test_what_has_ended_is_shown_with_everything_else_gone(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "root", "job_01kav3x8n2h7q5m9c4t6")
    spec = {"entry_script": "main.py", "inputs": {"data": {"path": "/data"}}, "code": "/code"}
    folder.create(JobRecord(job_id=folder.job_id, submitted=BEGIN - 5, code="0" * 64, spec=spec))
    log = DecisionWriter(folder.path, 1)
    log.add([outcome(0), outcome(1)])
    log.sync()
    log.close()
    progress = Progress(scheduled=2, listing_done=True, done=2)
    result = JobResult(
        job_id=folder.job_id, state=JobState.COMPLETED, started=BEGIN, ended=BEGIN + 9, progress=progress
    )
    folder.conclude(result)
    nowhere = f"unix://{tmp_path}/no.sock"
    with ApiServer(tmp_path / "root", nowhere) as server, server.client() as api:
        assert read(api, folder.job_id, "tiles?buckets=1")["completed"] == [2]
        assert read(api, folder.job_id, "figures")["took_s"] == 9
        assert read(api, folder.job_id, "mini-batches/1")["status"] == "done"
        for what in ("timeline", "throughput", "errors"):
            read(api, folder.job_id, what)
        for what in ("settings", "log-lines?text=x", "mini-batches?order_by=slowest", "logs", "outputs"):
            assert api.get(f"/v1/jobs/{folder.job_id}/{what}").status_code == 200
        assert api.get(f"/v1/jobs/{folder.job_id}/comparison?other={folder.job_id}").json()["settings"] == []


def test_a_pipeline_has_none_of_it(api: httpx.Client, site: Site) -> None:
    step = {"type": "command", "job": {"command": "true", "code": str(site.code)}}
    answer = api.post("/v1/jobs", json={"type": "pipeline", "steps": {"one": step}})
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["id"]

    assert api.get(f"/v1/jobs/{job_id}/tiles").status_code == 409
    assert api.get(f"/v1/jobs/{job_id}/settings").status_code == 200


def numbers_of(api: httpx.Client, job_id: str, **query: str) -> list[int]:
    answer = api.get(f"/v1/jobs/{job_id}/mini-batches", params={"order_by": "id", **query})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["items"]]


def test_mini_batches_are_filtered_by_worker_and_by_kind_of_error(api: httpx.Client, finished: str) -> None:
    whole = api.get(f"/v1/jobs/{finished}/mini-batches", params={"order_by": "slowest"}).json()

    assert (whole["nodes"], whole["categories"]) == (["node0"], ["RUN_EXCEPTION"])
    assert whole["processes"] == ["process000", "process001"]
    assert numbers_of(api, finished, process="process001") == [1, 3, 5, 7, 9]
    assert numbers_of(api, finished, process="process001", order_by="slowest", limit="2") == [3, 1]
    assert numbers_of(api, finished, node="node0") == list(range(10))
    assert numbers_of(api, finished, node="elsewhere") == []
    assert numbers_of(api, finished, category="RUN_EXCEPTION") == [7]
    assert numbers_of(api, finished, category="RUN_TIMEOUT") == []


@pytest.mark.parametrize(
    "query", [{"node": "node0"}, {"order_by": "slowest", "input": "a.txt"}], ids=["decided", "slowest"]
)
def test_filters_of_mini_batches_that_an_order_can_not_have_are_refused(
    api: httpx.Client, finished: str, query: dict[str, str]
) -> None:
    answer = api.get(f"/v1/jobs/{finished}/mini-batches", params=query)

    assert answer.status_code == 422, answer.text
