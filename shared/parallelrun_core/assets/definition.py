"""The base of the documents of assets: a name, a version, and content that never changes.

Of what was copied, content has `files`, the name of the copy (`contents.py`), and `file`, the name in it; `path` is
then known to who looks it up.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, StrictStr, field_validator

from parallelrun_core.assets.inlining import Inlining
from parallelrun_core.described import Strict
from parallelrun_core.names.assets import Names
from parallelrun_core.names.patterns import ASSET_NAME
from parallelrun_core.spec.fields import MAX_PATH, checked_path

_Word = str | int | float


class AssetDocument(Strict):
    """The fields that documents of all kinds have, and what a kind says of itself."""

    has_files: ClassVar[bool] = False
    """True if `path` names a file or folder, of which a version has a copy."""

    name: str = Field(pattern=ASSET_NAME, examples=["images"])
    version: str = Field(default="", pattern=rf"{ASSET_NAME}|^$", examples=["1"])
    """Time when empty, the number after the highest one."""
    description: str = Field(default="", max_length=4096)
    tags: dict[str, str] = Field(default_factory=dict)
    properties: dict[str, str] = Field(default_factory=dict)

    @field_validator("name", "version", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    @field_validator("description", mode="before")
    @classmethod
    def _no_description(cls, value: Any) -> Any:
        return "" if value is None else value

    @field_validator("tags", "properties", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return {} if value is None else value
        return {str(key): str(text) if isinstance(text, _Word) else text for key, text in value.items()}

    @classmethod
    def inlined(cls, fields: dict[str, Any], inlining: Inlining) -> dict[str, Any]:
        """The fields of a document, with what it refers to in it."""
        return fields

    def content(self) -> dict[str, Any]:
        """Return what never changes of a version."""
        raise NotImplementedError

    @classmethod
    def pinned(cls, content: dict[str, Any], names: Names) -> dict[str, Any]:
        """The content with a version in place of each label."""
        return content


class WithPath(AssetDocument):
    """A document that names a file or folder."""

    has_files: ClassVar[bool] = True

    path: StrictStr = Field(min_length=1, max_length=MAX_PATH)
    """Absolute; a URL; or, of what is uploaded, the name of its only file or folder."""

    _reachable = field_validator("path")(checked_path)
