"""Payloads of clients by name, so that they get them back as they were: a file for each, replaced whole.

What a payload has defined is stored elsewhere, first. So it says of which definition it is, and counts for no other
one: not for one that somebody has made since in another way, nor after a crash between the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from parallelrun_api.azure.names import checked_name
from parallelrun_core.durable_files import replace_durably
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER


class Sent:
    """A kind of things. Safe to share between threads and processes; the last writer wins."""

    def __init__(self, root: Path, kind: str) -> None:
        self._folder: Final = root / "azure" / kind

    def put(self, name: str, value: dict[str, Any], *, of: str = "") -> None:
        """Remember what was sent, durably.

        Args:
            of: what only the definition that has come of it is called.
        """
        self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        replace_durably(self._file(name), json.dumps({"of": of, "sent": value}).encode(), mode=PRIVATE_FILE)

    def get(self, name: str, *, of: str = "") -> dict[str, Any]:
        """Return what was sent; empty if nothing was, or something for another definition of this name."""
        try:
            record = json.loads(self._file(name).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        value = record.get("sent") if isinstance(record, dict) and record.get("of") == of else None
        return value if isinstance(value, dict) else {}

    def remove(self, name: str) -> None:
        """Forget what was sent, if anything was."""
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{checked_name(name)}.json"
