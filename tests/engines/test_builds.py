"""Jobs that bring a Dockerfile: their image is built once, by a real Engine, while other jobs go on."""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker as sdk
import pytest

from parallelrun import Client
from parallelrun_core.layout import Logs
from parallelrun_provisioner.engines.docker.building.sent import BUILT
from parallelrun_provisioner.engines.docker.node import CLUSTER
from tests.engines.images import BASE, with_environment, with_other_python
from tests.engines.nodes import PROVISIONER, Provisioned
from tests.engines.target import PATIENCE_S
from tests.engines.targets.docker import Docker, build

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2 * PATIENCE_S)]

SCRIPT = """
import platform
def run(mini_batch):
    import six
    try:
        from brought import WORD
    except ImportError:
        WORD = "nothing"
    return [f"{platform.python_version()} {six.__version__} {WORD}"]
"""
PLAIN = "def run(mini_batch):\n    return ['plain']\n"
CODE = "PYTHONPATH=/opt/brought:/opt/more"


class Building(Docker):
    """The Engine, for a provisioner whose operator lets it build images."""

    def __init__(self, *, is_allowed: bool = True, **settings: str) -> None:
        self._is_allowed = is_allowed
        self._settings = settings

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        return {
            **super().environment(seen, secret),
            "PARALLELRUN_DOCKER_KIT": build("kit"),
            "PARALLELRUN_DOCKER_IMAGES": "parallelrun-with-*",
            "PARALLELRUN_DOCKER_BUILDS": str(self._is_allowed).lower(),
            "PARALLELRUN_DOCKER_BUILD_IMAGES": f"{BASE},parallelrun-*",
            **self._settings,
        }


class Site:
    """A cluster whose compute builds images, and one who uses it from a machine of their own."""

    def __init__(self, there: Provisioned, engine: sdk.DockerClient, folder: Path) -> None:
        self.there = there
        self.engine = engine
        self.client = Client(there.cluster.api_url, there.user.token)
        self._folder = folder

    def context(self, text: str, **files: str) -> str:
        """A folder with this Dockerfile, and files with these names."""
        folder = self._folder / secrets.token_hex(4)
        folder.mkdir()
        for name, content in {"Dockerfile": text, "brought.py": "WORD = 'brought'\n", **files}.items():
            (folder / name).write_text(content)
        return str(folder)

    def submit(self, script: str = SCRIPT, **environment: Any) -> str:
        code = self._folder / secrets.token_hex(4)
        code.mkdir()
        (code / "entry.py").write_text(script)
        inputs, compute = str(self.there.cluster.files(1)), self.there.pool
        spec = {"code": str(code), "entry_script": "entry.py", "inputs": inputs, "compute": compute}
        return self.client.jobs.create({**spec, "environment": environment}).id

    def row(self, job: str) -> str:
        """The row of a job that must complete."""
        self.there.user.completed(job, timeout_s=PATIENCE_S)
        result = self.there.cluster.folder(job).result()
        assert result is not None
        return self.there.cluster.output(result)[0]

    def log(self, job: str) -> str:
        """What the Engine has said of the build for a job; empty: there was none."""
        file = Logs(self.there.cluster.folder(job).logs).image_build
        return file.read_text() if file.exists() else ""

    def runs(self, mark: str) -> bool:
        """Whether a step of a build runs whose command has this mark."""
        there = self.engine.api.containers()
        return any(mark in each["Command"] for each in there)

    def wait(self, condition: Any, what: str, timeout_s: float = PATIENCE_S) -> None:
        self.there.cluster.until(condition, what, timeout_s)


@contextmanager
def site(
    engine: sdk.DockerClient, folder: Path, *, most: int = 3, is_allowed: bool = True, **settings: str
) -> Iterator[Site]:
    with (
        Building(is_allowed=is_allowed, **settings) as target,
        Provisioned(target, most=most, idle_s=1) as there,
    ):
        made = Site(there, engine, folder)
        with made.client:
            yield made


def test_two_images_at_once_one_of_them_built_and_once_only(engine: sdk.DockerClient, tmp_path: Path) -> None:
    other, version = with_other_python(engine)
    image = with_environment(engine)
    mark = secrets.token_hex(8)
    text = f"FROM {other}\nENV {CODE}\nCOPY brought.py /opt/brought/\nRUN echo {mark} >/opt/mark\n"
    with site(engine, tmp_path) as made:
        context = made.context(text)
        began = time.monotonic()
        by_dockerfile, by_name = made.submit(build={"path": context}), made.submit(image=image)
        rows = made.row(by_dockerfile).split(), made.row(by_name).split()
        first_s = time.monotonic() - began

        assert rows[0][0].startswith(version)
        assert rows[0][1:] == ["1.17.0", "brought"]
        assert rows[1][1:] == ["1.16.0", "nothing"]
        assert rows[0][0] != rows[1][0] or not version
        assert mark in made.log(by_dockerfile)
        assert "Step 4/" in made.log(by_dockerfile)
        assert made.log(by_name) == ""
        made.wait(lambda: not made.there.ours(), "the nodes of the first jobs are gone")

        began = time.monotonic()
        again = made.submit(build={"path": made.context(text), "dockerfile_path": "./Dockerfile"})
        assert made.row(again).split() == rows[0]
        again_s = time.monotonic() - began
        assert made.log(again) == "", "nothing was built"
        print(f"both jobs with the build: {first_s:.1f} s; the second one with the same Dockerfile: {again_s:.1f} s")

        changed = made.submit(build={"path": made.context(text, **{"brought.py": "WORD = 'other'\n"})})
        assert made.row(changed).split()[2] == "other"
        assert "Step 3/" in made.log(changed)
    # An engine that others use, too, may have images of other clusters, and of earlier releases.
    assert len(engine.images.list(filters={"label": [BUILT, CLUSTER]})) >= 2


