"""What an agent that root has started is then, and which users its workers can't be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.rights import NotPossible, check_apart
from tests.security.as_user import command_for
from tests.twins.sabotage import expect_failure

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
SERVICES_UID = 20_500
"""Nobody has it: such a user has no home."""

STARTED = """
import json, os, sys
from contextlib import nullcontext
from parallelrun_agent import main
from tests.twins.sabotage import without
def say(settings, **_):
    print(json.dumps({"uid": os.getuid(), **os.environ}), flush=True)
main.wait_for_fit_redis = say
main.serve_health = lambda *_, **__: sys.exit()
with without(sys.argv[1]) if sys.argv[1] else nullcontext():
    main.main(sys.argv[2:])
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of that user's, which any can get to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chown(name, SERVICES_UID, SERVICES_UID)
        Path(name).chmod(0o711)
        yield Path(name)


def started(place: Path, *flags: str, without: str = "", env: dict[str, str] | None = None) -> tuple[str, str]:
    """What root's start of an agent that becomes another user says until it would begin to work: stdout, stderr."""
    os.makedirs(place / "root", mode=0o755, exist_ok=True)
    fixed = ("--run-as", f"{SERVICES_UID}:{SERVICES_UID}", "--root", str(place / "root"))
    done = subprocess.run(
        [*command_for(0), sys.executable, "-c", STARTED, without, *fixed, "--work-dir", str(place / "work"),
         "--redis-url", "redis://127.0.0.1:1", *flags],
        cwd=Path(__file__).parents[3], env={**os.environ, **(env or {})},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr


@needs_root
def test_an_agent_that_becomes_another_user_leaves_roots_folders_behind(place: Path) -> None:
    check_home(place)


def check_home(place: Path, without: str = "") -> None:
    """Start an agent, and look where it and all that it starts would have their files."""
    roots = {"HOME": "/root", "XDG_CACHE_HOME": "/root/.cache", "XDG_STATE_HOME": "/root/.local/state"}
    said = json.loads(started(place, without=without, env=roots)[0])
    assert said["uid"] == SERVICES_UID
    assert said["HOME"] == "/"
    assert [name for name in said if name.startswith("XDG_")] == []


@needs_root
def test_a_home_that_is_roots_is_found(place: Path) -> None:
    with expect_failure():
        check_home(place, without="agent.own_home")


@needs_root
def test_an_agent_whose_workers_could_be_its_own_user_does_not_start(place: Path) -> None:
    check_own_user(place)


def check_own_user(place: Path, without: str = "") -> None:
    """Start an agent that gives its workers, among others, its own user."""
    error = started(place, "--worker-uids", "20000-59999", without=without)[1]
    assert f"parallelrun-agent: --worker-uids has {SERVICES_UID}, which is the services' own" in error


@needs_root
def test_an_agent_that_gives_workers_its_own_user_is_found(place: Path) -> None:
    with expect_failure():
        check_own_user(place, without="worker.not_services")


@needs_root
def test_no_worker_is_the_owner_of_the_jobs(tmp_path: Path) -> None:
    """The agent is somebody else than the services that share its folder, as on a volume of theirs."""
    check_apart(Uids(20_000, 59_999), tmp_path)
    os.chown(tmp_path, 30_000, 0)
    with pytest.raises(NotPossible, match="--worker-uids has 30000"):
        check_apart(Uids(20_000, 59_999), tmp_path)
