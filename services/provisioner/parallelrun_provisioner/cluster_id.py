"""The name by which the objects of this cluster are known on engines that others use as well."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import write_once
from parallelrun_core.errors import CorruptLog
from parallelrun_core.layout import PRIVATE_FILE

_FILE: Final = "cluster.id"
_FORM: Final = re.compile(r"pr-[0-9a-f]{16}")


def cluster_id(root: Path) -> str:
    """The id in the root folder, which is drawn once, by whoever needs it first.

    Raises:
        CorruptLog: the file has something else in it.
        OSError: it can't be read or written.
    """
    path = root / _FILE
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            write_once(path, f"pr-{secrets.token_hex(8)}\n".encode(), mode=PRIVATE_FILE)
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not _FORM.fullmatch(text):
        raise CorruptLog(f"{path} is no id of a cluster: objects of engines that were marked with it can't be found")
    return text
