"""Writes the parts of the reference that our code says itself: `python -m supply_chain.reference FOLDER`.

commands.md     every command with its options
operations.md   every operation of the REST API
python.md       every public name of the package
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import parallelrun

ROOT = Path(__file__).parents[1]


def commands() -> str:
    """All commands, as their `--help` has them."""
    program = [sys.executable, "-m", "typer", "parallelrun.cli.app", "utils", "docs", "--name", "parallelrun"]
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout


def operations(document: dict[str, Any]) -> str:
    """All operations by subject, with the first line of what they do and their parameters."""
    by_subject: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            rows = by_subject.setdefault(", ".join(operation.get("tags", ["others"])), [])
            parameters = " ".join(f"`{each['name']}`" for each in operation.get("parameters", []))
            rows.append(f"| `{method.upper()} {path}` | {operation['summary']} | {parameters} |")
    parts = ["# REST operations", "docs/openapi.json has all of this in full, with the shape of every answer."]
    for subject, rows in sorted(by_subject.items()):
        parts.append(f"## {subject}\n\n| operation | does | parameters |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """All public names with their signature and documentation."""
    parts = ["# Python names", "What `import parallelrun` has."]
    for name in sorted(parallelrun.__all__):
        value = getattr(parallelrun, name)
        try:
            signature = f"{name}{inspect.signature(value)}"
        except (TypeError, ValueError):
            signature = name
        parts.append(f"## {name}\n\n```python\n{signature}\n```\n\n```text\n{inspect.getdoc(value) or ''}\n```")
        for member, function in inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ():
            if not member.startswith("_") and (text := inspect.getdoc(function)):
                parts.append(f"### {name}.{member}\n\n```text\n{member}{inspect.signature(function)}\n\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write all pages into the named folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    pages = {"commands": commands(), "operations": operations(document), "python": python()}
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
