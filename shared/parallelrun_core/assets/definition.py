"""Definitions of assets by type: the fields of a document, as Azure ML's YAML has them, and the content, which is kept.

    data          type, path
    model         type, path, flavors
    environment   image, conda_file, pip, build, environment_variables
    component     document: all of it, with what it refers to
    code          snapshot

Of what was copied, content has `files`, the name of the copy (`contents.py`), and `file`, the name in it; `path` is
then known to who looks it up.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, StrictStr, field_validator, model_validator

from parallelrun_core.described import Strict
from parallelrun_core.names.assets import NAME_PATTERN
from parallelrun_core.spec.environment import Packages
from parallelrun_core.spec.fields import MAX_PATH, checked_path

_Word = str | int | float
_OF_PACKAGES: Final = tuple(Packages.model_fields)


class _Document(Strict):
    name: str = Field(pattern=NAME_PATTERN, examples=["images"])
    version: str = Field(default="", pattern=rf"{NAME_PATTERN}|^$", examples=["1"])
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

    def content(self) -> dict[str, Any]:
        """Return what never changes of a version."""
        raise NotImplementedError


class _WithPath(_Document):
    path: StrictStr = Field(min_length=1, max_length=MAX_PATH)
    """Absolute; a URL; or, of what is uploaded, the name of its only file or folder."""

    @field_validator("path")
    @classmethod
    def _reachable(cls, value: str) -> str:
        return checked_path(value)


class Data(_WithPath):
    """A folder, a file or a table."""

    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "path": self.path}


class Model(_WithPath):
    """A model: a folder or a file, of whatever kind."""

    type: Literal["custom_model", "mlflow_model", "triton_model"] = "custom_model"
    flavors: dict[str, Any] = Field(default_factory=dict)
    stage: str | None = None
    """For people."""

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "path": self.path, **({"flavors": self.flavors} if self.flavors else {})}


class NamedEnvironment(_Document):
    """The Python that runs scripts."""

    image: StrictStr = ""
    conda_file: dict[str, Any] = Field(default_factory=dict)
    pip: tuple[str, ...] = ()
    """Requirements, as lines of a requirements file; an addition to Azure ML's fields."""
    index_url: StrictStr = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    prereleases: bool = False
    build: dict[str, Any] = Field(default_factory=dict)
    """`path`, the name of what the image is built of, and `dockerfile_path`; checked when a job uses it."""
    os_type: StrictStr = ""
    environment_variables: dict[str, str] = Field(default_factory=dict)
    inference_config: dict[str, Any] = Field(default_factory=dict)
    """Accepted, with no effect."""

    @field_validator("conda_file", "build", "inference_config", "environment_variables", mode="before")
    @classmethod
    def _nothing(cls, value: Any) -> Any:
        return {} if value is None else value

    @model_validator(mode="before")
    @classmethod
    def _can_be_made(cls, document: Any) -> Any:
        """Checks what jobs will be refused for; what is kept is the document as it came."""
        if isinstance(document, dict):
            named = {field: document[field] for field in _OF_PACKAGES if document.get(field)}
            Packages.model_validate(named)
        return document

    def content(self) -> dict[str, Any]:
        field_names = {"image", "build", "environment_variables", *_OF_PACKAGES}
        return self.model_dump(mode="json", include=field_names, exclude_defaults=True)


class Component(_Document):
    """A step that is used again and again; the rest of its document is checked when a job uses it."""

    type: Literal["parallel", "command", "pipeline"]
    document: dict[str, Any]

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "document": self.document}


class Code(_Document):
    """A folder of scripts."""

    snapshot: str = Field(pattern=r"^[0-9a-f]{64}$")

    def content(self) -> dict[str, Any]:
        return {"snapshot": self.snapshot}


AnyDocument = Data | Model | NamedEnvironment | Component | Code
OF_TYPE: Final[dict[str, type[AnyDocument]]] = {
    "data": Data,
    "model": Model,
    "environment": NamedEnvironment,
    "component": Component,
    "code": Code,
}