def test_a_dockerfile_that_can_not_be_built_fails_its_job_in_the_engines_words(
    engine: sdk.DockerClient, tmp_path: Path
) -> None:
    with site(engine, tmp_path) as made:
        jobs = [
            made.submit(build={"path": made.context(f"FROM {BASE}\nRUN echo no room at the inn; exit 7\n")}),
            made.submit(build={"path": made.context("FORM nothing\n")}),
        ]
        ended = [made.there.user.ended(job) for job in jobs]
        assert [each["state"] for each in ended] == ["failed", "failed"]
        first, second = (each["failure"] for each in ended)
        assert (first["code"], second["code"]) == ("IMAGE_FAILED", "IMAGE_FAILED")
        assert "returned a non-zero code: 7" in first["first_cause"]
        assert "unknown instruction" in second["first_cause"].lower()
        assert made.log(jobs[0]).count("no room at the inn\n") == 1, "it was tried once"
        assert first["log"] == "sys/image.txt"
        assert made.row(made.submit(PLAIN)) == "plain", "others go on"


def test_a_build_holds_up_no_other_job_and_ends_with_who_waits_for_it(engine: sdk.DockerClient, tmp_path: Path) -> None:
    mark = f"6{secrets.randbelow(10**9):09d}"
    with site(engine, tmp_path, most=1) as made:
        slow = made.submit(build={"path": made.context(f"FROM {BASE}\nRUN sleep {mark}\n")})
        made.wait(lambda: made.runs(mark), "the build has begun")
        assert made.row(made.submit(PLAIN)) == "plain", "the only node is not kept for it"
        told = made.there.user.until(
            slow, lambda job: "Step 2/" in job["progress"]["nodes_why"], "it says what is done"
        )
        assert told["progress"]["nodes"] == 0
        assert "sleep" in made.log(slow)

        made.client.jobs.cancel(slow)
        made.wait(lambda: not made.runs(mark), "the build has ended")


def test_a_build_goes_on_when_its_provisioner_is_killed(engine: sdk.DockerClient, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    text = f"FROM {BASE}\nENV {CODE}\nCOPY *.py /opt/brought/\nRUN sleep 5; echo {mark}\n"
    with site(engine, tmp_path, most=1) as made:
        second = f"{PROVISIONER}-2"
        environments = made.there.cluster.environments
        environments[second] = environments[PROVISIONER]
        made.there.cluster.add(second, "parallelrun_provisioner.main", "--kinds", "docker")
        job = made.submit(build={"path": made.context(text, **{"six.py": "__version__ = '0'\n"})})
        made.wait(lambda: made.runs(mark), "the build has begun")
        made.there.cluster.kill(PROVISIONER)
        assert made.row(job).split()[1:] == ["0", "brought"]
        made.there.cluster.kill(second)
        made.there.cluster.start(PROVISIONER)


def test_nothing_is_built_unless_the_operator_allows_it(engine: sdk.DockerClient, tmp_path: Path) -> None:
    with site(engine, tmp_path, is_allowed=False) as made:
        ended = made.there.user.ended(made.submit(build={"path": made.context(f"FROM {BASE}\n")}))
        assert "PARALLELRUN_DOCKER_BUILDS=true" in ended["failure"]["first_cause"]


def test_steps_of_a_build_have_the_network_and_the_cgroup_that_the_operator_names(
    engine: sdk.DockerClient, tmp_path: Path
) -> None:
    group = f"builds-{secrets.token_hex(4)}"
    steps = f"RUN echo {group}; ls /sys/class/net\nRUN cat /proc/self/cgroup\n"
    with site(
        engine, tmp_path, PARALLELRUN_DOCKER_BUILD_NETWORK="none", PARALLELRUN_DOCKER_BUILD_CGROUP=f"/{group}"
    ) as made:
        job = made.submit(build={"path": made.context(f"FROM {BASE}\n{steps}ENV {CODE}\n")})
        made.wait(lambda: "Step 4/" in made.log(job), "the steps have run")
        interfaces, groups = made.log(job).partition("Step 3/")[::2]
        assert f"\n{group}\nlo\n" in interfaces, "the step was run, and saw nothing else"
        assert f"/{group}/" in groups
        made.client.jobs.cancel(job)
        assert made.there.user.ended(job)["state"] == "canceled"
