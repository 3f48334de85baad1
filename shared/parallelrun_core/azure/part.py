"""The bases of all models of Azure's documents: strict, and with the labels that most of them have."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictStr

from parallelrun_core.described import Strict

Label = Any
"""Names, versions and the like, which people also write as numbers."""


class DocumentPart(Strict):
    """Part of a document. Most services import these models and never use them, so they are built on first use."""

    model_config = ConfigDict(protected_namespaces=(), defer_build=True)


class DataAdditions(DocumentPart):
    """Fields of an input that documents of Azure ML may have here, as a job spec, and have not there."""

    transformations: list[Any] | None = None
    """The steps of an MLTable, inline."""
    hidden_files: Literal["skip", "read"] | None = None
    litter_files: Literal["skip", "warn", "read"] | None = None
    on_mismatch: Literal["keep", "null", "error"] | None = None


class Labelled(DocumentPart):
    """A document with labels."""

    schema_: Any = Field(default=None, alias="$schema")
    type: Any = None
    name: Label = None
    description: Label = None
    tags: dict[str, Any] | None = None
    properties: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None
    outputs: dict[str, Any] | None = None


class LabelledJob(Labelled):
    """The document of a job, a step or a component of v2, with labels."""

    display_name: Label = None
    comment: Label = None
    version: Label = None
    compute: StrictStr | None = None
    identity: dict[str, Any] | None = None
