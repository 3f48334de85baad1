"""Jobs whose workers need a Python of their own."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from parallelrun_agent.environments import build, job_python
from parallelrun_agent.environments.cache import InUse, make_place, mark_ready, prune
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_core.spec import Environment
from tests.cluster import Cluster
from tests.twins.sabotage import expect_failure

pytestmark = pytest.mark.integration

SCRIPT = """
import importlib.util, os, sys
def run(mini_batch):
    import six
    own = importlib.util.find_spec("msgspec") is None
    return [f"{six.__version__} {own} {sys.prefix == os.environ['VIRTUAL_ENV']}"] * len(mini_batch)
"""


def wheel(folder: Path, name: str, version: str) -> Path:
    """A package of one module, as small as can be, so that no registry is needed."""
    import zipfile

    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """An environment with one package, from a folder that stands for a registry."""
    if find_spec("uv") is None:
        pytest.skip("uv is not installed")
    wheel(tmp_path / "wheels", "six", "1.16.0")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return {"conda_file": {"dependencies": [{"pip": ["six==1.16.0"]}]}}


def test_workers_run_in_the_environment_of_their_job_which_is_made_once(
    environment: dict[str, object], tmp_path: Path
) -> None:
    with Cluster(nodes=2, slots=1) as cluster:
        jobs = [
            cluster.submit(SCRIPT, inputs=cluster.files(8), mini_batch_size=2, environment=environment)
            for _ in range(2)
        ]
        results = [cluster.result(job) for job in jobs]
        assert [result.state for result in results] == ["completed"] * 2
        for result in results:
            assert set(cluster.output(result)) == {"1.16.0 True True"}
        made = sum(cluster.logged(node, "environment_begun") for node in cluster.nodes)
        assert made >= 1
        told = [
            path.read_text() for job in jobs for path in cluster.folder(job).logs.glob("sys/node/*/environment.txt")
        ]
        assert sum("Ready." in text for text in told) == 1, "all others found it made"
    assert len([path for path in (tmp_path / "cache" / "parallelrun" / "environments").iterdir() if path.is_dir()]) == 1


def test_an_environment_that_cannot_be_made_fails_the_job_with_the_cause(environment: dict[str, object]) -> None:
    with Cluster(nodes=1) as cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(2), environment={"pip": ["no-such-package-of-ours"]})
        failure = cluster.result(job).failure
        assert failure is not None
        assert failure.code == "ENVIRONMENT_FAILED"
        assert "no-such-package-of-ours" in failure.first_cause
        log = cluster.folder(job).logs / failure.log
        assert "no-such-package-of-ours" in log.read_text()


def broken_off(folder: Path) -> Path:
    """What is left of an environment whose making was broken off."""
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "rubbish").touch()
    return folder


def make(folder: Path, python: str = sys.executable) -> str:
    """Have an environment made as an agent does; returns what was told."""
    request: dict[str, object] = {"folder": str(folder), "hosts": ["*"], "pip_configuration": "", "compile": False}
    request |= {"may_build": True, "recipe": {"python": python, "requirements": [], "worker": "/nowhere/worker"}}
    command = [sys.executable, "-m", "parallelrun_agent.environments.build"]
    use = InUse(folder)
    lock = make_place(folder, SAME_USER)
    try:
        done = subprocess.run(
            command, input=json.dumps({**request, "lock": lock}), pass_fds=(lock,), capture_output=True, check=False,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        mark_ready(folder)
    finally:
        os.close(lock)
        use.close()
    return done.stdout


@pytest.mark.usefixtures("environment")
def test_one_that_was_broken_off_is_made_anew(tmp_path: Path) -> None:
    folder = broken_off(tmp_path / "cache" / "environments" / "x")
    assert "Ready." in make(folder)
    assert (folder / "bin" / "python").exists()
    assert not (folder / "lib" / "rubbish").exists()
    assert make(folder) == "", "there was nothing left to do"


def test_a_build_that_cannot_be_watched_is_ended_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptors(_: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("os.pidfd_open", no_descriptors)
    monkeypatch.setattr(job_python, "build_command", lambda: ["sleep", "1000"])
    started: list[int] = []
    orphans = Orphans()
    monkeypatch.setattr(orphans, "worker_started", started.append)
    with closing(EventLoop()) as loop:
        python = job_python.JobPython(
            Environment(pip=("x",)), owner="anna", cache=tmp_path / "cache", max_environments=1, loop=loop,
            log_file=tmp_path / "log", orphans=orphans, changed=lambda: None,
        )  # fmt: skip
        before = sorted(Path("/proc/self/fd").iterdir())
        with pytest.raises(OSError, match="Too many open files"):
            python.begin()
        python.close()
        assert sorted(Path("/proc/self/fd").iterdir()) == before
    assert not Path(f"/proc/{started.pop()}").exists()
    bin_alone = python.variables({"PATH": ""})["PATH"]
    assert bin_alone.endswith("/bin"), "a folder without a name would be the current one"


@pytest.mark.usefixtures("environment")
def test_a_python_that_cannot_be_had_is_that_of_the_node_and_that_is_told(tmp_path: Path) -> None:
    told = make(tmp_path / "cache" / "environments" / "x", "3.99")
    assert "Python 3.99 is not available here" in told
    assert told.endswith("Ready.\n")
    assert (tmp_path / "cache" / "environments" / "x" / "bin" / "python").exists()


def test_a_step_that_hangs_is_ended_in_spite_of_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\necho Building…\nsleep 1000 &\necho $! >{tmp_path}/pid\nwait\n")
    uv.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(uv))
    monkeypatch.setattr(build, "_LONGEST_S", 5.0)
    with pytest.raises(build.TooLong, match=r"uv venv was killed: after 5 s"):
        build._uv("venv")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert "Building…" in capfd.readouterr().out


@pytest.mark.usefixtures("environment")
def test_one_that_is_taken_for_whole_too_early_is_found(tmp_path: Path) -> None:
    folder = broken_off(tmp_path / "cache" / "environments" / "x")
    mark_ready(folder)
    make(folder)
    assert (folder / "lib" / "rubbish").exists()
    assert not (folder / "bin" / "python").exists()


@pytest.mark.usefixtures("environment")
def test_one_more_than_are_kept_removes_the_one_that_was_used_longest_ago(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "environments"
    make(folder / "a")
    make(folder / "b")
    assert prune(folder, 2) == []
    InUse(folder / "a").close()
    make(folder / "c")
    assert prune(folder, 2) == ["b"]
    assert list(folder.glob("b*")) == []
    assert (folder / "a" / "bin" / "python").exists()


BACKEND = """
import json, os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open(os.environ["HOME"] + "/seen.json", "w") as file:
        json.dump(dict(os.environ), file)
    name = "parallelrun_test_sourced-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("parallelrun_test_sourced.py", "")
        info = "parallelrun_test_sourced-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: parallelrun-test-sourced\\nVersion: 1.0\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""


