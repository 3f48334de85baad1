"""Processes that are kept running, and stopped without a trace in all cases."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parallelrun.embedded import guard
from parallelrun.embedded import supervisor as supervisor_module
from parallelrun.embedded.guard import marked
from parallelrun.embedded.launcher import Service, ServiceProcess
from parallelrun.embedded.redis_server import RedisServer, find_binary
from parallelrun.embedded.services import redis_service
from parallelrun.embedded.supervisor import Supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes are left")


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f"MARK_OF_TEST={tmp_path}"


@pytest.fixture
def deaths() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, mark: str, deaths: list[str]) -> Iterator[Supervisor]:
    supervisor = Supervisor(
        logs=tmp_path, folder=tmp_path, mark=mark, scratch=tmp_path / "scratch", on_death=deaths.append
    )
    yield supervisor
    supervisor.kill()
    assert marked(mark) == []


def shell(name: str, script: str, *, stage: int = 0, stop_s: float = 15.0) -> Service:
    environment = {"PATH": os.environ["PATH"]}
    return Service(name=name, command=("/bin/sh", "-c", script), environment=environment, stage=stage, stop_s=stop_s)


def until(condition: Callable[[], object], *, within_s: float = 15) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_services_run_in_their_folder_with_their_log_and_no_terminal(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([shell("a", "pwd; echo said >&2; cat; echo $MARK_OF_TEST; exec sleep 60")])
    log = supervisor.log_of("a")
    until(lambda: log.exists() and log.read_text().count("\n") == 3)

    assert log.read_text().splitlines() == [str(tmp_path), "said", str(tmp_path)]
    assert os.getsid(supervisor.pids()["a"]) == supervisor.pids()["a"]


def test_a_service_lets_others_go_first(supervisor: Supervisor) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    script = "until [ $(nice) -gt 0 ]; do :; done; nice; grep -o 'nice .*' /proc/self/autogroup; exec sleep 60"
    supervisor.start([dataclasses.replace(shell("a", script), nice=7)])
    log, of_session = supervisor.log_of("a"), ["nice 7"] if Path("/proc/self/autogroup").exists() else []
    until(lambda: log.exists() and log.read_text().splitlines() == [str(min(19, before + 7)), *of_session])


def test_a_service_that_dies_is_restarted_and_waits_longer_each_time(
    supervisor: Supervisor, deaths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parallelrun.embedded.supervisor.FIRST_PAUSE_S", 0.02)
    began = time.monotonic()
    supervisor.start([shell("a", "exit 7"), shell("b", "exec sleep 60"), shell("c", "sleep 60 & wait")])
    until(lambda: supervisor.deaths()["a"] >= 4)
    until(lambda: supervisor.childless("abc") == ["a", "b"])

    assert time.monotonic() - began > 0.02 + 0.04 + 0.08
    assert deaths[0] == "a exited with code 7; it is being restarted"
    assert supervisor.deaths()["b"] == 0


def test_a_killed_service_comes_back(supervisor: Supervisor, deaths: list[str]) -> None:
    supervisor.start([shell("a", "exec sleep 60")])
    first = supervisor.pids()["a"]
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.pids().get("a", first) != first)

    assert deaths == ["a was killed by SIGKILL; it is being restarted"]


def test_a_service_that_can_not_be_started_is_a_death_like_others(supervisor: Supervisor, deaths: list[str]) -> None:
    supervisor.start([Service(name="a", command=("/nowhere/command",), environment={})])

    until(lambda: supervisor.deaths()["a"] >= 1)
    assert deaths[0].startswith("a ")


def test_stages_end_one_after_another(tmp_path: Path, supervisor: Supervisor) -> None:
    story = tmp_path / "story"
    script = f"trap 'sleep 0.2; echo {{}} >> {story}; exit' TERM; echo up; while :; do sleep 0.02; done"
    supervisor.start([shell(name, script.format(name), stage=stage) for name, stage in (("last", 1), ("first", 0))])
    until(lambda: all(supervisor.log_of(name).read_text() == "up\n" for name in ("first", "last")))

    supervisor.stop()
    supervisor.stop()

    assert story.read_text().split() == ["first", "last"]
    assert supervisor.pids() == {}
    with pytest.raises(RuntimeError, match="has been stopped"):
        supervisor.start([])


def test_what_does_not_end_is_ended_with_all_that_it_started(supervisor: Supervisor, mark: str) -> None:
    stubborn = "trap '' TERM; sleep 61 & setsid sleep 62 & echo up; while :; do sleep 0.02; done"
    supervisor.start([shell("a", stubborn, stop_s=0.2)])
    until(lambda: supervisor.log_of("a").exists() and supervisor.log_of("a").read_text() == "up\n")

    supervisor.stop()

    assert marked(mark) == []


def test_a_stop_that_takes_too_long_for_the_user_can_be_cut_short(supervisor: Supervisor, mark: str) -> None:
    supervisor.start([shell("a", "trap '' TERM; echo up; while :; do sleep 0.02; done", stop_s=60)])
    until(lambda: supervisor.log_of("a").exists() and supervisor.log_of("a").read_text() == "up\n")
    stopping = threading.Thread(target=supervisor.stop)
    stopping.start()

    supervisor.kill()

    stopping.join(10)
    assert not stopping.is_alive()
    assert marked(mark) == []


def test_a_stop_can_be_cut_short_while_what_took_too_long_is_being_killed(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.02; done"
    supervisor.start([shell("a", stubborn, stop_s=0.1), shell("b", stubborn, stage=1, stop_s=600)])
    until(lambda: all(supervisor.log_of(name).read_text() == "up\n" for name in ("a", "b")))
    killing, kill_group = threading.Thread(target=supervisor.kill), supervisor_module._kill_group

    def kill_meanwhile(process: ServiceProcess) -> None:
        if not killing.ident:
            killing.start()
            until(lambda: not supervisor._events.empty())
        kill_group(process)

    monkeypatch.setattr(supervisor_module, "_kill_group", kill_meanwhile)
    stopping = threading.Thread(target=supervisor.stop)
    stopping.start()

    stopping.join(60)
    assert not stopping.is_alive()
    killing.join()


HIDDEN = """
import os, sys, time
if "MARK_OF_TEST" in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {})
print("hidden", flush=True)
time.sleep(65)
"""


def hidden(name: str) -> Service:
    """A service of ours whose environment doesn't say whose it is, as when others may not read it."""
    return Service(name=name, command=(sys.executable, "-c", HIDDEN), environment={})


