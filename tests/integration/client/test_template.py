"""Services that are forked from a process that has imported what they share, as those of a cluster are."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun.embedded.begun_template import BegunTemplate
from parallelrun.embedded.guard import marked
from parallelrun.embedded.launcher import Service
from parallelrun.embedded.supervisor import Supervisor
from tests.integration.client.test_supervisor import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes are left")

PROGRAM = """
import os, random, secrets, signal, sys, time

def main():
    print("runs", sys.argv[1:], os.getcwd(), os.getppid(), os.getsid(0) == os.getpid(), flush=True)
    print("secret", os.environ.get("SECRET"), os.getenv("ONLY_OF_TEMPLATE"), flush=True)
    print("drawn", random.random(), flush=True)
    print("as fresh", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.set_wakeup_fd(-1) == -1, flush=True)
    print("files", len(os.listdir("/proc/self/fd")), flush=True)
    if sys.argv[1:] == ["raise"]:
        raise RuntimeError("of the program")
    if sys.argv[1:] == ["exit"]:
        raise SystemExit("a last word")
    time.sleep(600)
"""


@pytest.fixture
def deaths() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, deaths: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ONLY_OF_TEMPLATE", "1")
    mark = f"MARK_OF_TEST={tmp_path}"
    supervisor = Supervisor(
        logs=tmp_path,
        folder=tmp_path,
        mark=mark,
        scratch=tmp_path / "scratch",
        begin_template=lambda: BegunTemplate.begin(mark),
        on_death=deaths.append,
    )
    yield supervisor
    supervisor.kill()
    assert marked(mark) == []


def service(tmp_path: Path, name: str, *arguments: str, secret: str = "") -> Service:
    module = ("program", *arguments)
    command = (sys.executable, "-P", "-m", "parallelrun_core.service.launch", *module)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "SECRET": secret}
    return Service(name=name, command=command, module=module, environment=environment)


def line(supervisor: Supervisor, name: str, word: str) -> str:
    """The last line of a service's log that begins with a word, once there is one."""
    log = supervisor.log_of(name)
    until(lambda: re.search(rf"^{word} .*\n", log.read_text(), re.M), within_s=60)
    lines: list[str] = re.findall(rf"^{word} .*\n", log.read_text(), re.M)
    return lines[-1]


def parent_of(supervisor: Supervisor, name: str) -> int:
    return int(line(supervisor, name, "runs").split()[-2])


