"""The documents that are submitted: those that Microsoft publishes, and one for each construct."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent.parent
PUBLISHED: Final = HERE / "published"
CONFIG: Final = '{"subscription_id": "a", "resource_group": "b", "workspace_name": "w"}'
_JOBS: Final = "cli/jobs"


@dataclass(frozen=True)
class Case:
    """A document to submit, or one to register before."""

    name: str
    file: Path
    is_published: bool = False
    register: str = ""
    """The kind of asset that it is; empty: a job."""
    script: Path | None = None
    """A script that builds the same job with the client's Python functions, for the client to submit in its place."""

    @property
    def for_client(self) -> Path:
        return self.script or self.file


def site_of(folder: Path) -> dict[str, Any]:
    """The site file for the published documents below a folder."""
    text = yaml.safe_dump(_settings()["site"]).replace("DIR/", f"{folder}/")
    site: dict[str, Any] = yaml.safe_load(text)
    return site


def datastore_files() -> dict[str, str]:
    """What must be in the default datastore, by path."""
    files: dict[str, str] = _settings()["datastore"]
    return files


def refused() -> dict[str, str]:
    """The published documents that are refused, each with the reason."""
    reasons: dict[str, str] = _settings()["refused"]
    return reasons


def differing() -> dict[str, str]:
    """The constructs that mean something else by the client, each with the reason."""
    reasons: dict[str, str] = yaml.safe_load((HERE / "constructs.yml").read_text(encoding="utf-8"))["differing"]
    return reasons


def published(folder: Path) -> list[Case]:
    """The published documents, copied below a folder with stand-ins for what is left out."""
    shutil.copytree(PUBLISHED, folder, dirs_exist_ok=True)
    settings = _settings()
    for name, text in settings["stand_ins"].items():
        _write(folder / name, text)
    (folder / "config.json").write_text(CONFIG)
    assets = [Case(name, folder / name, register=kind) for kind, name in settings["registered"]]
    jobs = [Case(str(path.relative_to(folder / _JOBS)), path, is_published=True) for path in _jobs(folder)]
    return assets + jobs


def constructs(folder: Path) -> list[Case]:
    """One document for each construct, below a folder, with the files that they name."""
    document = yaml.safe_load((HERE / "constructs.yml").read_text(encoding="utf-8"))
    for name, text in document["files"].items():
        _write(folder / name, text)
    (folder / "config.json").write_text(CONFIG)
    cases = []
    for name, (base, changes) in document["constructs"].items():
        file = folder / f"{name}.yml"
        file.write_text(yaml.safe_dump(_changed(document["bases"][base], changes), sort_keys=False))
        cases.append(Case(name, file))
    return cases + list(_builders(folder, document))


def _builders(folder: Path, document: Mapping[str, Any]) -> Iterator[Case]:
    """Scripts that build jobs, each with the document that means the same."""
    for name, (base, changes, text) in document["builders"].items():
        file, script = folder / f"{name}.yml", folder / f"{name}.py"
        file.write_text(yaml.safe_dump(_changed(document["bases"][base], changes), sort_keys=False))
        script.write_text(f"{document['imports']}\n{text}")
        yield Case(name, file, script=script)


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((HERE / "published.yml").read_text(encoding="utf-8"))
    return settings


def _jobs(folder: Path) -> Iterator[Path]:
    """The files that are jobs: they have steps or a command, and are no component."""
    for path in sorted((folder / _JOBS).rglob("*.y*ml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or "Component.schema" in str(document.get("$schema")):
            continue
        if isinstance(document.get("jobs"), dict) or "command" in document:
            yield path


def _changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(dict(base))
    for path, value in changes.items():
        *groups, last = path.split(".")
        at = document
        for group in groups:
            at = at.setdefault(group, {})
        if value is None and last not in ("artifacts",):
            at.pop(last, None)
        else:
            at[last] = copy.deepcopy(value)
    return document


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
