"""Names of assets in a document: what they stand for takes their place, and the job keeps which version that was."""

from __future__ import annotations

from typing import Any

from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import (
    MODEL_TYPES,
    Asset,
    Names,
    UnknownAsset,
    UnknownVersion,
    reference_of,
    stored_code,
)


def named_input(text: str, kind: str | None, location: DocumentLocation, findings: Findings) -> dict[str, Any] | None:
    """The input for which a text is the name of data or of a model, as the job spec has it.

    Args:
        kind: its type, as far as the document says.

    Returns:
        None if the text is no such name, or nobody can be asked. Empty, with a problem, when there is no such asset.
    """
    reference = reference_of(text)
    if reference is None or findings.names is None:
        return None
    types = (reference.type,) if reference.type else ("model",) if kind in MODEL_TYPES else ("data", "model")
    asset = _first(types, text, findings.names, location.at("path"), findings)
    if asset is None:
        return {}
    asset_type = str(asset.content.get("type") or "")
    model = kind or asset_type if asset.type == "model" else ""
    fields = {"path": str(asset.content["path"]), "asset": asset.id, "type": asset_type}
    return {**fields, "model": model if model in MODEL_TYPES else MODEL_TYPES[0]} if asset.type == "model" else fields


def named_component(text: str, location: DocumentLocation, findings: Findings) -> dict[str, Any] | None:
    """The document of the component that a text names; None if nobody can be asked, or, with a problem, if there is
    none."""
    asset = _named("component", text, location, findings)
    if asset is None:
        return None
    findings.note(location.pointer, f"the component is {asset.id}")
    return dict(asset.content["document"])


def named_environment(text: str, location: DocumentLocation, findings: Findings) -> dict[str, Any] | None:
    """The environment that a text names, as a document has it; None if there is none, which is no error: Azure ML has
    many of its own, that nobody here can know. Of one with that name, the version must be right."""
    if findings.names is None or reference_of(text) is None:
        return None
    try:
        asset = findings.names.asset("environment", text)
    except UnknownVersion as error:
        _refuse(error, location.pointer, findings)
        return None
    except UnknownAsset:
        return None
    return {**asset.content, "name": f"{asset.name}:{asset.version}" if asset.name else ""}


def named_code(text: str, location: DocumentLocation, findings: Findings) -> str | None:
    """The folder of the code that a text names, or its name, for whoever accepts the job; None if it names none."""
    if stored_code(text):
        return findings.place(text)
    asset = _named("code", text, location, findings)
    return findings.place(str(asset.content["path"])) if asset is not None else None


def _named(kind: str, text: str, location: DocumentLocation, findings: Findings) -> Asset | None:
    if findings.names is None or reference_of(text) is None:
        return None
    return _first((kind,), text, findings.names, location.pointer, findings)


def _first(types: tuple[str, ...], text: str, names: Names, pointer: str, findings: Findings) -> Asset | None:
    """The asset of the first of these types that there is; None, with a problem, if there is none."""
    refusals = []
    for kind in types:
        try:
            return names.asset(kind, text)
        except (UnknownAsset, InvalidInput) as error:
            refusals.append(error)
    _refuse(next((each for each in refusals if isinstance(each, UnknownVersion)), refusals[0]), pointer, findings)
    return None


def _refuse(error: UnknownAsset | InvalidInput, pointer: str, findings: Findings) -> None:
    for problem in error.problems:
        findings.wrong(pointer, problem.message, problem.hint)
