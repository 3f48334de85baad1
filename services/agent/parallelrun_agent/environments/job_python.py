"""The Python of a job's workers: the agent's own, or one that is built for what the job asks for.

Environments are in the node's cache, each under the hash of all that it depends on. Each is built once, in a process of
its own (`build.py`), since the agent's thread has leases to renew meanwhile. Where the agent may change users, that
process is a user of the owner's, or one for all that is locked by hashes (`recipe.py`): neither the agent nor a job.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_agent.environments.build import BuildRequest
from parallelrun_agent.environments.builder_home import (
    home_of,
    open_home,
    pip_configuration,
    programs,
    prune_homes,
    variables_of,
)
from parallelrun_agent.environments.cache import (
    InUse,
    builders_of,
    check_cache,
    is_ready,
    make_place,
    mark_ready,
    prune,
)
from parallelrun_agent.environments.recipe import Recipe, recipes_of
from parallelrun_agent.users.places import advice, let_through
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.wire.outcome import Failure

if TYPE_CHECKING:
    from parallelrun_agent.environments.image_python import ImagePython
    from parallelrun_agent.loop import EventLoop
    from parallelrun_agent.users.choice import Uids
    from parallelrun_agent.workers.orphans import Orphans
    from parallelrun_core.spec import Environment

log = logger()

_UMASK: Final = 0o022
"""Others read what is built."""
_LAST_LINES: Final = 15
_LAST_BYTES: Final = 1 << 16
_REPORT_EVERY_S: Final = 20.0


class JobPython:
    """The interpreter of one job's workers on this node; built while the loop goes on. Used by the agent's one thread.

    Args:
        owner: whose job it is; an environment that is not locked by hashes is shared by the jobs of one owner.
        package_hosts: from which packages may come that are named by a URL.
        cache: the node's folder for environments, which outlives jobs and agents.
        max_environments: how many environments may be left there after one more was built.
        log_file: where the output of the build goes.
        changed: called when it is ready, or could not be built, but for what is known at once.
        user: who runs it.
        uids: the users of whom one builds it; None: the agent's own.
        may_build_packages: whether packages without a wheel may run their setup code here, as who builds it.
        image: that of the image that the node is of.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        owner: str,
        package_hosts: Sequence[str] = ("*",),
        cache: Path,
        max_environments: int,
        log_file: Path,
        loop: EventLoop,
        orphans: Orphans,
        changed: Callable[[], None],
        user: WorkerUser = SAME_USER,
        uids: Uids | None = None,
        may_build_packages: bool = True,
        image: ImagePython | None = None,
    ) -> None:
        self.executable = sys.executable
        self.failure: Failure | None = None
        self._cache = cache
        self._max_environments = max_environments
        self._log_file = log_file
        self._loop = loop
        self._orphans = orphans
        self._changed = changed
        self._user = user
        self._uids = uids
        self._may_build_packages = may_build_packages
        self._package_hosts = package_hosts
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._watch = ExitStack()
        """Ends the loop's watch of the process."""
        self._use: InUse | None = None
        self._home_use: InUse | None = None
        """Of the builder's folder, while it builds."""
        self._lock = -1
        self._untried: list[Recipe] = []
        self._report_at = 0.0
        if environment.is_own or image:
            try:
                self._untried = recipes_of(environment, owner, image, package_hosts)
            except ValueError as error:
                self.failure = _not_built(str(error))

    def begin(self) -> None:
        """Use the first environment that is there already, or begin to build one.

        Raises:
            OSError: the node has no room for it, or can't begin to build it.
        """
        if not self._untried:
            return
        try:
            check_cache(self._cache)
        except (ValueError, PermissionError) as error:
            self.failure = _not_built(str(error))
            return
        folders = [recipe.folder(self._cache, self._uids) for recipe in self._untried]
        ready = next((number for number, folder in enumerate(folders) if is_ready(folder)), 0)
        del self._untried[:ready]  # which could not be built then
        self._use_next()

    @property
    def is_ready(self) -> bool:
        return self._process is None and self.failure is None

    def variables(self, inherited: dict[str, str]) -> dict[str, str]:
        """Return what an activated environment sets."""
        if self._folder is None:
            return {}
        path = os.pathsep.join(filter(None, (str(self._folder / "bin"), inherited.get("PATH"))))
        return {"VIRTUAL_ENV": str(self._folder), "PATH": path}

    def is_due(self, now: float) -> bool:
        """Return whether it is time to report that it is still being built, so that the job isn't taken for stuck."""
        return self._process is not None and now >= self._report_at

    def reported(self, now: float) -> None:
        """Record that the build was reported, which is due again in some seconds."""
        self._report_at = now + _REPORT_EVERY_S

    def close(self) -> None:
        """Abandon a build; what is complete stays."""
        if self._process is not None:
            self._reap(self._process)
        self._let_go()

    def _let_go(self) -> None:
        """Give up the environment: others may build or remove it."""
        self._unlock()
        for use in (self._use, self._home_use):
            if use is not None:
                use.close()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _use_next(self) -> None:
        """Use the environment of the next recipe, or begin to build it."""
        recipe = self._untried.pop(0)
        builder = recipe.builder(self._uids)
        folder = self._folder = recipe.folder(self._cache, self._uids)
        self.executable = str(folder / "bin" / "python")
        self._use = InUse(folder)
        try:
            for above in (self._cache, folder.parent) if builder.is_other or self._user.is_other else ():
                let_through(above)
            if reason := self._why_closed(folder, builder):
                self.failure = _not_built(reason)
            elif not is_ready(folder):
                self._build(recipe, folder, builder, self._use)
        except BaseException:
            self.close()
            raise

    def _why_closed(self, folder: Path, builder: WorkerUser) -> str:
        """Return which path is closed to a user that needs it, and what to do; empty: none."""
        for who, user, paths in (
            ("the job's user", self._user, [self._cache, folder.parent]),
            ("the user that builds environments,", builder, [self._cache, folder.parent, *programs()]),
        ):
            for path in paths if user.is_other else ():
                if not user.can(path, os.X_OK):
                    reason = f"{path} is closed to {who} {user.uid}, one of --worker-uids"
                    return f"{reason}: {advice(path, user)}{' with --cache-dir' if path in folder.parents else ''}"
        return ""

    def _build(self, recipe: Recipe, folder: Path, builder: WorkerUser, use: InUse) -> None:
        """Start the process that builds it. It holds the locks as long as it lives, and so does this one."""
        self._lock = make_place(folder, builder)
        home = home_of(self._cache, builder) if builder.is_other else None
        if home is not None:
            self._home_use = InUse(home)
            open_home(home, builder)
        request = BuildRequest(
            recipe=recipe, folder=str(folder), lock=self._lock, compile=self._user.is_other,
            may_build=self._may_build_packages, hosts=tuple(self._package_hosts),
            pip_configuration=pip_configuration() if home else "",
        )  # fmt: skip
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as file, tempfile.TemporaryFile() as request_file, builder.acting():
            request_file.write(msgspec.json.encode(request))
            request_file.seek(0)
            self._process = subprocess.Popen(
                build_command(), stdin=request_file, stdout=file, stderr=file, start_new_session=True, cwd=home,
                pass_fds=(self._lock, use.fileno(), *([self._home_use.fileno()] if self._home_use else [])),
                env=variables_of(home, os.environ),
                **{"umask": _UMASK, **builder.start},
            )  # fmt: skip
        self._orphans.worker_started(self._process.pid)
        self._began = time.monotonic()
        pidfd = os.pidfd_open(self._process.pid)
        self._watch.callback(os.close, pidfd)
        self._loop.add(pidfd, self._on_exit)
        self._watch.callback(self._loop.remove, pidfd)
        log.info("environment_begun", folder=str(folder), uid=builder.uid if builder.is_other else os.geteuid())

    def _on_exit(self) -> None:
        process, folder = self._process, self._folder
        if process is None or folder is None:
            return
        code = self._reap(process)
        seconds = round(time.monotonic() - self._began, 1)
        try:
            if code == 0:
                mark_ready(folder)
                log.info("environment_ready", folder=str(folder), seconds=seconds)
                self._unlock()
                if self._home_use is not None:
                    self._home_use.close()
                self._prune(folder.parent)
            else:
                log.warning("environment_failed", folder=str(folder), exit_code=code, seconds=seconds)
                self._let_go()
                if self._untried:
                    self._use_next()
                else:
                    lines = self._last_lines()
                    last = next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
                    self.failure = _not_built(last, "\n".join(lines))
        except OSError as error:
            self.failure = _not_built(f"{error.filename or folder}: {error.strerror or error}")
        if self._process is None:
            self._changed()

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        self._watch.close()
        with suppress(ProcessLookupError):  # even after its own end: what it has started may still run
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        self._orphans.worker_ended(process.pid)
        self._process = None
        return code

    def _prune(self, environments: Path) -> None:
        """Remove what is too much in a thread of its own, as the agent's has leases to renew."""

        def remove() -> None:
            try:
                before = builders_of(environments, self._uids)
                names = prune(environments, self._max_environments, self._uids)
                after = builders_of(environments, self._uids)
                homes = prune_homes(self._cache, before, after, self._uids) if self._uids else []
            except OSError as error:
                log.warning("environments_not_removed", error=str(error))
                return
            if names or homes:
                log.info("environments_removed", names=names, kept=self._max_environments, of_builders=homes)

        with suppress(OSError):  # the next environment brings another attempt
            started_thread("prune", remove)

    def _last_lines(self) -> list[str]:
        """The last lines of the build's output, which a package may have made long."""
        try:
            with self._log_file.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
                return file.read(_LAST_BYTES).decode(errors="replace").splitlines()[-_LAST_LINES:]
        except OSError as error:
            return [str(error)]


def build_command() -> list[str]:
    return [sys.executable, "-P", "-m", "parallelrun_agent.environments.build"]


def _not_built(why: str, lines: str = "") -> Failure:
    message = f"The workers' environment could not be built: {why} (docs/curated-environments.md)"
    return Failure("ENVIRONMENT_FAILED", message, lines)
