"""The base of all models of Azure's documents."""

from __future__ import annotations

from pydantic import ConfigDict

from parallelrun_core.described import Strict


class DocumentPart(Strict):
    """Part of a document. Most services import these models and never use them, so they are built on first use."""

    model_config = ConfigDict(protected_namespaces=(), defer_build=True)