def source_package(folder: Path, waits_for: Path | None = None) -> None:
    """A package without a wheel, whose installation runs its own code, and may wait for a file."""
    import io
    import tarfile

    project = "[project]\nname = 'parallelrun-test-sourced'\nversion = '1.0'\n"
    build_system = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    waits = f"import os, time\nwhile not os.path.exists({str(waits_for)!r}): time.sleep(0.05)\n" if waits_for else ""
    files = {
        "pyproject.toml": project + build_system, "backend.py": waits + BACKEND,
        "PKG-INFO": "Metadata-Version: 2.1\nName: parallelrun-test-sourced\nVersion: 1.0\n",
    }  # fmt: skip
    with tarfile.open(folder / "parallelrun_test_sourced-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"parallelrun_test_sourced-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))


def check_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str = "") -> None:
    """Install a package whose setup looks for secrets of the agent's."""
    source_package(tmp_path / "wheels")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("A_TOKEN_OF_THE_AGENT", "UV_PUBLISH_TOKEN", "UV_INDEX_INNER_PASSWORD"):
        monkeypatch.setenv(name, "canary")
    with Cluster(without=without) as cluster:
        script = "import parallelrun_test_sourced\ndef run(mini_batch):\n    return mini_batch\n"
        result = cluster.result(
            cluster.submit(script, inputs=cluster.files(1), environment={"pip": ["parallelrun-test-sourced"]})
        )
        assert result.state == "completed", result.failure
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert "PATH" in seen
    assert not [name for name, value in seen.items() if name.startswith("PARALLELRUN_") or value == "canary"]


