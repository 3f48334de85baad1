"""The folders and environment variables of a user that builds environments, where the agent may become such a user.

It has a cache of its own, so that nothing that another owner's packages have put into one comes into its environments,
and knows nothing of the agent but what installing takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parallelrun_agent.users.places import let_through
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.service.children import Child, variables_for

_HOME: Final = 0o771
"""The agent's and its builder's; workers pass through it to the Pythons."""
_PRIVATE: Final = 0o700
_OF_THE_AGENT: Final = frozenset({"USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"})
_PIP_FILES: Final = ("~/.config/pip/pip.conf", "~/.pip/pip.conf")


def open_home(cache: Path, builder: WorkerUser) -> Path:
    """Make the folder of a builder, with all that it needs.

    Raises:
        OSError: it can't be made.
    """
    home = cache / "builders" / str(builder.uid)
    home.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    let_through(home.parent)
    builder.share(home, _HOME)
    for name in ("cache", "tmp"):
        builder.make(home / name, _PRIVATE)
    return home


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
        "UV_CACHE_DIR": str(home / "cache"),
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
