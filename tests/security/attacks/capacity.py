"""What somebody can do with connections, slowness and size alone, and what must still be answered meanwhile."""

from __future__ import annotations

import base64
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

import httpx

from tests.security.attack import Attack, Target

ANSWER_S = 20.0
"""Health and an authorized request have to be answered within this time, on connections of their own.

A server that an attack holds up never answers; on a slow machine it answers late, while it refuses thousands."""
MANY_FILES = """
import os, sys
def run(mini_batch):
    folder = sys.argv[sys.argv.index("--files") + 1]
    for number in range(100_000):
        os.close(os.open(f"{folder}/file-{number:06d}.txt", os.O_CREAT | os.O_WRONLY))
    return mini_batch
"""
SLEEPS = "import time\ndef run(mini_batch):\n    time.sleep(300)\n    return mini_batch\n"


def client_of(target: Target, *, token: str | None = None, timeout_s: float = ANSWER_S) -> httpx.Client:
    """A client with the submitter's token, or another one."""
    given = target.token if token is None else token
    headers = {"Authorization": f"Bearer {given}"} if given else {}
    return httpx.Client(base_url=target.url, headers=headers, timeout=timeout_s, trust_env=False)


def what_is_not_answered(target: Target) -> str:
    """Health, and a request with the token, each on a new connection; empty: both are answered."""
    for path in ("/livez", "/v1/nodes"):
        try:
            with client_of(target) as client:
                status = client.get(path).status_code
        except httpx.TransportError as error:
            return f"{path} is not answered: {type(error).__name__}"
        if status != 200:
            return f"{path} is answered with {status}"
    return ""


def connect(target: Target) -> socket.socket:
    """A new connection to the server itself, without a proxy of the container engine that would end before it does."""
    parts = urlsplit(getattr(target, "server_url", "") or target.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_S)


