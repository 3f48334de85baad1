"""How reports are written: a full disk must not fail the job whose report doesn't fit on it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Write the whole file, so that readers see either the old or the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, errors="backslashreplace")
        beside.replace(path)
    with suppress(OSError):
        beside.unlink(missing_ok=True)


def append_text(path: Path, text: str) -> None:
    """Append to a file; it is created, with its folder, if need be."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", errors="backslashreplace") as file:
            file.write(text)
