"""The component that a step refers to: written in its place, in a file, or known by a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from parallelrun_core.azure.environment import read_file
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping
from parallelrun_core.azure.forms import mistaken_for
from parallelrun_core.azure.named import named_component
from parallelrun_core.storage.location import LOCAL, location_of

_ANY_PATH: Final = "path"
_WRITABLE: Final = ("mount", "rw_mount")


def open_component(
    component: Any, where: DocumentLocation, findings: Findings
) -> tuple[dict[str, Any], DocumentLocation]:
    """The document of a component, and the location from which it is read.

    Args:
        component: the document itself, the path of its file, or a reference.
        where: the place of the component in the document that refers to it.

    Raises:
        InvalidInput: there is no such component, or it is none.
    """
    if isinstance(component, str):
        if location_of(component).kind == LOCAL:
            beside = Path(where.absolute(component)).parent if where.folder is not None else None
            component, where = read_file(component, where, findings), replace(where, folder=beside)
        elif (named := named_component(component, where, findings)) is not None:
            component, where = named, replace(where, folder=None)
        elif not findings.problems:
            message = f"the component {component!r} is in Azure ML, and can't be fetched"
            findings.wrong(where.pointer, message, "save its YAML as a file, and give the path of that file")
        findings.check()
    document = as_mapping(component, where.pointer, findings)
    if (mistaken := mistaken_for(document)) is not None:
        findings.wrong(where.pointer, *mistaken)
        findings.check()
    return {**document, **_interface(document, where, findings)}, where


def _interface(document: Mapping[str, Any], where: DocumentLocation, findings: Findings) -> dict[str, Any]:
    """The inputs and outputs of a component in the words of steps, which have no type `path`, and no input to write."""
    interface: dict[str, Any] = {}
    for group, usual in ("inputs", None), ("outputs", "uri_folder"):
        if not isinstance(document.get(group), dict):
            continue
        interface[group] = dict(document[group])
        for name, declared in interface[group].items():
            if not isinstance(declared, dict):
                continue
            entry = dict(declared)
            if entry.get("type") == _ANY_PATH:
                entry["type"] = usual
            if group == "inputs" and entry.get("mode") in _WRITABLE:
                note = f"{entry['mode']} is read as ro_mount: what a job writes is in its outputs"
                findings.note(where.at(group, name, "mode"), note)
                entry["mode"] = "ro_mount"
            interface[group][name] = entry
    return interface
