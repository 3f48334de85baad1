"""Builds as an Engine's HTTP has them: what it is sent, what it says, and that its connection breaks."""

from __future__ import annotations

import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from parallelrun_core.code.context import snapshot_context
from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.layout import code_store, jobs_of
from parallelrun_core.names.computes import BuiltImage
from parallelrun_core.untrusted.addresses import Reach
from parallelrun_provisioner.engines.docker import DockerEngine
from parallelrun_provisioner.engines.docker.building import builds
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment, ImageState
from tests.twins.sabotage import always, expect_failure, nothing, replaced

STEP = {"stream": "Step 1/1 : FROM base\n"}


class FakeEngine(ThreadingHTTPServer):
    """Speaks as much of an Engine's API as a build needs."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.says: list[dict[str, Any]] = [STEP]
        self.breaks_off = True
        self.is_built = False
        self.sent: list[tuple[dict[str, list[str]], str, bytes]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.may_end = threading.Event()
        self.may_end.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeEngine

    def do_GET(self) -> None:
        if self.path.endswith("/version"):
            self._answer(200, {"ApiVersion": "1.41", "Os": "linux", "Arch": "amd64"})
        elif self.server.is_built:
            self._answer(200, {"Config": {"Labels": json.loads(self.server.sent[-1][0]["labels"][0])}})
        else:
            self._answer(404, {"message": "No such image"})

    def do_POST(self) -> None:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.server.sent.append((parse_qs(urlsplit(self.path).query), self.headers["X-Registry-Config"], body))
        self.server.may_answer.wait(60)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for each in self.server.says:
            line = json.dumps(each).encode() + b"\r\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.server.may_end.wait(20)
        if self.server.breaks_off:
            self.close_connection = True
            self.connection.close()
        else:
            self.server.is_built = not any("error" in each for each in self.server.says)
            self.wfile.write(b"0\r\n\r\n")

    def _answer(self, status: int, document: object) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


class Asked:
    """An Engine of ours, for one image that a job waits for."""

    def __init__(self, root: Path, dockerfile: str = "FROM base\n", **settings: Any) -> None:
        (root / "context").mkdir()
        (root / "context" / "Dockerfile").write_text(dockerfile)
        snapshot = snapshot_context(root / "context", "Dockerfile", code_store(root))
        (jobs_of(root) / "job" / "logs").mkdir(parents=True)
        self.log = jobs_of(root) / "job" / "logs" / "sys" / "image.txt"
        self._snapshot = snapshot
        self._image = BuiltImage(snapshot, "Dockerfile").name
        around = EngineEnvironment(cluster="c1", root=root, redis_url="redis://x")
        compute = DockerCompute.model_validate({"type": "docker", "name": "pool"})
        self.engine = DockerEngine(compute, around, DockerSettings(builds=True, kit="/kit", **settings))

    def state(self, *jobs: str) -> ImageState:
        """How it stands with the image, for these jobs."""
        return self.engine.build({self._image: jobs or ["job"]})[self._image]

    def both(self) -> tuple[ImageState, ImageState]:
        """How it stands with it, and with another one that waits for it."""
        other = BuiltImage(self._snapshot, "Other").name
        states = self.engine.build({self._image: ["job"], other: ["job"]})
        return states[self._image], states[other]

    def until(self, wanted: str, *jobs: str) -> ImageState:
        """Ask until what is said, or the failure, has these words."""
        deadline = time.monotonic() + 20
        while wanted not in (state := self.state(*jobs)).said + state.failure:
            assert time.monotonic() < deadline, state
            time.sleep(0.01)  # an engine that is polled gives no sign
        return state

    def end(self) -> ImageState:
        """Ask until the image is there, or can't be."""
        deadline = time.monotonic() + 20
        while not (state := self.state()).failure and not state.is_there:
            assert time.monotonic() < deadline, state
            time.sleep(0.01)  # an engine that is polled gives no sign
        return state


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeEngine]:
    server = FakeEngine()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
    (tmp_path / "config").mkdir()
    logins = {"auths": {"registry.example.org": {"auth": "dXNlcjpzd29yZGZpc2g="}}}
    (tmp_path / "config" / "config.json").write_text(json.dumps(logins))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.may_answer.set()
        server.may_end.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_engine_is_sent_the_files_and_no_password_of_ours(server: FakeEngine, tmp_path: Path) -> None:
    server.breaks_off = False
    asked = Asked(tmp_path)
    deadline = time.monotonic() + 20
    assert asked.end().is_there
    ((parameters, logins, body),) = server.sent
    assert logins == "e30=", "an empty mapping"
    assert parameters["dockerfile"] == ["Dockerfile"]
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames() == ["Dockerfile"]
    while not asked.log.exists() or asked.log.read_text() != STEP["stream"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # a thread of its own begins it
    asked.engine.close()


def test_a_build_that_breaks_off_is_tried_again_and_not_for_ever(
    server: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(tmp_path)
    assert "is tried again" in asked.until("broke off").said
    assert len(server.sent) == 1, "not at once"
    monkeypatch.setattr(builds, "AGAIN_S", 0.5)
    assert "broke off 3 times" in asked.until("3 times").failure
    asked.engine.close()


def test_what_the_engine_refuses_is_not_tried_again(server: FakeEngine, tmp_path: Path) -> None:
    server.says, server.breaks_off = [STEP, {"error": "no such base"}], False
    asked = Asked(tmp_path)
    assert asked.until("no such base").failure == "no such base"
    assert asked.state().failure == "no such base"
    assert len(server.sent) == 1
    deadline = time.monotonic() + 20
    while not asked.log.exists() or "no such base" not in asked.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # a thread of its own writes it
    asked.engine.close()


def test_a_build_that_takes_too_long_is_broken_off_and_says_so(server: FakeEngine, tmp_path: Path) -> None:
    server.may_end.clear()
    asked = Asked(tmp_path, build_seconds=0.3)
    assert "PARALLELRUN_DOCKER_BUILD_SECONDS" in asked.until("longer than 0.3 s").failure
    assert len(server.sent) == 1
    asked.engine.close()


def test_an_engine_that_never_answers_fails_the_build_and_holds_up_no_other(
    server: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "MOST_AT_ONCE", 1)
    server.may_answer.clear()
    asked = Asked(tmp_path, build_seconds=1.0)
    first, second = asked.both()
    assert "building" in first.said
    assert "other images" in second.said
    assert "PARALLELRUN_DOCKER_BUILD_SECONDS" in asked.until("longer than 1 s").failure
    assert "building" in asked.both()[1].said
    asked.engine.close()


def test_a_failure_is_that_of_those_who_waited_and_others_have_it_built_again(
    server: FakeEngine, tmp_path: Path
) -> None:
    server.says, server.breaks_off = [STEP, {"error": "no such base"}], False
    asked = Asked(tmp_path)
    asked.until("no such base")
    assert asked.state().failure == "no such base"
    assert asked.state().failed_s > 0
    server.may_end.clear()
    assert asked.state("job", "other").failure == "", "it is built again for the other one"
    assert asked.state("job", "other").failure == ""
    server.may_end.set()
    asked.until("no such base", "job", "other")
    assert asked.state("other").failure, "one of them has gone"
    assert len(server.sent) == 2
    server.may_end.clear()
    assert asked.state("job", "other").failure == "", "and was resumed"
    server.may_end.set()
    asked.until("no such base", "job", "other")
    assert len(server.sent) == 3
    asked.engine.close()


_ADDS: Final = "FROM base\nADD http://169.254.169.254/latest/ /x\n"


@pytest.mark.parametrize(
    "dockerfile, images, why",
    [
        (_ADDS, "", "the Engine would fetch"),
        ("FROM base\nCOPY --from=localhost:5000/x /x /x\n", "", "PARALLELRUN_DOCKER_BUILD_IMAGES"),
        ("FROM 10.0.0.1/x\n", "", "lets no job build on 10.0.0.1/x"),
        ("FROM registry:5000/x\n", "", "lets no job build on registry:5000/x"),
        ("FROM team/x\n", "registry:5000/**,base", "lets no job build on team/x"),
    ],
)
def test_an_engine_is_sent_no_dockerfile_that_has_it_fetch_something(
    server: FakeEngine, tmp_path: Path, dockerfile: str, images: str, why: str
) -> None:
    check_fetching(server, tmp_path, dockerfile, images, why)


@pytest.mark.parametrize(
    "addresses, images, pulls",
    [
        (["192.0.2.1"], "registry.example.org:5000/**", [None]),
        (["93.184.216.34"], "", [["true"]]),
        ([], "", [["true"]]),
        (["93.184.216.34", "10.0.0.1"], "", []),
        (["169.254.169.254"], "", []),
        (["::1"], "", []),
    ],
)
def test_a_dockerfile_builds_on_images_of_the_operator_or_of_public_registries(
    server: FakeEngine, tmp_path: Path, addresses: list[str], images: str, pulls: list[object]
) -> None:
    check_registry(server, tmp_path, addresses, images, pulls)


def check_registry(
    server: FakeEngine, folder: Path, addresses: list[str], images: str = "", pulls: Sequence[object] = ()
) -> None:
    """Build on an image of a registry with these addresses; `pulls` is how each build is told to fetch it."""
    server.breaks_off = False
    asked = Asked(folder, "FROM registry.example.org:5000/team/x\n", build_images=images)
    with pytest.MonkeyPatch.context() as patching:
        resolve_registry(patching, addresses)
        assert asked.end().is_there is bool(pulls)
    assert [sent[0].get("pull") for sent in server.sent] == [*pulls]
    asked.engine.close()


def resolve_registry(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """Let a registry with a public name have these addresses."""
    resolve = socket.getaddrinfo

    def resolved(host: str, *rest: Any, **more: Any) -> Any:
        if host != "registry.example.org":
            return resolve(host, *rest, **more)
        if not addresses:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


def test_a_registry_that_is_taken_by_its_name_is_found(server: FakeEngine, tmp_path: Path) -> None:
    with replaced("parallelrun_core.untrusted.connecting:reach_of", always(Reach.PUBLIC)), expect_failure():
        check_registry(server, tmp_path, ["10.0.0.1"])


def check_fetching(
    server: FakeEngine, tmp_path: Path, dockerfile: str = _ADDS, images: str = "", why: str = "the Engine would fetch"
) -> None:
    """Build for a job that was accepted by whatever has not looked at its Dockerfile."""
    server.breaks_off = False
    asked = Asked(tmp_path, dockerfile, build_images=images)
    state = asked.end()
    asked.engine.close()
    assert why in state.failure
    assert server.sent == []


def test_an_engine_that_is_sent_whatever_was_accepted_is_found(server: FakeEngine, tmp_path: Path) -> None:
    with (
        expect_failure(),
        replaced("parallelrun_provisioner.engines.docker.building.building:Building._check_dockerfile", nothing),
    ):
        check_fetching(server, tmp_path)
