"""`python -m parallelrun_agent.environments.build`: builds one environment, as a process of its own.

Where the agent may change users, this is a process of a builder: a user that neither the agent nor any job is. All that
it makes is in a folder that the agent has made for it. Nothing else is the builder's, and nothing below that folder is
run or read by the agent.

A `BuildRequest` comes on stdin, as JSON. Progress goes to stdout, whose last line is the error if there is one. The
exit code says whether it is complete; whoever has started this process marks it. Of several processes for the same
environment, of one agent or of several, one builds it and the others wait; its lock ends with its process and with the
agent's mark. An environment that is not complete is built again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_agent.environments.cache import is_ready
from parallelrun_agent.environments.git_hosts import git_variables
from parallelrun_agent.environments.recipe import Recipe
from parallelrun_core.service.children import WITH_USER, with_credentials
from parallelrun_core.spec.requirements import VARIABLE, host_of

_FROM_PIP: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
_LONGEST_S: Final = 3600.0
"""How long one step may take: long enough for a package that is built from its source, but not for ever."""
_DRAWN: Final = " \t\u00d7\u2570\u2500\u25b6\u2502\u251c"
"""What uv draws its errors with."""
_LACKS_WHEEL: Final = re.compile("no (usable )?wheels|[Bb]uilding source distributions")
"""In what uv says of a package that it may not build."""


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to be built."""

    folder: str
    recipe: Recipe
    lock: int
    """The descriptor of its lock."""
    hosts: tuple[str, ...]
    """The hosts from which packages with a URL may come; `*`: all."""
    pip_configuration: str
    """The text of the agent's own."""
    compile: bool
    """True: what is installed is compiled, as its users can't store that."""
    may_build: bool
    """Packages without a wheel may be built, which runs their own code; never for a locked recipe."""


class BuildFailed(Exception):
    """A step failed; the message is its error."""


class TooLong(BuildFailed):
    """A step has taken too long."""


def main() -> int:
    """Build what stdin asks for."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=BuildRequest)
    folder = Path(request.folder)
    try:
        fcntl.flock(request.lock, fcntl.LOCK_EX)
        if is_ready(folder):
            return 0
        os.environ.update(git_variables(request.hosts))
        with _configured(request.pip_configuration):
            _build(folder, request)
    except BuildFailed as error:
        print(f"error: {error}", flush=True)
        return 1
    except OSError as error:
        print(f"error: {error.filename or folder}: {error.strerror or error}", flush=True)
        return 1
    return 0


@contextmanager
def _configured(pip_configuration: str) -> Iterator[None]:
    """Let pip read this text as its configuration, unless there is another one."""
    if not pip_configuration or "PIP_CONFIG_FILE" in os.environ:
        yield
        return
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(pip_configuration)
        file.flush()
        os.environ["PIP_CONFIG_FILE"] = file.name
        yield


def _build(folder: Path, request: BuildRequest) -> None:
    _clear(folder)
    recipe = request.recipe
    python, requirements = recipe.python, recipe.requirements
    print(f"Building {folder} with Python {python}:", *requirements, sep="\n  ", flush=True)
    try:
        _uv("venv", "--no-project", "--python", python, str(folder))
    except BuildFailed as error:
        if python == sys.executable or recipe.packages or isinstance(error, TooLong):
            raise
        # A similar environment runs most jobs; none at all runs no job. The submitter has been warned.
        print(f"Python {python} is not available here ({error}); using {sys.executable}", flush=True)
        _clear(folder)
        _uv("venv", "--no-project", "--python", sys.executable, str(folder))
    if expanded := next(filter(VARIABLE.search, requirements), None):
        raise BuildFailed(f"{expanded!r}: no variable of the node is put into a requirement")
    base = os.path.realpath(folder / "bin" / "python")  # as it was before any package came
    if requirements:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(requirements) + "\n")
            file.flush()
            if any(" @ " in line for line in requirements):
                _check_hosts(folder, file.name, request)
            hashes = ["--require-hashes"] if recipe.is_locked else []
            _run_installer(["install", *hashes, "--requirements", file.name], folder, request)
        if request.compile:
            _compile(folder, base)
    _link_worker(folder, Path(recipe.worker))
    _link_packages(folder, recipe.packages)
    print("Ready.", flush=True)


def _clear(folder: Path) -> None:
    """Remove what an earlier attempt has left in a folder, which is itself not this process' to remove."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _check_hosts(folder: Path, requirements: str, request: BuildRequest) -> None:
    """Make sure that packages with a URL need none that is elsewhere: an installer would follow these, too.

    Raises:
        BuildFailed: one does, or nobody can tell.
    """
    if "*" in request.hosts:
        return
    with tempfile.TemporaryDirectory() as temporary:
        resolved = Path(temporary) / "resolved.txt"
        options = ["--no-header", "--no-annotate", "--output-file", str(resolved), requirements]
        _run_installer(["compile", *options], folder, request)
        for line in resolved.read_text().splitlines():
            name, at, url = line.partition(" ;")[0].partition(" @ ")
            if at and host_of(url.strip()) not in request.hosts:
                raise BuildFailed(
                    f"{name} comes from {url}, which is on a host that the operator has not listed"
                    " (PARALLELRUN_PACKAGE_HOSTS), as a package that was named by a URL asks for"
                )


