"""The Python of a job's workers: the agent's own, or one that is built for what the job asks for.

Environments are in the node's cache, each under the hash of all that it depends on. Each is built once, in a process of
its own (`build.py`), since the agent's thread has leases to renew meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_agent.environments.cache import InUse, check_cache
from parallelrun_agent.environments.image_python import ImagePython
from parallelrun_agent.users.places import advice, let_through
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.service import children
from parallelrun_core.service.telemetry import logger
from parallelrun_core.wire.outcome import Failure

if TYPE_CHECKING:
    from parallelrun_agent.loop import EventLoop
    from parallelrun_agent.workers.orphans import Orphans
    from parallelrun_core.spec import Environment

log = logger()

READY: Final = "ready"
"""The file that marks an environment as complete."""
_READABLE: Final = 0o022
_LAST_LINES: Final = 15
_REPORT_EVERY_S: Final = 20.0


@dataclass(frozen=True)
class Recipe:
    """The recipe of an environment. Its hash names the folder that it is in."""

    python: str
    """The version that is asked for, or the agent's interpreter."""
    requirements: list[str]
    """Lines that `spec/requirements.py` has written; no text of a job is among them."""
    worker: str
    """The folder of the worker's own package, which is linked into the environment."""
    packages: tuple[str, ...] = ()
    """The folders of an image's packages, which are found after those that are installed."""
    image: str = ""
    """A hash of the image's Python and packages."""
    indexes: tuple[str, ...] = ()
    """Arguments of the installer that say where packages are."""

    @classmethod
    def of(cls, environment: Environment, image: ImagePython | None = None) -> Recipe:
        """Return what a job asks for, upon what the node's image has.

        Raises:
            ValueError: it asks for what is no longer installed; only a job of an earlier release does.
        """
        worker = find_spec("parallelrun_worker")
        if worker is None or worker.origin is None:
            raise RuntimeError("the worker is not installed")
        return cls(
            python=image.executable if image else environment.python or sys.executable,
            requirements=environment.requirements,
            worker=str(Path(worker.origin).parent),
            packages=image.packages if image else (),
            image=image.content if image else "",
            indexes=tuple(_index_arguments(environment)),
        )

    def folder(self, cache: Path) -> Path:
        """Return where it is, or is to be."""
        more: list[object] = [self.image] if self.image else []
        more += [self.indexes] if self.indexes else []
        text = json.dumps([self.python, self.requirements, self.worker, *more]).encode()
        return cache / "environments" / hashlib.sha256(text).hexdigest()[:32]