def test_forked_services_have_their_own_arguments_variables_session_and_numbers(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    supervisor.start([service(tmp_path, "a", "1", secret="of a"), service(tmp_path, "b", "2", secret="of b")])
    assert parent_of(supervisor, "a") == parent_of(supervisor, "b") != os.getpid()
    assert f"runs ['1'] {tmp_path} " in line(supervisor, "a", "runs")
    assert line(supervisor, "a", "runs").endswith(" True\n")
    assert line(supervisor, "a", "secret") == "secret of a None\n"
    assert line(supervisor, "b", "secret") == "secret of b None\n"
    assert line(supervisor, "a", "drawn") != line(supervisor, "b", "drawn")
    assert line(supervisor, "a", "as") == "as fresh True True\n"
    assert line(supervisor, "a", "files") == "files 4\n"  # its three, and the one that looks


def test_others_see_a_forked_service_by_its_own_command_and_no_secret(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([service(tmp_path, "a", "1", secret="of a")])
    template = Path(f"/proc/{parent_of(supervisor, 'a')}")
    words = Path(f"/proc/{supervisor.pids()['a']}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    assert words[-4:] == [b"-m", b"parallelrun_core.service.launch", b"program", b"1"]
    if os.geteuid() == 0:  # it hides its memory from all others
        assert b"of a" not in (template / "environ").read_bytes() + (template / "cmdline").read_bytes()


def test_a_forked_service_that_ends_soon_is_started_by_itself_the_next_time(
    tmp_path: Path, supervisor: Supervisor, deaths: list[str]
) -> None:
    supervisor.start([service(tmp_path, "a", "raise"), service(tmp_path, "b", "exit")])
    until(lambda: supervisor.log_of("a").read_text().count("RuntimeError: of the program") == 2, within_s=60)
    until(lambda: supervisor.log_of("b").read_text().count("a last word") == 2, within_s=60)
    assert "a exited with code 1; it is being restarted" in deaths
    parents = re.findall(r" (\d+) True$", supervisor.log_of("a").read_text(), re.M)
    assert len(set(parents)) == 2


def test_template_that_gave_back_its_memory_has_no_secret_and_does_no_harm(
    tmp_path: Path, supervisor: Supervisor, deaths: list[str]
) -> None:
    supervisor.start([service(tmp_path, "a"), service(tmp_path, "b")])
    before, template = supervisor.pids(), Path(f"/proc/{parent_of(supervisor, 'a')}")
    until(lambda: b"parent.py" in (template / "cmdline").read_bytes(), within_s=60)
    if os.geteuid() == 0:  # it hides its memory from all others
        until(lambda: b"ONLY_OF_TEMPLATE" not in (template / "environ").read_bytes(), within_s=60)

    supervisor.start([service(tmp_path, "c"), service(tmp_path, "d")])
    assert parent_of(supervisor, "c") == parent_of(supervisor, "d") == os.getpid()
    os.kill(before["a"], signal.SIGKILL)  # which it tells, as it is there still
    until(lambda: "a was killed by SIGKILL; it is being restarted" in deaths, within_s=60)
    assert deaths == ["a was killed by SIGKILL; it is being restarted"]
    assert supervisor.pids()["b"] == before["b"]


def test_services_of_a_template_that_was_killed_are_started_by_themselves(
    tmp_path: Path, supervisor: Supervisor, deaths: list[str]
) -> None:
    supervisor.start([service(tmp_path, "a"), service(tmp_path, "b")])
    before, template = supervisor.pids(), parent_of(supervisor, "a")
    command = Path(f"/proc/{template}/cmdline")
    until(lambda: b"parent.py" in command.read_bytes(), within_s=60)  # it has given back its memory
    os.kill(before["a"], signal.SIGKILL)
    until(lambda: "a was killed by SIGKILL; it is being restarted" in deaths, within_s=60)
    os.kill(template, signal.SIGKILL)
    until(
        lambda: supervisor.pids().keys() == {"a", "b"} and not set(supervisor.pids().values()) & {*before.values()},
        within_s=60,
    )
    until(lambda: str(os.getpid()) in supervisor.log_of("b").read_text(), within_s=60)
    assert "b was killed by SIGTERM; it is being restarted" in deaths


def test_without_a_template_that_can_start_services_are_started_by_themselves(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor.stop()
    mark = f"MARK_OF_TEST={tmp_path}"
    channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with end:
        broken = BegunTemplate(mark, subprocess.Popen(["/bin/false"]), channel)
    scratch = tmp_path / "scratch"
    again = Supervisor(logs=tmp_path, folder=tmp_path, mark=mark, scratch=scratch, begin_template=lambda: broken)
    try:
        again.start([service(tmp_path, "a")])
        assert parent_of(again, "a") == os.getpid()
    finally:
        again.stop()


def test_forked_services_and_their_template_end_with_the_owner(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([service(tmp_path, "a")])
    assert parent_of(supervisor, "a") in marked(f"MARK_OF_TEST={tmp_path}")
    supervisor.stop()
    assert marked(f"MARK_OF_TEST={tmp_path}") == []


def test_an_owner_has_something_to_do_while_the_template_imports(tmp_path: Path) -> None:
    mark, is_done = f"MARK_OF_TEST={tmp_path}", threading.Event()

    def begin() -> BegunTemplate:
        assert is_done.wait(60), "the owner waits instead"
        return BegunTemplate.begin(mark)

    (tmp_path / "program.py").write_text(PROGRAM)
    supervisor = Supervisor(
        logs=tmp_path, folder=tmp_path, mark=mark, scratch=tmp_path / "scratch", begin_template=begin
    )
    try:
        supervisor.start([service(tmp_path, "one")], meanwhile=is_done.set)
        assert line(supervisor, "one", "runs")
    finally:
        supervisor.kill()


FORKS = """
import gc, os, signal, sys, threading

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if sys.argv[1:] == ["with a thread"]:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
from parallelrun.embedded.begun_template import BegunTemplate

begun = BegunTemplate.fork("MARK_OF_TEST=forks")
print(gc.isenabled(), type(begun.process).__name__)
os.kill(begun.process.pid, signal.SIGKILL)
begun.process.wait()
begun.close()
"""


@pytest.mark.parametrize("arguments,kind", [([], "_Forked"), (["with a thread"], "Popen")])
def test_a_template_is_forked_without_harm_to_its_owner(arguments: list[str], kind: str, tmp_path: Path) -> None:
    """By a program whose parent had it ignore the ends of children; one that has threads starts a template instead."""
    (tmp_path / "forks.py").write_text(FORKS)
    room = {**os.environ, "ROOM_FOR_COMMAND_LINES": "-" * 4096}
    command = [sys.executable, "-P", str(tmp_path / "forks.py"), *arguments]
    done = subprocess.run(command, env=room, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == (f"True {kind}\n", 0), done.stderr
