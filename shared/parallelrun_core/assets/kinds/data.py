"""Data: a folder, a file or a table. Its content: type, path."""

from __future__ import annotations

from typing import Any, Final, Literal

from parallelrun_core.assets.definition import WithPath


class DataAsset(WithPath):
    """A folder, a file or a table."""

    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "path": self.path}


DOCUMENT: Final = DataAsset