class JobPython:
    """The interpreter of one job's workers on this node; built while the loop goes on. Used by the agent's one thread.

    Args:
        cache: the node's folder for environments, which outlives jobs and agents.
        kept: how many environments may be left there after one more was built.
        log_file: where the output of the build goes.
        changed: called when it is ready, or could not be built, but for what is known at once.
        user: who runs it.
        may_build_packages: whether packages without a wheel may run their setup code here, as the agent.
        image: that of the image that the node is of.

    Raises:
        OSError: the node has no room for it, or can't begin to build it.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        cache: Path,
        max_environments: int,
        log_file: Path,
        loop: EventLoop,
        orphans: Orphans,
        changed: Callable[[], None],
        user: WorkerUser = SAME_USER,
        may_build_packages: bool = True,
        image: ImagePython | None = None,
    ) -> None:
        self.executable = sys.executable
        self.failure: Failure | None = None
        self._log_file = log_file
        self._loop = loop
        self._orphans = orphans
        self._changed = changed
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._request = {"kept": max_environments, "compile": user.is_other, "may_build": may_build_packages}
        self._use: InUse | None = None
        self._report_at = 0.0
        if environment.is_own or image:
            try:
                recipe = Recipe.of(environment, image)
            except ValueError as error:
                self.failure = _not_built(str(error))
                return
            self._folder = recipe.folder(cache)
            self.executable = str(self._folder / "bin" / "python")
            try:
                check_cache(cache)
            except PermissionError as error:
                self.failure = _not_built(str(error))
                return
            with ExitStack() as undo:
                self._use = InUse(self._folder)
                undo.callback(self._use.close)
                if user.is_other:
                    for above in (cache, self._folder.parent):
                        let_through(above)
                    if not user.can(above, os.X_OK):
                        reason = f"{above} is closed to the job's user {user.uid}, one of --worker-uids"
                        self.failure = _not_built(f"{reason}: {advice(above, user)} with --cache-dir")
                        return
                if not (self._folder / READY).exists():
                    self._build(recipe)
                undo.pop_all()

    @property
    def is_ready(self) -> bool:
        return self._process is None and self.failure is None

    def variables(self, inherited: dict[str, str]) -> dict[str, str]:
        """Return what an activated environment sets."""
        if self._folder is None:
            return {}
        return {"VIRTUAL_ENV": str(self._folder), "PATH": f"{self._folder / 'bin'}:{inherited.get('PATH', '')}"}

    def is_due(self, now: float) -> bool:
        """Return whether it is time to report that it is still being built, so that the job isn't taken for stuck."""
        return self._process is not None and now >= self._report_at

    def reported(self, now: float) -> None:
        """Record that the failure was reported."""
        self._report_at = now + _REPORT_EVERY_S

    def close(self) -> None:
        """Abandon a build; what is complete stays."""
        if self._process is not None:
            self._reap(self._process)
        if self._use is not None:
            self._use.close()

    def _build(self, recipe: Recipe) -> None:
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        request = json.dumps({"folder": str(self._folder), **self._request, **vars(recipe)})
        command = [sys.executable, "-P", "-m", "parallelrun_agent.environments.build"]
        with self._log_file.open("ab") as file, tempfile.TemporaryFile() as request_file:
            request_file.write(request.encode())
            request_file.seek(0)
            self._process = subprocess.Popen(
                command, stdin=request_file, stdout=file, stderr=file, start_new_session=True, umask=_READABLE,
                env=children.variables_for(children.Child.INSTALLER, os.environ),
            )  # fmt: skip
        self._orphans.worker_started(self._process.pid)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add(self._pidfd, self._on_exit)
        self._began = time.monotonic()
        log.info("environment_begun", folder=str(self._folder))

    def _on_exit(self) -> None:
        process = self._process
        if process is None:
            return
        code = self._reap(process)
        seconds = round(time.monotonic() - self._began, 1)
        if code == 0 and self._folder is not None and (self._folder / READY).exists():
            log.info("environment_ready", folder=str(self._folder), seconds=seconds)
        else:
            lines = self._last_lines()
            log.warning("environment_failed", folder=str(self._folder), exit_code=code, seconds=seconds)
            last = next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
            self.failure = _not_built(last, "\n".join(lines))
        self._changed()

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        self._loop.remove(self._pidfd)
        os.close(self._pidfd)
        with suppress(ProcessLookupError):  # even after its own end: what it has started may still run
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        self._orphans.worker_ended(process.pid)
        self._process = None
        return code

    def _last_lines(self) -> list[str]:
        """The last lines of the build's output."""
        try:
            return self._log_file.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        except OSError as error:
            return [str(error)]


def _index_arguments(environment: Environment) -> Iterator[str]:
    """Each value is a URL that was made anew from what was read (`spec/requirements.py`)."""
    if environment.index_url:
        yield f"--default-index={environment.index_url}"
    yield from (f"--index={url}" for url in environment.extra_index_urls)
    yield from (f"--find-links={url}" for url in environment.find_links)
    if environment.prereleases:
        yield "--prerelease=allow"


def _not_built(why: str, lines: str = "") -> Failure:
    return Failure("ENVIRONMENT_FAILED", f"The workers' environment could not be built: {why}", lines)