def _run_installer(arguments: Sequence[str], folder: Path, request: BuildRequest) -> None:
    """Have uv do something for an environment; without a build where there is something that it could read."""
    environment, recipe = _environment(), request.recipe
    secret = sorted(with_credentials(environment) | {*_files_with_credentials(environment)})
    no_build = ["--no-build"] if recipe.is_locked or secret or not request.may_build else []
    python = str(folder / "bin" / "python")
    try:
        _uv("pip", arguments[0], "--python", python, "--no-sources", *recipe.indexes, *no_build, *arguments[1:])
    except BuildFailed as error:
        if recipe.is_locked or not no_build or not _LACKS_WHEEL.search(str(error)):
            raise
        why = "; see --allow-source-packages"
        if request.may_build:
            why = f", as {secret[0]} has credentials, which code of other packages could read"
        raise BuildFailed(f"{error} (this node installs wheels only{why})") from error


def _files_with_credentials(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of variables that lead to a file in which a URL has a user, and maybe a password."""
    for name in ("UV_CONFIG_FILE", "PIP_CONFIG_FILE"):
        with suppress(OSError):
            if WITH_USER.search(Path(environment.get(name, "")).read_text(errors="replace")):
                yield name


def _compile(folder: Path, base: str) -> None:
    """Compile what was installed, as its users can't store that. Nothing below the environment is run.

    Args:
        base: the interpreter that the environment was made of. That of the environment, its `pyvenv.cfg` and its .pth
            files may be a package's by now.
    """
    command = [base, "-I", "-S", "-m", "compileall", "-q", "-j", "0"]
    packages = map(str, folder.glob("lib/python*/site-packages"))
    with suppress(subprocess.TimeoutExpired):  # it then takes longer to import
        subprocess.run(
            [*command, *packages], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_LONGEST_S
        )


def _uv(*arguments: str) -> None:
    import uv

    command = [uv.find_uv_bin(), *arguments]
    print("$ uv", *arguments, flush=True)
    with tempfile.TemporaryFile() as file:  # no pipe: what uv has started may keep it open
        process = subprocess.Popen(command, env=_environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        file.seek(0)
        output = file.read().decode(errors="replace")
    print(output, flush=True)
    if process.returncode == -signal.SIGKILL:
        raise TooLong(f"uv {arguments[0]} was killed: after {_LONGEST_S:g} s, or by another process")
    if process.returncode:
        raise BuildFailed(_cause(output) or f"uv {arguments[0]} ended with code {process.returncode}")


def _cause(output: str) -> str:
    """uv's error in one line, without the drawing around it."""
    lines = [line.strip(_DRAWN).removeprefix("cause: ") for line in output.splitlines()]
    begin = next((number for number, line in enumerate(lines) if line.startswith("error: ")), 0)
    causes = [line.removeprefix("error: ") for line in lines[begin:] if line and not line.startswith("hint: ")]
    return " … ".join(causes if len(causes) < 4 else [*causes[:2], causes[-1]])[:1000]


def _environment() -> dict[str, str]:
    """The agent's own, with pip's configuration where uv has none: uv doesn't read pip's files."""
    environment = {**os.environ, "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
    completed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdin=subprocess.DEVNULL,
                           capture_output=True, check=False, text=True)  # fmt: skip
    for line in completed.stdout.splitlines():
        name, _, value = line.partition("=")
        variable = _FROM_PIP.get(name.rpartition(".")[2])
        if variable and variable not in os.environ:
            words = value.strip("'\"").replace("\\n", " ").split()
            joint = "," if variable == "UV_FIND_LINKS" else " "
            environment[variable] = joint.join(words)
            # For pip, all indexes are equal.
            environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return environment


def _link_worker(folder: Path, worker: Path) -> None:
    """Let the environment import the worker's package, and nothing else of ours."""
    for packages in folder.glob("lib/python*/site-packages"):
        (packages / worker.name).symlink_to(worker)


def _link_packages(folder: Path, packages: Sequence[str]) -> None:
    """Let it find these folders after its own. As folders of packages, whose .pth files count: they may name others.

    An environment of an image can be one itself, and the packages that `--system-site-packages` gives to another one
    are those below it.
    """
    if packages:
        line = f"import site; list(map(site.addsitedir, {list(packages)!r}))\n"
        for site_packages in folder.glob("lib/python*/site-packages"):
            (site_packages / "_image.pth").write_text(line)


if __name__ == "__main__":
    raise SystemExit(main())
