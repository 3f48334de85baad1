"""Environments: the Python of scripts. Their content: image, conda_file, pip, build, environment_variables."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, StrictStr, field_validator, model_validator

from parallelrun_core.assets.definition import AssetDocument
from parallelrun_core.assets.inlining import Inlining
from parallelrun_core.spec.environment import Environment, PackageFields, Packages, require_content

_OF_PACKAGES: Final = tuple(PackageFields.model_fields)
_CONTENT: Final = {"environment_variables", *Environment.model_fields} - {"name"}


class NamedEnvironment(AssetDocument, PackageFields):
    """The Python that runs scripts."""

    image: StrictStr = ""
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

    @classmethod
    def inlined(cls, fields: dict[str, Any], inlining: Inlining) -> dict[str, Any]:
        return {name: value for name, value in inlining.environment(fields, "").items() if name != "type"}

    def content(self) -> dict[str, Any]:
        content = self.model_dump(mode="json", include=_CONTENT, exclude_defaults=True)
        require_content(content, "")
        return content


DOCUMENT: Final = NamedEnvironment