@pytest.mark.usefixtures("environment")
def test_while_an_environment_is_made_no_first_timeout_runs_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_package(tmp_path / "wheels", waits_for=tmp_path / "go")
    monkeypatch.setenv("HOME", str(tmp_path))
    script = "import parallelrun_test_sourced\ndef run(mini_batch):\n    return mini_batch\n"
    packages = {"pip": ["parallelrun-test-sourced"]}
    with Cluster() as cluster:
        files = cluster.files(1)
        job = cluster.submit(script, inputs=files, environment=packages, first_task_creation_timeout=2)
        logs = cluster.folder(job).logs

        def says(words: str) -> bool:
            return words in "".join(path.read_text() for path in logs.glob("job_progress_overview.*.txt"))

        waits = "waits, and no timeout runs: its environment or its inputs are being brought there on all of its nodes."
        cluster.until(lambda: says(waits), "the job says what it waits for")
        status = cluster.registry.status(job)
        cluster.until(lambda: cluster.registry.now() - (status.started or 0) > 6, "the timeout would have been over")
        (tmp_path / "go").touch()
        result = cluster.result(job)
        assert result.state == "completed", result.failure


@pytest.mark.usefixtures("environment")
def test_what_a_package_runs_when_it_is_installed_has_no_secret_of_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_setup(tmp_path, monkeypatch)


@pytest.mark.usefixtures("environment")
def test_an_installer_with_all_that_the_agent_was_started_with_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with expect_failure():
        check_setup(tmp_path, monkeypatch, "installer.environment")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
def test_workers_of_other_users_use_an_environment_and_cannot_alter_it(
    environment: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Path(tempfile.mkdtemp(dir="/tmp")) / "cache"
    source_package(tmp_path / "wheels")
    offered = shutil.copytree(tmp_path / "wheels", cache.parent / "wheels")  # where every user can read it
    monkeypatch.setenv("UV_FIND_LINKS", str(offered))
    script = (
        "import os, six\ndef run(mini_batch):\n"
        "    status = os.stat(six.__file__)\n"
        "    others = status.st_uid not in (os.getuid(), 0)\n"
        "    return [f'{os.access(six.__file__, os.W_OK)} {os.path.exists(six.__cached__)} {others}']\n"
    )
    with Cluster(worker_uids="20000-59999", agent_flags=("--cache-dir", str(cache))) as cluster:
        cache.parent.chmod(0o711)
        result = cluster.result(cluster.submit(script, inputs=cluster.files(1), environment=environment))
        assert result.state == "completed", result.failure
        assert cluster.output(result) == ["False True True"], "read-only, compiled, and a builder's"
        failure = cluster.result(
            cluster.submit(script, inputs=cluster.files(1), environment={"pip": ["parallelrun-test-sourced"]})
        ).failure
        assert failure is not None
        assert failure.code == "ENVIRONMENT_FAILED"
        assert "installs wheels only" in failure.first_cause
    shutil.rmtree(cache.parent)


def test_a_cache_that_others_can_write_to_fails_the_job_by_its_name(
    environment: dict[str, object], tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    cache.mkdir()
    cache.chmod(0o777)
    with Cluster(agent_flags=("--cache-dir", str(cache))) as cluster:
        failure = cluster.result(cluster.submit(SCRIPT, inputs=cluster.files(1), environment=environment)).failure
    assert failure is not None
    assert f"others can write to {cache}" in failure.first_cause
    assert list(cache.iterdir()) == []
