"""Hooks of mkdocs: pages that lie beside docs/, and references that `supply_chain.reference` has written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
REFERENCE: Final = ROOT / "build" / "reference"
_BESIDE: Final = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]*)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for name in _BESIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for path in sorted(REFERENCE.glob("*.md")):
        files.append(File.generated(config, f"reference/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site; what is only in the repository is named, and not linked."""
    is_beside = page.file.src_uri in _BESIDE

    def link(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        place = target.removeprefix("docs/") if is_beside else target.removeprefix("../")
        is_page = place in _BESIDE or (ROOT / "docs" / place).is_file() or place.startswith("reference/")
        if target.startswith("../") or is_beside:
            return f"{image}[{text}]({place}{anchor})" if is_page else (text if not image else "")
        return match[0]

    return _LINK.sub(link, markdown)
