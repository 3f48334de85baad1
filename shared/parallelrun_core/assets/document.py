"""Documents of assets: reads a user's document, with the files that it names, as an asset that is about to be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from parallelrun_core.assets.catalog import About
from parallelrun_core.assets.inlining import Inlining, KeepCode
from parallelrun_core.assets.kinds import model_of
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.storage.location import LOCAL, location_of
from parallelrun_core.storage.supported import absolute_path
from parallelrun_core.untrusted.document import load_document

_NO_EFFECT: Final = frozenset({
    "$schema", "creation_context", "id", "resource_id", "latest_version", "stage", "auto_delete_setting", "is_archived",
    "job_name", "datastore", "base_path", "intellectual_property",
})  # fmt: skip
"""What Azure ML's documents have beside these, when they were exported from it."""


@dataclass(frozen=True, kw_only=True)
class NewAsset:
    """The content of an asset's document."""

    kind: str
    name: str
    version: str
    """Empty: the next number."""
    content: dict[str, Any]
    about: About
    local: Path | None = None
    """The file or folder of this machine that `path` names, if it does."""

    def document(self) -> dict[str, Any]:
        """The document with everything in it that it named."""
        about = {"description": self.about.description, "tags": self.about.tags, "properties": self.about.properties}
        return {"name": self.name, "version": self.version, **self.content, **{k: v for k, v in about.items() if v}}


def read_asset(
    kind: str,
    document: object,
    *,
    folder: Path | None = None,
    keep_code: KeepCode | None = None,
    name: str = "",
    version: str = "",
) -> NewAsset:
    """The asset that a document describes.

    Args:
        folder: of its relative paths, and of the files that it names. None: it came over the network.
        keep_code: stores the code of a component, and what an image is built of. None: it must be stored already.
        name: what it must be called, and `version` likewise; then the document need not say so.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", f"the document of a {kind} is a mapping", "see docs/assets.md")
    fields = {str(key): value for key, value in document.items() if key not in _NO_EFFECT}
    for field, expected in (("name", name), ("version", version)):
        if expected:
            document_value = fields.setdefault(field, expected)
            if str(document_value) != expected:
                raise InvalidInput.at(
                    f"/{field}", f"it is {document_value!r}, and not {expected!r}", "leave it out, or change it"
                )
    document_type = model_of(kind)
    fields = document_type.inlined(fields, Inlining(folder, keep_code))
    local = _local(fields, folder) if document_type.has_files else None
    try:
        model = document_type.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(problems=tuple(_problem(kind, details) for details in error.errors())) from None
    about = About(description=model.description, tags=model.tags, properties=model.properties)
    return NewAsset(
        kind=kind, name=model.name, version=model.version, content=model.content(), about=about, local=local
    )


def read_asset_file(
    kind: str, file: Path, *, keep_code: KeepCode | None = None, name: str = "", changes: Mapping[str, Any] = {}
) -> NewAsset:
    """The asset that a file describes; `changes` are fields that are set in it.

    Raises:
        InvalidInput: the file can't be read, or a field is wrong, with its line.
    """
    from parallelrun_core.spec.problems import line_of, lines_of

    text = b""
    try:
        text = file.read_bytes()
        document = load_document(text)
        if changes and isinstance(document, dict):
            document |= changes
        return read_asset(kind, document, folder=file.absolute().parent, keep_code=keep_code, name=name)
    except OSError as error:
        raise InvalidInput.at("", f"{error.filename or file}: {error.strerror or error}") from error
    except InvalidInput as error:
        lines = lines_of(text) if any(problem.pointer for problem in error.problems) else {}

        def located(problem: Problem) -> Problem:
            line = line_of(problem.pointer, lines)
            return replace(problem, place=f"{file}:{line}" if line else str(file))

        error.replace_problems(located)
        raise


def _local(fields: dict[str, Any], folder: Path | None) -> Path | None:
    """The local file or folder that is named, and its path made absolute."""
    path = fields.get("path")
    if not isinstance(path, str) or not path:
        return None
    if location_of(path).kind != LOCAL:
        return None
    try:
        fields["path"] = absolute_path(path, folder)
    except ValueError as error:
        raise InvalidInput.at("/path", str(error)) from error
    return Path(fields["path"]) if folder is not None else None


def _problem(kind: str, details: Any) -> Problem:
    problem = problem_of(model_of(kind), details)
    if details["type"] == "missing" and problem.pointer.endswith("/path"):
        return replace(problem, hint="a file or folder, or a URL")
    return problem
