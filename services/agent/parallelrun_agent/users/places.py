"""The folders that workers of other users must get through, or read: opened where they are the agent's, else named."""

from __future__ import annotations

import os
import stat
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parallelrun_agent.users.rights import NotPossible
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import PRIVATE_FOLDER, Logs, code_store, jobs_of, make_store
from parallelrun_core.pipelines.outputs import job_of_output
from parallelrun_core.spec import JobSpec

_WAY_THROUGH: Final = 0o111
_GATE: Final = 0o710
"""A job's folder: its own workers pass through it, nobody else's do."""
_SHARED: Final = 0o1770
"""Its outputs: workers put files there, and can't remove or replace those of others, such as the rows."""
_SHARED_OUTSIDE: Final = 0o1775
_BY_SEVERAL: Final = 0o1777
_ABOVE_OUTPUT: Final = 0o1755
"""A folder that came with an output below it: told by its mode from one of an operator, which is left as it is."""
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_SHARED_FILE: Final = 0o664


def open_ways(root: Path, local: Path, anybody: WorkerUser) -> None:
    """Let the users of workers through the folders above what they may read. Nobody can list these.

    Raises:
        NotPossible: one that isn't the agent's is closed to them.
    """
    root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    for store in (jobs_of(root), code_store(root)):
        make_store(store)
    for folder in (root, jobs_of(root), code_store(root), local):
        let_through(folder)
    worker = find_spec("parallelrun_worker")
    needed = [jobs_of(root), code_store(root), local, Path(sys.executable), Path(os.path.realpath(sys.executable))]
    needed += [Path(worker.origin).parent] if worker and worker.origin else []
    for path in needed:
        if not anybody.can(path, os.X_OK):
            raise NotPossible(f"{path} is closed to user {anybody.uid}, one of --worker-uids: {advice(path, anybody)}")


def let_through(folder: Path) -> None:
    """Let others through a folder of the agent's, without showing them what is in it."""
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode != (closed := (mode | _WAY_THROUGH) & ~stat.S_IROTH):
        folder.chmod(closed)


def advice(path: Path, user: WorkerUser) -> str:
    """Return what lets a user through to a folder that is closed to it."""
    closed = next((each for each in reversed([path, *path.parents]) if not user.can(each, os.X_OK)), path)
    return f"chmod o+x {closed}, or use another folder"


def share_job(folder: JobFolder, node: str, user: WorkerUser) -> None:
    """Let the workers of a job into its folder, as far as they need it. For every node the same.

    Raises:
        OSError: it belongs to another user than the agent, or can't be changed for now.
    """
    if not user.is_other:
        return
    logs = Logs(folder.logs)
    below_user = (logs.user_metrics, logs.user_artifacts, logs.user_memory)
    job_paths = (logs.script_files(node), logs.script_log(node), *(folder / node for folder in below_user))
    for each in (logs.of_node(node), logs.errors_of_node(node), *job_paths):
        each.mkdir(parents=True, exist_ok=True)
    folder.layout.schemas_of_workers.mkdir(exist_ok=True)
    user.share(folder.layout.schemas_of_workers, _SHARED)
    for each in job_paths:
        user.share(each, _SHARED)
    user.share(folder.outputs, _SHARED)
    user.share(folder.path, _GATE)


def share_loops(folder: JobFolder, spec: JobSpec, outermost: str, user: WorkerUser) -> None:
    """Let the workers of a step through to what a `parallel_for` of the same pipeline has put together: its job has no
    workers, and so no agent has opened its folder.

    Raises:
        OSError: it belongs to another user than the agent, or can't be changed for now.
    """
    if not user.is_other:
        return
    job_ids = {job_of_output(folder.root, job_input.path) for _, job_input in spec.input_paths()} - {"", folder.job_id}
    for loop in (JobFolder(folder.root, job_id) for job_id in job_ids):
        if loop.has_record and loop.record().is_pipeline and loop.record().outermost == outermost:
            user.share(loop.path, _GATE)


def make_output(folder: Path, user: WorkerUser) -> None:
    """Create the folder of an output for workers to write into; one that no agent has created is left as it is.

    One that several jobs name is open to the workers of all; each can change only its own files.

    Raises:
        OSError: it can't be created, or a job's code has put a link in its way.
    """
    if not user.is_other:
        folder.mkdir(parents=True, exist_ok=True)
        return
    fd, is_new = _made(folder)
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            return
        mode = stat.S_IMODE(status.st_mode)
        if is_new or mode == _ABOVE_OUTPUT:
            user.share_open(fd, _SHARED_OUTSIDE)
        elif status.st_gid != user.uid and mode == _SHARED_OUTSIDE:
            user.share_open(fd, _BY_SEVERAL)
    finally:
        os.close(fd)


def _made(folder: Path) -> tuple[int, bool]:
    """Create a folder with those above it, as the agent; returns it open, and whether it is new.

    Of links, only those of root and of the agent are followed: a worker's could lead into another job's folder.
    """
    at, is_new = os.open("/", _FOLDER), False
    for name in folder.absolute().parts[1:]:
        above = at
        try:
            is_new = _is_made(name, above)
            at = _entered(name, above)
        finally:
            os.close(above)
    return at, is_new


def _is_made(name: str, above: int) -> bool:
    try:
        os.mkdir(name, _ABOVE_OUTPUT, dir_fd=above)
    except FileExistsError:
        return False
    return True


def _entered(name: str, above: int) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except OSError:
        if os.stat(name, dir_fd=above, follow_symlinks=False).st_uid not in (0, os.geteuid()):
            raise
        return os.open(name, _FOLDER, dir_fd=above)


def share_file(path: Path, user: WorkerUser) -> None:
    """Create a file in a folder of the agent's, to which both append.

    Raises:
        OSError: it can't be created.
    """
    if user.is_other:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        user.share(path, _SHARED_FILE)