def test_a_service_that_hides_its_environment_is_known_by_its_command_line(supervisor: Supervisor, mark: str) -> None:
    supervisor.start([hidden("a")])
    until(lambda: supervisor.log_of("a").read_text() == "hidden\n")

    assert marked(mark) == [supervisor.pids()["a"]]


@pytest.mark.parametrize("words", [
    ("-c", "{sleep}", "{option}"),
    ("-X", "{option}0", "-c", "{sleep}"),
    ("-c", "{sleep}", "-X", "{option}"),
], ids=["somebody who looks for it", "of another cluster", "who has it among its arguments"])  # fmt: skip
def test_a_process_that_only_looks_like_ours_is_left_alone(words: tuple[str, ...], mark: str) -> None:
    command = [word.format(option=guard.option(mark)[1], sleep="import time; time.sleep(66)") for word in words]
    with subprocess.Popen([sys.executable, *command], env={}) as other:
        try:
            until(lambda: Path(f"/proc/{other.pid}/cmdline").read_bytes().count(b"sleep(66)") == 1)
            guard.kill_marked(mark)
            assert marked(mark) == []
            assert other.poll() is None
        finally:
            other.kill()


OWNER = """
import sys, time
from pathlib import Path
from parallelrun.embedded.launcher import Service, ServiceProcess
from parallelrun.embedded.supervisor import Supervisor
folder, mark = Path(sys.argv[1]), sys.argv[2]
(folder / "scratch").mkdir()
supervisor = Supervisor(logs=folder, folder=folder, mark=mark, scratch=folder / "scratch")
script = "setsid sleep 63 & exec sleep 64"
supervisor.start([Service(name="a", command=("/bin/sh", "-c", script), environment={"PATH": "/usr/bin:/bin"})])
time.sleep(60)
"""


def test_nothing_outlives_an_owner_that_was_killed(tmp_path: Path, mark: str) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), mark], stdout=subprocess.PIPE) as owner:
        try:
            until(lambda: len(marked(mark)) == 2)
        finally:
            owner.kill()

    # The service ends at once; processes in other sessions are left to the guard.
    until(lambda: len(marked(mark)) == 1)
    until(lambda: marked(mark) == [], within_s=guard.GRACE_S + 10)
    until(lambda: not (tmp_path / "scratch").exists())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    import tempfile

    # pytest's own temporary folders have names that are too long for a socket.
    with tempfile.TemporaryDirectory(prefix="pr-") as folder:
        (tmp_path / "redis").mkdir()
        yield RedisServer(binary=find_binary(), socket=Path(folder) / "s", data=tmp_path / "redis")


@pytest.mark.integration
def test_the_redis_server_has_what_was_written_after_a_stop_and_a_kill(
    supervisor: Supervisor, server: RedisServer, tmp_path: Path, mark: str
) -> None:
    from parallelrun_core.store.connection import connect

    supervisor.start([redis_service(server)])
    assert server.wait(20)
    with connect(server.url) as client:
        client.set("a", "stored")
        assert client.config_get("port") == {b"port": b"0"} or client.config_get("port") == {"port": "0"}
        assert server.socket.stat().st_mode & 0o777 == 0o700
        first = supervisor.pids()["redis"]
        os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.pids().get("redis", first) != first)
    assert server.wait(20)
    with connect(server.url) as client:
        assert client.get("a") == b"stored"

    supervisor.stop()

    assert marked(mark) == []
    assert not server.is_ready()
    again = Supervisor(logs=tmp_path, folder=tmp_path, mark=mark, scratch=tmp_path / "scratch")
    again.start([redis_service(server)])
    assert server.wait(20)
    with connect(server.url) as client:
        assert client.get("a") == b"stored"
    again.stop()
    assert marked(mark) == []
