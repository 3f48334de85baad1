"""Packages that are named by a URL, and whatever these name in turn, come from hosts that an operator has listed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from parallelrun_agent.environments.cache import InUse, make_place
from parallelrun_agent.environments.git_hosts import git_variables
from parallelrun_agent.users.worker_user import SAME_USER
from tests.integration.git_server import GitServer
from tests.integration.test_environments import wheel
from tests.twins.sabotage import expect_failure

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not shutil.which("openssl") or not shutil.which("git") or find_spec("uv") is None,
        reason="there is no openssl, no git, or no uv",
    ),
]
_BACKEND = """
import os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "NAME-1.0-py3-none-any.whl", "NAME-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("NAME.py", open("part/content.py").read() if os.path.exists("part/content.py") else "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\nNEEDS")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""
_BUILD_SYSTEM = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
_ELSEWHERE = (
    "https://127.0.0.1:{port}/other", "https::https://127.0.0.1:{port}/other", "HTTPS://127.0.0.1:{port}/other",
    "https:////127.0.0.1:{port}/other", "https://localhost:{port}@127.0.0.1:{port}/other", "file://{folder}/other",
    "{folder}/other", "ssh://localhost/other", "git@localhost:other", "git://localhost/other",
    "http://localhost:{port}/other", "ext::sh -c 'touch {folder}/run'", "https:127.0.0.1:{port}/other",
)  # fmt: skip
"""Submodules elsewhere, where `localhost` is listed."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "served", tmp_path / "state") as server:
        server.repository("other", {"content.py": "is_there = True\n"}, {})
        yield server


def files_of(name: str, needs: str = "") -> dict[str, str]:
    """The files of a package that takes its one module from a submodule in `part`."""
    backend = _BACKEND.replace("NAME", name).replace("NEEDS", f"Requires-Dist: {needs}\\n" if needs else "")
    project = f"[project]\nname = '{name}'\nversion = '1.0'\ndynamic = ['dependencies']\n"
    return {"pyproject.toml": project + _BUILD_SYSTEM, "backend.py": backend}


def installed(
    server: GitServer, tmp_path: Path, line: str, *hosts: str, without: str = "", is_locked: bool = False
) -> str:
    """Build an environment with a package as an agent does; returns the last line that was told.

    Args:
        hosts: those that are listed.
        without: a function of the build that does nothing.
    """
    folder = tmp_path / "cache" / "environments" / "x"
    use, lock = InUse(folder), make_place(folder, SAME_USER)
    request = {
        "folder": str(folder), "compile": False, "may_build": True, "hosts": hosts, "pip_configuration": "",
        "lock": lock,
        "recipe": {
            "python": sys.executable, "requirements": [line], "worker": "/nowhere/worker", "is_locked": is_locked,
        },
    }  # fmt: skip
    program = "import sys; from unittest.mock import patch; from parallelrun_agent.environments import build\n"
    program += f"patch.object(build, {without!r}, lambda *_: {{}}).start()\n" if without else ""
    names = ("PATH", "HOME", "PYTHONPATH")
    environment = {name: os.environ[name] for name in names if name in os.environ} | server.variables
    environment |= {"UV_CACHE_DIR": str(tmp_path / "uv"), "UV_NO_INDEX": "1", "UV_PYTHON_DOWNLOADS": "never"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"{program}sys.exit(build.main())"], input=json.dumps(request), pass_fds=(lock,),
            capture_output=True, check=False, text=True, env=environment,
        )  # fmt: skip
    finally:
        os.close(lock)
        use.close()
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def asked_elsewhere(server: GitServer) -> list[str]:
    """What was asked for by a name that is not listed."""
    return [each for each in server.asked if not each.startswith("localhost:")]


def check_submodule(server: GitServer, tmp_path: Path, url: str, without: str = "") -> None:
    """Install a package with a submodule that is elsewhere: nothing of it is fetched."""
    url = url.format(port=server.port, folder=server.folder)
    commit = server.repository("package", files_of("package"), {"part": url})
    line = f"package @ git+https://localhost:{server.port}/package@{commit}"
    told = installed(server, tmp_path, line, f"localhost:{server.port}", without=without)
    assert told.startswith("error: "), told
    assert asked_elsewhere(server) == []
    assert not (server.folder / "run").exists()


@pytest.mark.parametrize("url", [_ELSEWHERE[0], *(url for url in _ELSEWHERE if url.startswith("file:"))])
def test_a_submodule_elsewhere_is_not_fetched(server: GitServer, tmp_path: Path, url: str) -> None:
    check_submodule(server, tmp_path, url)


@pytest.mark.parametrize("url", _ELSEWHERE)
def test_git_fetches_no_submodule_from_a_host_that_is_not_listed(server: GitServer, tmp_path: Path, url: str) -> None:
    url = url.format(port=server.port, folder=server.folder)
    server.repository("package", {"x": ""}, {"part": url})
    variables = os.environ | server.variables | git_variables([f"localhost:{server.port}"])
    clone = ["git", "clone", "-q", f"https://localhost:{server.port}/package", str(tmp_path / "clone")]
    subprocess.run(clone, check=True, env=variables)
    update = ["git", "-C", str(tmp_path / "clone"), "submodule", "update", "--init", "--recursive"]
    done = subprocess.run(update, check=False, env=variables, capture_output=True, text=True)
    assert done.returncode, done.stderr
    assert asked_elsewhere(server) == []
    assert not (server.folder / "run").exists()


def test_a_submodule_elsewhere_that_is_fetched_is_found(server: GitServer, tmp_path: Path) -> None:
    with expect_failure():
        check_submodule(server, tmp_path, _ELSEWHERE[0], without="git_variables")


@pytest.mark.parametrize("hosts", [("localhost:{port}",), ("elsewhere.example", "localhost:{port}"), ("*",)])
def test_a_submodule_on_a_listed_host_is_a_part_of_its_package(
    server: GitServer, tmp_path: Path, hosts: tuple[str, ...]
) -> None:
    url = f"https://localhost:{server.port}"
    commit = server.repository("package", files_of("package"), {"part": f"{url}/other"})
    listed = [host.format(port=server.port) for host in hosts]
    assert installed(server, tmp_path, f"package @ git+{url}/package@{commit}", *listed) == "Ready."
    assert [path.read_text() for path in (tmp_path / "cache").rglob("package.py")] == ["is_there = True\n"]


def test_a_package_named_by_a_url_brings_none_from_elsewhere(server: GitServer, tmp_path: Path) -> None:
    check_needed(server, tmp_path)


def check_needed(server: GitServer, tmp_path: Path, without: str = "") -> None:
    """Install a package whose metadata names another one by a URL, on another host and on a listed one."""
    wheel(server.folder, "needed", "1.0")
    told = {}
    for name, host in (("bad", "127.0.0.1"), ("good", "localhost")):
        needs = f"needed @ https://{host}:{server.port}/needed-1.0-py3-none-any.whl"
        commit = server.repository(name, files_of(name, needs), {})
        line = f"{name} @ git+https://localhost:{server.port}/{name}@{commit}"
        told[name] = installed(server, tmp_path, line, f"localhost:{server.port}", without=without)
    assert told["good"] == "Ready."
    assert "needed comes from https://127.0.0.1" in told["bad"]
    assert "PARALLELRUN_PACKAGE_HOSTS" in told["bad"]


def test_a_package_from_elsewhere_that_another_brings_is_found(server: GitServer, tmp_path: Path) -> None:
    with expect_failure():
        check_needed(server, tmp_path, without="_check_hosts")


def test_a_locked_package_with_a_url_is_installed_of_its_wheel_alone(server: GitServer, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    ran = tmp_path / "ran"
    for name, text in {**files_of("sourced"), "backend.py": f"open({str(ran)!r}, 'w')"}.items():
        (tmp_path / "source" / name).write_text(text)
    with tarfile.open(server.folder / "sourced-1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "source", "sourced-1.0")
    host = f"localhost:{server.port}"
    for name, file in (("six", wheel(server.folder, "six", "1.0")), ("sourced", Path(archive.name))):  # type: ignore[arg-type]
        digest = sha256(file.read_bytes()).hexdigest()
        line = f"{name} @ https://{host}/{file.name} --hash=sha256:{digest}"
        told = installed(server, tmp_path, line, host, is_locked=True)
        if name == "six":
            assert told == "Ready."
    assert told.startswith("error: ")
    assert "source distributions" in told
    assert "--allow-source-packages" not in told, "no node builds what is locked"
    assert not ran.exists()
