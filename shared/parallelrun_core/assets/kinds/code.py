"""Code: a folder of scripts. Its content: snapshot."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from parallelrun_core.assets.definition import AssetDocument


class Code(AssetDocument):
    snapshot: str = Field(pattern=r"^[0-9a-f]{64}$")

    def content(self) -> dict[str, Any]:
        return {"snapshot": self.snapshot}


DOCUMENT: Final = Code
