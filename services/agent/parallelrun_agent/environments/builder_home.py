"""The folders and environment variables of a user that builds environments, where the agent may become such a user.

It has a cache of its own, so that nothing that another owner's packages have put into one comes into its environments,
and knows nothing of the agent but what installing takes. What it keeps grows with the environments that it has built,
and goes with them: its cache when one of them was removed, all of it with the last one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parallelrun_agent.environments.cache import REMOVED, move_away, unused
from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.places import let_through
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.service.children import Child, variables_for

_HOME: Final = 0o771
"""The agent's and its builder's; workers pass through it to the Pythons."""
_PRIVATE: Final = 0o700
_HOMES: Final = "builders"
_CACHE: Final = "cache"
_OF_THE_AGENT: Final = frozenset({"USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"})
_PIP_FILES: Final = ("~/.config/pip/pip.conf", "~/.pip/pip.conf")


def home_of(cache: Path, builder: WorkerUser) -> Path:
    """Return the folder of a builder; whoever builds there has it in use (`InUse`)."""
    return cache / _HOMES / str(builder.uid)


def open_home(home: Path, builder: WorkerUser) -> None:
    """Make the folder of a builder, with all that it needs.

    Raises:
        OSError: it can't be made.
    """
    home.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    let_through(home.parent)
    builder.share(home, _HOME)
    for name in (_CACHE, "tmp"):
        builder.make(home / name, _PRIVATE)


def prune_homes(cache: Path, before: Mapping[int, int], after: Mapping[int, int], uids: Uids) -> list[str]:
    """Remove what builders no longer need; one that is at work stays as it is, until the next time.

    Args:
        before: how many environments each builder had, by its uid, before some were removed.
        after: how many it has now.

    Returns:
        The paths that were removed.
    """
    removed = []
    homes = cache / _HOMES
    for path in homes.iterdir() if homes.is_dir() else ():
        name = path.name.removesuffix(REMOVED)
        if not name.isdecimal() or (uid := int(name)) not in uids:
            continue
        builder = WorkerUser(uid)
        home, old_cache = homes / name, homes / name / f"{_CACHE}{REMOVED}"
        if path == home and not after.get(uid):
            move_away(home)
        elif path == home and after.get(uid, 0) < before.get(uid, 0):
            with unused(home) as is_unused, builder.acting(), suppress(OSError):
                if is_unused:
                    (home / _CACHE).rename(old_cache)
        for leftover in (home.with_suffix(REMOVED), old_cache):  # also of a process that was killed here
            if leftover.is_dir():
                builder.remove(leftover)
                removed.append(str(leftover.with_suffix("")))
    return removed


def variables_of(home: Path | None, variables: Mapping[str, str]) -> dict[str, str]:
    """Return an installer's variables; with `home`, those of a user of its own."""
    passed = variables_for(Child.INSTALLER, variables)
    if home is None:
        return passed
    if passed.get("UV_LINK_MODE") == "symlink":  # no worker can read that cache
        del passed["UV_LINK_MODE"]
    return {name: value for name, value in passed.items() if name not in _OF_THE_AGENT} | {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "UV_CACHE_DIR": str(home / _CACHE),
        "UV_PYTHON_INSTALL_DIR": str(home / "pythons"),
    }  # fmt: skip


def programs() -> list[Path]:
    """Return what a builder has to reach: the agent's interpreter, its code and its installer."""
    specs = filter(None, map(find_spec, ("parallelrun_agent", "parallelrun_core", "uv")))
    packages = [Path(spec.origin).parent for spec in specs if spec.origin]
    return [Path(sys.executable), Path(os.path.realpath(sys.executable)), *packages]


def pip_configuration() -> str:
    """Return the text of the agent's own file for pip, which a builder can't read; empty: it has none."""
    for path in _PIP_FILES:
        with suppress(OSError, UnicodeDecodeError):
            return Path(path).expanduser().read_text()
    return ""
