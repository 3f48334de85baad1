"""Environments: the Python of scripts. Their content: image, conda_file, pip, build, environment_variables."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, StrictStr, field_validator, model_validator

from parallelrun_core.assets.definition import AssetDocument
from parallelrun_core.assets.inlining import Inlining
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.environment import PackageFields, Packages

_OF_PACKAGES: Final = tuple(PackageFields.model_fields)


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
        field_names = {"image", "build", "environment_variables", *_OF_PACKAGES}
        content = self.model_dump(mode="json", include=field_names, exclude_defaults=True)
        if not any(content.get(field) for field in ("image", "build", "conda_file", "pip")):
            raise InvalidInput.at("", "it has neither image nor build nor conda_file", "as in conda_file: conda.yml")
        return content


DOCUMENT: Final = NamedEnvironment
