"""Files of reports: a full disk must not fail the job whose report doesn't fit on it.

Whatever words are in them, nothing in the files controls the terminal of who reads them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from parallelrun_core.durable_files import replace_file
from parallelrun_core.untrusted.sanitize import visible


def replace_text(path: Path, text: str) -> None:
    """Write the whole file, so that readers see either the old or the new one."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, visible(text).encode())


def append_text(path: Path, text: str) -> None:
    """Append to a file; it is created, with its folder, if need be."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(visible(text))
