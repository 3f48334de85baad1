"""The files of the agent's own cgroup, where the kernel has them."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def folders(controller: str, proc: Path = PROC, cgroups: Path = CGROUPS) -> list[Path]:
    """Return where files of this controller may be, the nearest first; that a folder is listed doesn't say that it is
    there.

    A container often sees its own cgroup as the first one, whatever path /proc says.
    """
    places = []
    for line in read(proc / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        inside = path.lstrip("/")
        if not controllers:  # version 2, perhaps beside version 1
            places += [cgroups / inside, cgroups, cgroups / "unified" / inside]
        elif controller in controllers.split(","):
            both = cgroups / controllers
            mounted = both if both.is_dir() else cgroups / controller
            places += [mounted / inside, mounted]
    return places


def is_root(folder: Path) -> bool:
    """Return whether a cgroup of version 2 is that of the whole machine."""
    return not (folder / "cgroup.type").exists()


def read(path: Path) -> str:
    """The text of a small file; empty when the kernel doesn't have it, or doesn't give it."""
    try:
        return path.read_text()
    except OSError:
        return ""


def counted(text: str, name: str) -> int | None:
    """The number in the line `NAME NUMBER`; None: there is no such line."""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return None
