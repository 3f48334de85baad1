"""What the tests of this folder share: the example's data, an embedded cluster, and one made of containers."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance import engine as docker_engine
from tests.acceptance.compose import ROOT, Compose
from tests.acceptance.embedded import Embedded

if TYPE_CHECKING:
    import docker

_AGENTS = 3
_failed = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the users' data, which containers may read."""
    folder = tmp_path_factory.mktemp("inputs")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def digits(inputs: Path) -> Path:
    """A copy of the example with its data prepared."""
    copy = inputs / "digits"
    shutil.copytree(ROOT / "examples" / "digits", copy, ignore=shutil.ignore_patterns("data", "out", "__pycache__"))
    subprocess.run([sys.executable, copy / "prepare.py"], check=True, capture_output=True, timeout=100)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A cluster that was started with `parallelrun up`."""
    with Embedded(tmp_path_factory.mktemp("embedded")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A Docker Engine."""
    missing = ""
    try:
        client = docker_engine.reach()
    except docker_engine.EngineMissing as error:
        missing = str(error)
    if missing and docker_engine.is_required():
        pytest.fail(f"{docker_engine.REQUIRED} is set, but {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)
    with closing(client):
        yield client


@pytest.fixture(scope="session")
def project(engine: docker.DockerClient, inputs: Path) -> Iterator[Compose]:
    """The containers, built and healthy."""
    made = Compose(engine, inputs)
    # Containers don't end with those who started them, and these would be started again with every engine.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        made.start(_AGENTS)
        yield made
    finally:
        made.remove()
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def compose(project: Compose, request: pytest.FixtureRequest) -> Iterator[Compose]:
    """The containers; when a test fails, what they logged is shown, and its jobs are not left for the next one."""
    yield project
    if request.node.stash.get(_failed, False):
        print(project.log())
        with project.user() as user:
            user.cancel_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether a test has failed, for the fixtures that end after it."""
    report = yield
    if call.when == "call":
        item.stash[_failed] = report.failed
    return report