@contextmanager
def connections(target: Target, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, or as many as this process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        opened = []
        for _ in range(min(count, hard - 200)):
            try:
                opened.append(stack.enter_context(connect(target)))
            except OSError:
                break  # nobody accepts any more
        yield opened


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; what it has said is not read to the end."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def half_open(target: Target, count: int = 4000) -> str:
    """Connections that say nothing, more than there may be."""
    with connections(target, count):
        return what_is_not_answered(target)


def dripping(target: Target, begin: bytes, *, count: int, within_s: float) -> str:
    """Requests that begin and then come byte by byte: the server has to end them."""
    with connections(target, count) as opened:
        for connection in opened:
            connection.sendall(begin)
        deadline = time.monotonic() + within_s
        left = opened
        while left and time.monotonic() < deadline:
            if trouble := what_is_not_answered(target):
                return trouble
            for connection in left:
                with suppress(OSError):
                    connection.setblocking(False)
                    connection.send(b"x")
            time.sleep(0.2)
            left = [connection for connection in left if not is_closed(connection)]
        return f"{len(left)} of {len(opened)} slow requests still go on after {within_s:.0f} s" if left else ""


def slow_heads(target: Target, count: int = 300, within_s: float = 30.0) -> str:
    """Heads that never end."""
    return dripping(target, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", count=count, within_s=within_s)


def slow_bodies(target: Target, count: int = 50, within_s: float = 70.0) -> str:
    """Submissions, with the token, that never end."""
    head = f"Host: localhost\r\nAuthorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
    begin = f"POST /v1/jobs HTTP/1.1\r\n{head}Content-Length: 1000000\r\n\r\n"
    return dripping(target, begin.encode(), count=count, within_s=within_s)


def slow_requests(target: Target) -> str:
    """Both at once."""
    with ThreadPoolExecutor(2) as players:
        return " ".join(filter(None, players.map(lambda play: play(target), (slow_heads, slow_bodies))))


def huge_head(target: Target) -> str:
    """A head without an end: it must not be gathered."""
    with connect(target) as connection:
        sent = 0
        try:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
            while sent < 64 << 20:
                sent += connection.send(b"X-Huge: " + b"x" * (1 << 16) + b"\r\n")
        except OSError:
            pass  # it has closed the connection
    return f"{sent:,} bytes of a head were taken" if sent > 16 << 20 else what_is_not_answered(target)


def request_after_a_refusal(target: Target) -> str:
    """The end of a body that was refused, and one more request: a server that reads either parses what it refused."""
    answers = b""
    with connect(target) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        while b"\r\n\r\n" not in answers:
            answers += connection.recv(1 << 16)
        with suppress(OSError):  # it has closed the connection
            connection.sendall(b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while part := connection.recv(1 << 16):
                answers += part
    return "what follows a refusal is parsed" if answers.count(b"HTTP/1.1 ") > 1 else ""


def tiny_chunks(target: Target) -> str:
    """A body without the token, in chunks of one byte, each of which costs more than it brings."""
    if reason := request_after_a_refusal(target):
        return reason
    chunks = b"1\r\nx\r\n" * 40_000
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            with suppress(OSError), connect(target) as connection:
                connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in range(20):
                    connection.sendall(chunks)

    with ThreadPoolExecutor(4) as senders:
        for _ in range(4):
            senders.submit(send)
        try:
            return next(filter(None, (what_is_not_answered(target) for _ in range(10))), "")
        finally:
            stop.set()


def large_or_deep(target: Target) -> str:
    """Bodies that are too large or too deep, for each route that takes one."""
    deep, many = b"[" * 1_000_000, b'{"mini_batches": [' + b"1," * 8_000_000 + b"1]}"
    routes = ("/v1/jobs", "/v1/jobs/job_00000000000000000000:retry", "/v1/jobs/job_00000000000000000000:resume")
    with client_of(target, timeout_s=30) as client:
        for path in routes:
            for body in (deep, many):
                answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
                refusals = (413,) if body is many else (400, 413, 422)
                if answer.status_code not in refusals:
                    return f"{path} answers {len(body):,} bytes with {answer.status_code}"
    return what_is_not_answered(target)


def false_lengths(target: Target) -> str:
    """Bodies that are not as long as they say."""
    own = f"Host: localhost\r\nAuthorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
    lengths = ("Content-Length: 10000000000", "Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2")
    for length in lengths:
        with connect(target) as connection:
            connection.sendall(f"POST /v1/jobs HTTP/1.1\r\n{own}{length}\r\n\r\n{{".encode())
            try:
                line = connection.recv(1 << 16).split(b"\r\n")[0]
            except OSError as error:
                return f"{length!r} is not answered: {error}"
            if b" 4" not in line:
                return f"{length!r} is answered with {line!r}"
    return what_is_not_answered(target)


def page_token(after: str) -> str:
    """What asks for the files after this one."""
    return base64.urlsafe_b64encode(f"files.{after}".encode()).decode().rstrip("=")


def many_lists(target: Target, path: str, count: int = 45) -> str:
    """The same long list, asked for by many at once."""

    def ask() -> int:
        with client_of(target, timeout_s=60) as client:
            return client.get(path).status_code

    with ThreadPoolExecutor(count) as clients:
        asked = [clients.submit(ask) for _ in range(count)]
        while True:
            is_over = all(each.done() for each in asked)
            if trouble := what_is_not_answered(target):
                return trouble
            if is_over:
                break
        statuses = {each.result() for each in asked}
    return "" if statuses <= {200, 429} and 200 in statuses else f"the lists are answered with {statuses}"


def many_streams(target: Target, path: str, count: int = 2500) -> str:
    """Event streams, more than there may be: some are refused, and the rest goes on."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.token}\r\n\r\n"
    with connections(target, count) as opened:
        for connection in opened:
            with suppress(OSError):
                connection.sendall(head.encode())
        refused = 0
        for connection in opened:
            with suppress(OSError):
                refused += connection.recv(1 << 12).startswith((b"HTTP/1.1 429 ", b"HTTP/1.1 503 "))
        if trouble := what_is_not_answered(target):
            return trouble
        return "" if refused else f"{len(opened)} streams at once are all answered"


def _lists_of_a_job(target: Target) -> str:
    target.rows_of(
        MANY_FILES, outputs={"files": {"type": "uri_folder"}}, program_arguments="--files ${{outputs.files}}"
    )
    return many_lists(target, f"/v1/jobs/{_newest(target)}/outputs")


def _streams_of_a_job(target: Target) -> str:
    job = threading.Thread(target=partial(target.rows_of, SLEEPS))
    before = _newest(target)
    job.start()
    try:
        deadline = time.monotonic() + 20
        while (job_id := _newest(target)) == before and time.monotonic() < deadline:
            time.sleep(0.1)
        return many_streams(target, f"/v1/jobs/{job_id}/events")
    finally:
        with client_of(target, timeout_s=60) as client:
            client.post(f"/v1/jobs/{_newest(target)}:cancel")
        job.join()


DEAR_LOGS = """
import os
from azureml_user.parallel_run import EntryScript
def run(mini_batch):
    folder = EntryScript().log_dir
    for number in range(300):
        with open(f"{folder}/dear{number}.log.txt", "w") as file:
            file.write("2027-01-15 08:00:00,000|INFO|7|8|all that follows is of this moment" + 65_000 * "\\n")
    with open(f"{folder}/endless.log.txt", "wb") as file:
        file.truncate(1 << 40)
    return mini_batch
"""


def dear_logs(target: Target, job_id: str, timeout_s: float = 100.0) -> str:
    """Logs of nothing but line breaks, and one without any, as a page of all by time."""
    with ThreadPoolExecutor(1) as asking, client_of(target, timeout_s=timeout_s) as client:
        for query in ("", "?order=newest", "?source=all&mini_batch=1"):
            asked = asking.submit(client.get, f"/v1/jobs/{job_id}/merged-logs{query}")
            while not asked.done():
                if trouble := what_is_not_answered(target):
                    return trouble
            if (error := asked.exception()) or asked.result().status_code != 200:
                return f"merged logs{query} are answered with {error!r}" if error else f"{asked.result().text[:200]}"
    return ""


def _logs_of_a_job(target: Target) -> str:
    rows = target.rows_of(DEAR_LOGS)
    assert rows, "the logs were not written"
    return dear_logs(target, _newest(target))


WIDE_TABLE = """
import sys
def run(mini_batch):
    folder = sys.argv[sys.argv.index("--files") + 1]
    with open(f"{folder}/wide.csv", "w") as file:
        file.write(400_000 * "n" + "\\n" + 1000 * "1\\n")
    return mini_batch
"""


def _table_of_a_job(target: Target) -> str:
    """A small file whose answer as a table is large: the name of its column is in each row."""
    arguments = "--files ${{outputs.files}}"
    assert target.rows_of(WIDE_TABLE, outputs={"files": {"type": "uri_folder"}}, program_arguments=arguments)
    with client_of(target, timeout_s=60) as client:
        url = f"/v1/jobs/{_newest(target)}"
        [path] = [each["path"] for each in client.get(f"{url}/outputs").json()["items"] if "wide" in each["path"]]
        answer = client.get(f"{url}/output-table", params={"path": path, "rows": 1000})
    if answer.status_code not in (200, 503):  # it may take too long, and is refused then
        return f"a table is answered with {answer.status_code}: {answer.text[:200]}"
    return f"{len(answer.content):,} bytes show a table" if len(answer.content) > 32 << 20 else ""


def _newest(target: Target) -> str:
    with client_of(target) as client:
        jobs = json.loads(client.get("/v1/jobs", params={"limit": "1"}).text)["items"]
        return str(jobs[0]["id"]) if jobs else ""


_PLAYS: dict[str, Callable[[Target], str]] = {
    "connections that say nothing": half_open,
    "heads and bodies that never end": slow_requests,
    "a head without limit": huge_head,
    "bodies in chunks of one byte": tiny_chunks,
    "bodies that are too large or too deep": large_or_deep,
    "bodies of another length than they say": false_lengths,
    "many long lists at once": _lists_of_a_job,
    "many event streams at once": _streams_of_a_job,
    "logs that are dear to read": _logs_of_a_job,
    "a table whose head is dear to show": _table_of_a_job,
}
ATTACKS = [Attack(name, play) for name, play in _PLAYS.items()]
