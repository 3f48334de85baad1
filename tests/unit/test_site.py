"""The site of the documentation: every page has its place in one of four parts, and links lead to pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import yaml

from supply_chain import reference, site

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [page for each in (entry.values() if isinstance(entry, dict) else entry) for page in pages(each)]  # type: ignore[attr-defined]


def test_site_has_every_page_once_in_one_of_four_parts() -> None:
    assert [name for entry in SITE["nav"] for name in entry] == [
        "Start", "Tutorial", "How-to", "Reference", "Explanation"
    ]  # fmt: skip
    named = pages(SITE["nav"])
    assert len(named) == len(set(named))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= set(named)


def test_site_links_to_its_pages_and_names_what_is_only_in_the_repository() -> None:
    def shown(text: str, page: str) -> str:
        return site.on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=page)))

    assert shown("[a](docs/tables.md#b) [c](tests/parts.toml)", "README.md") == "[a](tables.md#b) c"
    assert shown("[a](../SECURITY.md) [b](../deploy/x.yaml) [c](tables.md)", "storage.md") == (
        "[a](SECURITY.md) b [c](tables.md)"
    )
    assert shown("[a](https://example.com) [b](#c)", "README.md") == "[a](https://example.com) [b](#c)"


def test_reference_has_every_operation_and_every_public_name() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    text = reference.operations(document)
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in text
    names = re.findall(r"^## (\w+)$", reference.python(), re.MULTILINE)
    assert {"Client", "Cluster", "run", "ParallelRunConfig"} <= set(names)
