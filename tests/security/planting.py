"""The entry script of a job that leaves files where programs of its agent look for a configuration of their user.

A row is the path of a file that is there now, with the text that was to be there.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FILES: dict[str, bytes] = {}
"""What is left below each home; HOME and DROP in it are the home, and the folder that the attack looks into."""
DROP = b""


def homes() -> Iterator[Path]:
    """The homes that the user of the agent may have."""
    yield from (Path("/tmp"), Path("/"))
    with open(f"/proc/{os.getppid()}/status", encoding="utf-8") as file:
        agent = next(int(line.split()[1]) for line in file if line.startswith("Uid:"))
    with suppress(KeyError):
        yield Path(pwd.getpwuid(agent).pw_dir)


def write(path: Path, text: bytes) -> None:
    """Write a file. What the user of an agent has there is theirs, and stays.

    Raises:
        OSError: it can't be written, or is another one.
    """
    if path.exists() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755), "wb") as file:
        file.write(text)


def run(mini_batch: list[str]) -> list[str]:
    """Leave the files in all homes."""
    written = []
    for home in homes():
        for name, text in FILES.items():
            try:
                write(home / name, text.replace(b"HOME", bytes(home)).replace(b"DROP", DROP))
            except OSError:
                continue
            written.append(str(home / name))
    return written
