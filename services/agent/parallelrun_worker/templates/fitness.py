"""Checks whether a process can be forked without losing anything that its imports have begun."""

from __future__ import annotations

import os
import re
import signal
import site
import sys
import threading
from typing import NamedTuple

_FORK_SAFE_THREADS = frozenset(("jemalloc_bg_thd",))
"""Names of threads whose library knows in a forked process that they are missing: that of Arrow's allocator."""
_HARMLESS_PTH = re.compile(
    r"a1_coverage|distutils-precedence|_?virtualenv|easy-install|__editable__.*|.*-nspkg|.*[-_]editable"
)
"""Names of `.pth` files, without the end, that only make modules found in another way, or do nothing in a worker."""
_GPU_LIBRARIES = ("/libcuda.so", "/libamdhip64.so")


class Unfit(Exception):
    """The process can't be forked; the message says why."""


class ProcessState(NamedTuple):
    """State of a process that its imports may leave changed."""

    descriptors: set[str]
    """Each open descriptor, with what it leads to."""
    handlers: dict[int, object]
    """The handler of each signal."""


def state_of_process() -> ProcessState:
    """Return the state of this process, before it imports."""
    return ProcessState(_open_descriptors(), {number: signal.getsignal(number) for number in range(1, signal.NSIG)})


def check_start(channel: int) -> None:
    """Make sure that this Python has begun as any: the environment may have it run something at once.

    Args:
        channel: the descriptor that it was given beside its standard streams.

    Raises:
        Unfit: it hasn't, and each worker must do that anew: with its own variables, and files of its own.
    """
    for name in ("sitecustomize", "usercustomize"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and os.path.dirname(file) != os.path.dirname(os.__file__):  # some systems have one there
            raise Unfit(f"its environment has a {name}")
    if name := _code_at_start():
        raise Unfit(f"its environment runs {name} when Python starts")
    expected = {"0", "1", "2", str(channel)}
    if any(each.partition(" ")[0] not in expected for each in _open_descriptors()):
        raise Unfit("its environment opens files when Python starts")


def _code_at_start() -> str:
    """Return the name of a `.pth` file with code, which Python has run when it started; empty: there is none."""
    for folder in _site_folders():
        try:
            names = os.listdir(folder)  # noqa: PTH208 - no path is needed
        except OSError:
            continue
        for name in sorted(names):
            stem, end = os.path.splitext(name)
            if end == ".pth" and not _HARMLESS_PTH.fullmatch(stem) and _has_code(os.path.join(folder, name)):
                return name
    return ""


def _site_folders() -> list[str]:
    """Return the folders whose `.pth` files Python reads."""
    return [*site.getsitepackages(), *([site.USER_SITE] if site.ENABLE_USER_SITE and site.USER_SITE else [])]


def _has_code(pth: str) -> bool:
    try:
        with open(pth, "rb") as file:
            return any(line.startswith((b"import ", b"import\t")) for line in file)
    except OSError:
        return False


def times_of_packages() -> list[int]:
    """Return when each folder was changed last that has packages: installing or removing one changes it."""
    folders = [*sys.path, *([site.USER_SITE] if site.ENABLE_USER_SITE and site.USER_SITE else [])]
    times = []
    for folder in folders:
        try:
            times.append(os.stat(folder).st_mtime_ns)
        except OSError:
            times.append(0)
    return times


def check_fitness(before: ProcessState) -> None:
    """Make sure that a fork loses nothing of what imports have changed since then.

    Raises:
        Unfit: it would.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fstat(1).st_size or os.fstat(2).st_size:
        raise Unfit("its imports have printed something")
    after = state_of_process()
    if after.descriptors - before.descriptors:
        raise Unfit("its imports have left files open")
    if after.handlers != before.handlers:
        raise Unfit("its imports have set a handler of signals")
    with open("/proc/self/maps") as maps:
        mapped = maps.read()
    if any(library in mapped for library in _GPU_LIBRARIES):
        raise Unfit("its imports have loaded the library of a GPU")
    _check_threads()


def _check_threads() -> None:
    """Fork once: libraries that know of forks end their threads before, and begin them again when needed."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    threads = [name for name in _thread_names() if name not in _FORK_SAFE_THREADS]
    if threads:
        raise Unfit(f"its imports have started threads: {', '.join(sorted(threads))}")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise Unfit("its imports have started processes")


def _open_descriptors() -> set[str]:
    names = set()
    for fd in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no path is needed
        try:
            names.add(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
        except FileNotFoundError:  # that of the listing
            continue
    return names


def _thread_names() -> list[str]:
    """Return the names of all threads but this one."""
    names = []
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - see above
        if int(thread) != threading.get_native_id():
            try:
                with open(f"/proc/self/task/{thread}/comm") as file:
                    names.append(file.read().strip())
            except OSError:  # it has just ended
                continue
    return names
