"""Slowness, size and numbers stop nobody else: health and requests with the token are answered meanwhile."""

from __future__ import annotations

import http.client
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.security.attacks import capacity

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

TOKEN = "of-the-submitter"
FEW_FILES = ("sh", "-c", 'ulimit -n 400 && exec "$@"', "sh")
SLOW = ("--head-seconds", "1", "--stall-seconds", "1")
FILES = 120_000
LONGEST_SILENCE_S = 2.0
"""Of /livez while long lists are made; 0.3 s were measured."""


@dataclass
class Served:
    """An API as something to attack."""

    url: str
    token: str = TOKEN
    name: str = "api"
    is_apart: bool = False
    root: str = ""
    inputs: Path = Path()
    inputs_there: str = ""

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """Nothing: no job is run here."""
        raise NotImplementedError


Start = Callable[..., ApiServer]


@pytest.fixture
def start(redis_url: str, redis: Redis, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with these flags."""
    servers: list[ApiServer] = []

    def begin(*flags: str, **how: Any) -> ApiServer:
        server = ApiServer(tmp_path / "root", redis_url, "--token", TOKEN, *flags, **how)
        servers.append(server)
        return server.__enter__()

    yield begin
    for server in servers:
        server.__exit__()


def target_of(server: ApiServer) -> Served:
    return Served(f"http://127.0.0.1:{server.port}")


def a_job(server: ApiServer, site: Site) -> str:
    """A job that nobody runs."""
    with capacity.client_of(target_of(server)) as client:
        return str(client.post("/v1/jobs", json=site.spec()).json()["id"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.made(tmp_path)


def check_silent_connections(start: Start, without: str = "") -> None:
    assert capacity.half_open(target_of(start(run_by=FEW_FILES, without=without)), count=700) == ""


def test_connections_that_say_nothing_make_room_for_those_that_ask(start: Start) -> None:
    check_silent_connections(start)


def check_slow_heads(start: Start, without: str = "") -> None:
    assert capacity.slow_heads(target_of(start(*SLOW, without=without)), count=50, within_s=10) == ""


def test_a_head_that_does_not_end_is_ended(start: Start) -> None:
    check_slow_heads(start)


def check_slow_bodies(start: Start, without: str = "") -> None:
    assert capacity.slow_bodies(target_of(start(*SLOW, without=without)), count=20, within_s=10) == ""


def test_a_body_that_hardly_moves_is_ended(start: Start) -> None:
    check_slow_bodies(start)


def test_who_is_too_slow_is_told(start: Start) -> None:
    server = start(*SLOW)
    with capacity.connect(target_of(server)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: ")
        connection.settimeout(20)
        answer = connection.recv(1 << 16)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "request_timeout"' in answer


def test_a_client_that_reads_nothing_is_let_go(start: Start, site: Site) -> None:
    server = start("--head-seconds", "1", "--stall-seconds", "0.3")
    job_id = a_job(server, site)
    outputs = server.root / "jobs" / job_id / "outputs"
    outputs.mkdir(exist_ok=True)
    with (outputs / "large").open("wb") as file:
        file.truncate(64 << 20)
    ask = f"GET /v1/jobs/{job_id}/outputs/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with capacity.connect(target_of(server)) as connection:
        connection.sendall(ask.encode())

        deadline = time.monotonic() + 20
        while "# not read" not in (ended := ended_by_reason(server)):
            assert time.monotonic() < deadline, ended


def ended_by_reason(server: ApiServer) -> str:
    with capacity.client_of(target_of(server)) as client:
        text = client.get("/metrics").text
    return "# not read" if 'parallelrun_http_connections_ended_total{reason="reader"} 1.0' in text else text


def test_a_head_without_limit_is_not_gathered(start: Start) -> None:
    assert capacity.huge_head(target_of(start())) == ""


def test_a_head_that_is_too_long_is_refused_in_the_form_of_all_errors(start: Start) -> None:
    with capacity.connect(target_of(start())) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 40_000)
        answer = connection.recv(1 << 16)

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"application/problem+json" in answer


def check_tiny_chunks(start: Start, without: str = "") -> None:
    assert capacity.tiny_chunks(target_of(start(without=without))) == ""


def test_what_follows_a_refusal_costs_nobody_time(start: Start) -> None:
    check_tiny_chunks(start)


def check_bodies(start: Start, without: str = "") -> None:
    assert capacity.large_or_deep(target_of(start(without=without))) == ""


def test_bodies_that_are_too_large_or_too_deep_are_refused(start: Start) -> None:
    check_bodies(start)


def test_bodies_of_another_length_than_they_say_are_refused(start: Start) -> None:
    assert capacity.false_lengths(target_of(start())) == ""


def most_memory_of(server: ApiServer) -> int:
    """Bytes that a server has had in memory at most."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def check_dear_logs(start: Start, site: Site, without: str = "") -> None:
    """A page of logs takes the memory of a page, whatever a script has written where logs are."""
    server = start(without=without)
    job_id = a_job(server, site)
    folder = server.root / "jobs" / job_id / "logs" / "user" / "entry_script_log" / "n0"
    folder.mkdir(parents=True)
    first = b"2027-01-15 08:00:00,000|INFO|7|8|all that follows is of this moment"
    for number in range(40):
        (folder / f"dear{number}.log.txt").write_bytes(first + 65_000 * b"\n")
    with (folder / "endless.log.txt").open("wb") as file:
        file.truncate(1 << 30)
    (folder / "lines.log.txt").write_bytes(b"\n".join([first, *(20_000 * [b"x" * 300])]))
    before = most_memory_of(server)
    assert capacity.dear_logs(target_of(server), job_id) == ""
    assert most_memory_of(server) - before < 300 << 20


def test_a_page_of_logs_takes_the_memory_of_a_page(start: Start, site: Site) -> None:
    check_dear_logs(start, site)


def check_streams(start: Start, site: Site, without: str = "") -> None:
    server = start("--max-streams", "20", without=without)
    events = f"/v1/jobs/{a_job(server, site)}/events"
    assert capacity.many_streams(target_of(server), events, count=100) == ""


def test_streams_beyond_their_limit_are_refused_and_nothing_else(start: Start, site: Site) -> None:
    check_streams(start, site)


def test_when_many_requests_are_being_answered_the_rest_is_for_health_and_control(start: Start, site: Site) -> None:
    server = start("--max-connections", "16", "--max-streams", "100")
    job_id = a_job(server, site)
    ask = (
        f"GET /v1/jobs/{job_id}?wait=60&since=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    )
    upload = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    with capacity.connections(target_of(server), 13) as opened, capacity.client_of(target_of(server)) as client:
        for number, connection in enumerate(opened):
            connection.sendall((upload if number else ask).encode())

        deadline = time.monotonic() + 20
        while (crowded := client.get("/v1/nodes")).status_code != 503:
            assert time.monotonic() < deadline
        answers = [client.get("/livez"), client.get("/readyz"), client.post(f"/v1/jobs/{job_id}:cancel")]

    assert (crowded.json()["code"], "retry-after" in crowded.headers) == ("crowded", True)
    assert [answer.status_code for answer in answers] == [200, 200, 202]


class Watch:
    """Asks whether a server is alive, again and again, and remembers the longest wait for an answer."""

    def __init__(self, port: int) -> None:
        self.longest_s = 0.0
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            began = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            try:
                connection.request("GET", "/livez")
                connection.getresponse().read()
            finally:
                connection.close()
            self.longest_s = max(self.longest_s, time.monotonic() - began)


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("many") / "files"
    folder.mkdir()
    for number in range(FILES):
        os.close(os.open(f"{folder}/file-{number:07d}.txt", os.O_CREAT | os.O_WRONLY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def check_long_lists(start: Start, site: Site, many_files: Path, without: str = "") -> None:
    """Lists of different pages, so that none is like another."""
    server = start(without=without)
    job_id = a_job(server, site)
    outputs = server.root / "jobs" / job_id / "outputs"
    if outputs.exists():
        outputs.rmdir()
    many_files.rename(outputs)
    statuses: list[int] = []

    def ask(number: int) -> None:
        token = capacity.page_token(f"file-{number * 2000:07d}.txt")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        path = f"/v1/jobs/{job_id}/outputs?page_token={token}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        statuses.append(answer.status)

    try:
        with Watch(server.port) as watch:
            threads = [threading.Thread(target=partial(ask, number)) for number in range(45)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        outputs.rename(many_files)
    assert set(statuses) == {200, 429}
    assert watch.longest_s < LONGEST_SILENCE_S


def test_long_lists_stop_nothing_else_and_beyond_a_few_are_told_to_come_again(
    start: Start, site: Site, many_files: Path
) -> None:
    check_long_lists(start, site, many_files)


def test_the_same_long_list_is_made_once_for_many(start: Start, site: Site, many_files: Path) -> None:
    server = start()
    job_id = a_job(server, site)
    outputs = server.root / "jobs" / job_id / "outputs"
    if outputs.exists():
        outputs.rmdir()
    many_files.rename(outputs)
    try:
        assert capacity.many_lists(target_of(server), f"/v1/jobs/{job_id}/outputs") == ""
    finally:
        outputs.rename(many_files)
