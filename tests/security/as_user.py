"""Runs a command as another user of this machine. Only root can.

python as_user.py UID FOLDER:FOLDER COMMAND …

The folders are seen by that user even if they lie below a private one, such as root's home with the Python in use: in
a mount namespace of the command's own, that one is covered by an empty folder that has nothing but them. With uid 0 it
stays root, and only its children of other users profit.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_BIND = 0x1000
_PRIVATE_BELOW = 0x44000
_OTHERS = stat.S_IROTH | stat.S_IXOTH


def command_for(uid: int, *command: str) -> list[str]:
    """The command line that runs another one as this user, who then can read the Python and the code of this one."""
    root = Path(__file__).resolve().parents[2]
    seen = [Path(sys.base_prefix), Path(sys.prefix), root]
    return [sys.executable, "-I", "-S", __file__, str(uid), ":".join(map(str, seen)), *command]


def main(uid: int, folders: list[Path], command: list[str]) -> None:
    """Become this user, and the command."""
    hidden = [(folder, closed) for folder in folders if (closed := _closed_above(folder))]
    if hidden:
        _uncover(hidden)
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    os.execvp(command[0], command)  # noqa: S606  # no shell is meant


def _closed_above(folder: Path) -> Path | None:
    """The topmost folder on the way that others can't enter."""
    return next((each for each in reversed(folder.resolve().parents) if each.stat().st_mode & _OTHERS != _OTHERS), None)


def _uncover(hidden: list[tuple[Path, Path]]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def call(done: int) -> None:
        if done != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
        call(libc.mount(source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()))

    call(libc.unshare(_CLONE_NEWNS))
    mount("none", Path("/"), "", _PRIVATE_BELOW)
    kept = [(folder.resolve(), os.open(folder, os.O_PATH | os.O_DIRECTORY)) for folder, _ in hidden]
    for closed in {closed for _, closed in hidden}:
        mount("tmpfs", closed, "tmpfs", 0, "mode=755,size=1m")
    for folder, descriptor in kept:
        folder.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", folder, "", _MS_BIND)
        os.close(descriptor)


if __name__ == "__main__":
    main(int(sys.argv[1]), [Path(text) for text in sys.argv[2].split(":")], sys.argv[3:])
