"""Writing the files of a first job, without touching any that are there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from parallelrun_core.errors import InvalidInput


def write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files below a folder, which is made if it isn't there; returns their paths.

    Raises:
        InvalidInput: one of them is there already. Nothing was written.
    """
    paths = {folder / name: text for name, text in files.items()}
    if existing := [str(path) for path in paths if path.exists() or path.is_symlink()]:
        raise InvalidInput.at(
            "FOLDER", f"there already: {', '.join(existing)}", "name another folder, or move these away"
        )
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(paths)
