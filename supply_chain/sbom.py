"""`python -m supply_chain.sbom SBOM FILE`: does a CycloneDX document list exactly what is locked in a file?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supply_chain import CLEAN, WRONG
from supply_chain.locked import Package, locked


def listed(document: dict[str, Any]) -> set[Package]:
    """The packages that a document lists."""
    return {Package(each["name"], each["version"], frozenset(_sha256(each))) for each in document.get("components", [])}


def _sha256(component: dict[str, Any]) -> Iterator[str]:
    for reference in component.get("externalReferences", []):
        yield from (each["content"] for each in reference.get("hashes", []) if each["alg"] == "SHA-256")


def differences(document: dict[str, Any], file: Path) -> list[str]:
    """What is wrong with a document, in words; empty: nothing."""
    shipped, named = locked(file), listed(document)
    wrong = [f"{each.name} {each.version} is locked and not listed" for each in sorted(shipped - named)]
    wrong += [f"{each.name} {each.version} is listed and not locked" for each in sorted(named - shipped)]
    if not shipped:
        wrong.append(f"nothing is locked in {file}")
    if document.get("bomFormat") != "CycloneDX":
        wrong.append("it is not a CycloneDX document")
    if "serialNumber" in document or "timestamp" in document.get("metadata", {}):
        wrong.append("it has a number or a time of its own, so that it is never the same twice")
    return wrong


def main(argv: list[str]) -> int:
    """Compare; returns the exit code."""
    document, file = Path(argv[0]), Path(argv[1])
    wrong = differences(json.loads(document.read_text(encoding="utf-8")), file)
    for each in wrong:
        print(f"sbom: {document}: {each}")
    if not wrong:
        print(f"sbom: {document} lists the {len(locked(file))} packages of {file}, by hash")
    return WRONG if wrong else CLEAN


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
