"""Downloads: complete or absent, and never fetched twice."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from parallelrun import Client, ConnectionFailed, InvalidInput, NotFound, RetryPolicy
from parallelrun.http import retry
from parallelrun.http.transport import Transport
from parallelrun.resources.outputs import JobOutputs
from tests.integration.client.fake_api import COMPLETED, HANG_UP, Answer, FakeApi, Request

CONTENT = bytes(range(256)) * 5000
PATH = "/v1/jobs/job_1/outputs/rows.txt"


@pytest.fixture
def outputs(api: FakeApi) -> Iterator[JobOutputs]:
    output = {"path": "/data/jobs/job_1/outputs/rows.txt", "sha256": hashlib.sha256(CONTENT).hexdigest()}
    api.on("GET", "/v1/jobs/job_1", Answer.of({**COMPLETED, "output": output}))
    transport = Transport(api.url)
    yield JobOutputs(transport, patience_s=0.2, sleep=lambda _: None)
    transport.close()


def ranged(request: Request, *, most: int = len(CONTENT)) -> Answer:
    """Answers as a server with ranges, and breaks off after `most` bytes."""
    first = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
    body = CONTENT[first : first + most]
    return Answer(body, 206 if first else 200, cut=first + most < len(CONTENT))


def test_a_file_is_whole_and_where_it_was_wanted(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    api.on("GET", PATH, ranged)
    counts: list[int] = []

    target = outputs.download("job_1", "rows.txt", tmp_path / "new", on_bytes=counts.append)

    assert target == tmp_path / "new" / "rows.txt"
    assert target.read_bytes() == CONTENT
    assert counts[-1] == len(CONTENT)
    assert [entry.name for entry in target.parent.iterdir()] == ["rows.txt"]


def test_a_broken_download_goes_on_where_it_broke_off(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    api.on("GET", PATH, lambda request: ranged(request, most=200_000))

    assert outputs.download("job_1", "rows.txt", tmp_path).read_bytes() == CONTENT

    starts = [request.headers.get("Range") for request in api.asked(PATH)]
    assert starts[:3] == [None, "bytes=200000-", "bytes=400000-"]


def test_a_later_run_goes_on_as_well(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    (tmp_path / "rows.txt.part").write_bytes(CONTENT[:1000])
    api.on("GET", PATH, ranged)

    assert outputs.download("job_1", "rows.txt", tmp_path).read_bytes() == CONTENT
    assert [request.headers.get("Range") for request in api.asked(PATH)] == ["bytes=1000-"]


@pytest.mark.parametrize("left", [b"of another run" * 10, CONTENT + b"too long", bytes(len(CONTENT))])
def test_what_an_older_run_left_is_found_out(api: FakeApi, outputs: JobOutputs, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "rows.txt.part").write_bytes(left)
    api.on("GET", PATH, ranged)

    assert outputs.download("job_1", "rows.txt", tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "output, path, other",
    [
        ({"type": "uri_folder", "path": ""}, "report/rows.txt", "rows.txt"),
        ({"type": "uri_folder", "path": "/data"}, "report/rows.txt", "rows.txt"),
        ({"type": "uri_file", "path": "/data/rows.txt"}, "report/rows.txt", "rows.txt"),
        ({"type": "uri_file", "path": "", "file_name": "rows.txt"}, "rows.txt", "report/rows.txt"),
    ],
)
def test_the_hash_is_that_of_the_file_with_the_rows_and_of_no_other(
    api: FakeApi, outputs: JobOutputs, tmp_path: Path, *, output: dict[str, str], path: str, other: str
) -> None:
    rows = {"path": "/anywhere/rows.txt", "sha256": hashlib.sha256(CONTENT).hexdigest()}
    spec = {"append_row_to": "report", "outputs": {"report": output}}
    api.on("GET", "/v1/jobs/job_3", Answer.of({**COMPLETED, "id": "job_3", "output": rows, "spec": spec}))
    api.on("GET", f"/v1/jobs/job_3/outputs/{path}", Answer(b"broken"), ranged)
    api.on("GET", f"/v1/jobs/job_3/outputs/{other}", Answer(b"the script's own"))

    assert outputs.download("job_3", other, tmp_path).read_bytes() == b"the script's own"
    with pytest.raises(ConnectionFailed, match="sha256"):
        outputs.download("job_3", path, tmp_path)
    assert outputs.download("job_3", path, tmp_path).read_bytes() == CONTENT


@pytest.fixture
def unproven(api: FakeApi, outputs: JobOutputs) -> JobOutputs:
    """A file of which the server has no hash, such as one that a script has written."""
    api.on("GET", "/v1/jobs/job_2", Answer.of({**COMPLETED, "id": "job_2"}))
    return outputs


def test_without_a_hash_nothing_of_an_older_run_is_taken_for_a_beginning(
    api: FakeApi, unproven: JobOutputs, tmp_path: Path
) -> None:
    (tmp_path / "rows.txt.part").write_bytes(b"of another job")
    api.on("GET", PATH.replace("job_1", "job_2"), ranged)

    assert unproven.download("job_2", "rows.txt", tmp_path).read_bytes() == CONTENT


def test_a_file_that_changes_between_two_connections_is_never_a_mixture(
    api: FakeApi, unproven: JobOutputs, tmp_path: Path
) -> None:
    def changed(request: Request) -> Answer:
        whole = request.headers.get("If-Range") == '"old"'
        return Answer(CONTENT) if whole else Answer(CONTENT[1000:], 206)

    path = PATH.replace("job_1", "job_2")
    api.on("GET", path, Answer(b"o" * 1000, headers={"ETag": '"old"'}, cut=True), changed)

    assert unproven.download("job_2", "rows.txt", tmp_path).read_bytes() == CONTENT
    assert [request.headers.get("Range") for request in api.asked(path)] == [None, "bytes=1000-"]


def test_a_server_without_ranges_will_do(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    (tmp_path / "rows.txt.part").write_bytes(CONTENT[:1000])
    api.on("GET", PATH, Answer(CONTENT))

    assert outputs.download("job_1", "rows.txt", tmp_path).read_bytes() == CONTENT


def test_a_file_with_another_hash_is_not_kept(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("the one before")
    api.on("GET", PATH, Answer(bytes(len(CONTENT))))

    with pytest.raises(ConnectionFailed, match="sha256"):
        outputs.download("job_1", "rows.txt", tmp_path)

    assert (tmp_path / "rows.txt").read_text() == "the one before"


def test_a_connection_that_never_holds_is_given_up(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    api.on("GET", PATH, Answer(b"", cut=True))

    with pytest.raises(ConnectionFailed, match="Gave up"):
        outputs.download("job_1", "rows.txt", tmp_path)


def test_a_server_that_stays_away_for_a_while_is_waited_for(api: FakeApi, tmp_path: Path) -> None:
    busy = Answer.of({"code": "unavailable"}, 503)
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on("GET", PATH, *[HANG_UP, busy] * 6, ranged)
    transport, pauses = Transport(api.url), list[float]()

    target = JobOutputs(transport, sleep=pauses.append).download("job_1", "rows.txt", tmp_path)
    transport.close()

    assert target.read_bytes() == CONTENT
    assert len(pauses) == 12
    assert sum(pauses) > 20


def test_a_server_may_be_away_when_a_page_is_asked_for(api: FakeApi, tmp_path: Path) -> None:
    busy = Answer.of({"code": "unavailable"}, 503)
    listing = "/v1/jobs/job_1/outputs"
    first = Answer.of(
        {"items": [{"path": "a", "bytes": 1, "modified": "2026-01-02T03:04:05.000Z"}], "next_page_token": "two"}
    )
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on(
        "GET",
        listing,
        *[HANG_UP] * 12,
        first,
        *[busy] * 12,
        Answer.of({"items": [{"path": "b", "bytes": 1, "modified": "2026-01-02T03:04:05.000Z"}]}),
    )
    api.on("GET", f"{listing}/a", Answer(b"a"))
    api.on("GET", f"{listing}/b", Answer(b"b"))
    transport, pauses = Transport(api.url, retry=RetryPolicy(attempts=1)), list[float]()

    places = list(JobOutputs(transport, sleep=pauses.append).download_all("job_1", tmp_path))
    transport.close()

    assert [place.read_bytes() for place in places] == [b"a", b"b"]
    assert len(pauses) == 24
    assert [request.query.get("page_token") for request in api.asked(listing)] == [None] * 13 + ["two"] * 13


def test_a_server_that_stays_away_is_given_up(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: now))
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on("GET", "/v1/jobs/job_1/outputs", HANG_UP)
    transport = Transport(api.url, retry=RetryPolicy(attempts=1))

    with pytest.raises(ConnectionFailed, match="Gave up after 120 s"):
        list(JobOutputs(transport, sleep=sleep).download_all("job_1", tmp_path))
    transport.close()
    assert 120 < now < 126


def test_a_server_that_has_never_answered_is_reported_at_once(api: FakeApi, tmp_path: Path) -> None:
    """The URL may be mistyped."""
    api.on("GET", "/v1/jobs/job_1", HANG_UP)
    transport, pauses = Transport(api.url, retry=RetryPolicy(attempts=1)), list[float]()

    with pytest.raises(ConnectionFailed):
        list(JobOutputs(transport, sleep=pauses.append).download_all("job_1", tmp_path))
    transport.close()

    assert pauses == []


def test_all_outputs_of_a_job_that_is_not_there_are_refused_at_once(api: FakeApi, tmp_path: Path) -> None:
    transport, pauses = Transport(api.url), list[float]()

    with pytest.raises(NotFound):
        list(JobOutputs(transport, sleep=pauses.append).download_all("job_1", tmp_path))
    transport.close()

    assert pauses == []
    assert len(api.requests) == 1


def test_a_file_that_has_grown_since_it_was_listed_arrives_as_it_is(
    api: FakeApi, unproven: JobOutputs, tmp_path: Path
) -> None:
    listing = "/v1/jobs/job_2/outputs"
    api.on(
        "GET", listing, Answer.of({"items": [{"path": "rows.txt", "bytes": 5, "modified": "2026-01-02T03:04:05.000Z"}]})
    )
    api.on("GET", f"{listing}/rows.txt", ranged)

    assert [path.read_bytes() for path in unproven.download_all("job_2", tmp_path)] == [CONTENT]


def test_a_part_that_is_the_whole_file_is_not_fetched_again(api: FakeApi, outputs: JobOutputs, tmp_path: Path) -> None:
    (tmp_path / "rows.txt.part").write_bytes(CONTENT)
    api.on("GET", PATH, Answer.of({"code": "range_not_satisfiable"}, 416))

    assert outputs.download("job_1", "rows.txt", tmp_path).read_bytes() == CONTENT


def test_an_output_that_is_not_there_is_not_found(outputs: JobOutputs, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        outputs.download("job_1", "other.txt", tmp_path / "new")

    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", ["../evil.txt", "/etc/evil", "a/../../evil"])
def test_a_server_can_not_write_outside_of_the_folder(api: FakeApi, tmp_path: Path, path: str) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on(
        "GET",
        "/v1/jobs/job_1/outputs",
        Answer.of({"items": [{"path": path, "bytes": 1, "modified": "2026-01-02T03:04:05.000Z"}]}),
    )

    with Client(api.url) as client, pytest.raises(InvalidInput):
        list(client.outputs.download_all("job_1", tmp_path / "deep" / "folder"))
