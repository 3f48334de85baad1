"""Documents of assets: reads a user's document, with the files that it names, as an asset that is about to be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from parallelrun_core.assets.catalog import About
from parallelrun_core.assets.definition import OF_TYPE
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.names.assets import Names, UnknownAsset, reference_of, stored_code
from parallelrun_core.names.built_images import DOCKERFILE
from parallelrun_core.spec.problems import problem_of
from parallelrun_core.storage.location import LOCAL, location_of
from parallelrun_core.storage.supported import absolute_path
from parallelrun_core.untrusted.document import load_document

_OWN_FIELDS: Final = ("name", "version", "description", "tags", "properties")
_NO_EFFECT: Final = frozenset({
    "$schema", "creation_context", "id", "resource_id", "latest_version", "stage", "auto_delete_setting", "is_archived",
    "job_name", "datastore", "base_path", "intellectual_property",
})  # fmt: skip
"""What Azure ML's documents have beside these, when they were exported from it."""
_COMPONENTS: Final = "type: parallel, type: command or type: pipeline"
_DEEPEST: Final = 20

KeepCode = Callable[[Path, str], str]
"""Stores a folder of code, and returns what a document has for it. With the path of a Dockerfile in the folder, it is
what an image is built of, and no code."""


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
    if kind == "component":
        fields = _component(fields, _Inlining(folder, keep_code))
    elif kind == "environment":
        fields = _Inlining(folder, keep_code).environment(fields, "")
        fields.pop("type", None)
    local = _local(fields, folder) if kind in ("data", "model") else None
    try:
        model = OF_TYPE[kind].model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(problems=tuple(_problem(kind, details) for details in error.errors())) from None
    about = About(description=model.description, tags=model.tags, properties=model.properties)
    content = model.content()
    if kind == "environment" and not any(content.get(field) for field in ("image", "build", "conda_file", "pip")):
        raise InvalidInput.at("", "it has neither image nor build nor conda_file", "as in conda_file: conda.yml")
    return NewAsset(kind=kind, name=model.name, version=model.version, content=content, about=about, local=local)


def read_asset_file(
    kind: str, file: Path, *, keep_code: KeepCode | None = None, name: str = "", changes: Mapping[str, Any] = {}
) -> NewAsset:
    """The asset that a file describes; `changes` are fields that are set in it.

    Raises:
        InvalidInput: the file can't be read, or a field is wrong, with its line.
    """
    from parallelrun_core.spec.lines import line_of, lines_of

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


def pinned(document: dict[str, Any], names: Names) -> dict[str, Any]:
    """The document of a component with a version in place of each label, as far as names are known: what it means must
    not change either."""
    copy = dict(document)
    for kind in ("environment", "component"):
        value = copy.get(kind)
        if isinstance(value, dict) and kind == "component":
            copy[kind] = pinned(value, names)
        elif isinstance(value, str) and (reference := reference_of(value)) is not None and reference.label:
            with suppress(UnknownAsset):
                asset = names.asset(kind, value)
                copy[kind] = asset.id if not reference.registry else value
    if isinstance(copy.get("task"), dict):
        copy["task"] = pinned(copy["task"], names)
    if isinstance(copy.get("jobs"), dict):
        copy["jobs"] = {
            name: pinned(step, names) if isinstance(step, dict) else step for name, step in copy["jobs"].items()
        }
    return copy


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


def _component(fields: dict[str, Any], inlining: _Inlining) -> dict[str, Any]:
    """The fields of a component: those of any asset, and the whole document with what it refers to."""
    if "document" in fields and "jobs" not in fields and "task" not in fields:  # as it is shown, and sent
        return fields
    kind = fields.get("type")
    if kind is None and "task" in fields:
        kind = "parallel"
    kinds = ("parallel", "command", "pipeline")
    if not isinstance(kind, str) or kind.lower() not in kinds:
        close = get_close_matches(str(kind).lower(), kinds, n=1)
        hint = f"did you mean {close[0]!r}?" if close else _COMPONENTS
        raise InvalidInput.at("/type", f"a component of type {kind!r} can't be used here", hint)
    document = inlining.part({**fields, "type": kind.lower()}, "", 0)
    component: dict[str, Any] = {field: fields[field] for field in _OWN_FIELDS if field in fields}
    return {**component, "type": kind.lower(), "document": document}


def _problem(kind: str, details: Any) -> Problem:
    problem = problem_of(OF_TYPE[kind], details)
    field = problem.pointer.rpartition("/")[2]
    if details["type"] == "string_pattern_mismatch":
        rule = "1 to 128 letters, digits and . _ -, beginning with a letter, a digit or _"
        return replace(problem, message=f"must be {rule}" if field in ("name", "version") else "is not valid")
    if details["type"] == "missing" and field == "path":
        return replace(problem, hint="a file or folder, or a URL")
    return problem


@dataclass(frozen=True)
class _Inlining:
    """Puts the content of files that a document names in place of their names, and stored code in place of folders."""

    folder: Path | None
    keep_code: KeepCode | None

    def part(self, part: dict[str, Any], pointer: str, depth: int) -> dict[str, Any]:
        """A component, a step, or the task of one."""
        if depth > _DEEPEST:
            raise InvalidInput.at(pointer, f"components are in each other more than {_DEEPEST} times")
        copy = dict(part)
        if isinstance(code := copy.get("code"), str):
            copy["code"] = self._code(code, f"{pointer}/code")
        if "environment" in copy:
            copy["environment"] = self._environment_of(copy["environment"], f"{pointer}/environment")
        if isinstance(copy.get("task"), dict):
            copy["task"] = self.part(copy["task"], f"{pointer}/task", depth)
        if isinstance(copy.get("jobs"), dict):
            copy["jobs"] = {
                name: self.part(step, f"{pointer}/jobs/{name}", depth) if isinstance(step, dict) else step
                for name, step in copy["jobs"].items()
            }
        component = copy.get("component")
        if isinstance(component, str) and location_of(component).kind == LOCAL:
            document, beside = self._file(component, f"{pointer}/component")
            copy["component"] = replace(self, folder=beside).part(document, f"{pointer}/component", depth + 1)
        elif isinstance(component, dict):
            copy["component"] = self.part(component, f"{pointer}/component", depth + 1)
        return copy

    def environment(self, environment: dict[str, Any], pointer: str) -> dict[str, Any]:
        """An environment, with the content of its conda file, and the name of what its image is built of."""
        copy = dict(environment)
        if isinstance(conda := environment.get("conda_file"), str):
            copy["conda_file"] = self._file(conda, f"{pointer}/conda_file")[0]
        build = environment.get("build")
        if isinstance(build, dict) and isinstance(path := build.get("path"), str):
            dockerfile = str(build.get("dockerfile_path") or DOCKERFILE)
            copy["build"] = {**build, "path": self._code(path, f"{pointer}/build/path", dockerfile)}
        return copy

    def _environment_of(self, value: Any, pointer: str) -> Any:
        if isinstance(value, dict):
            return self.environment(value, pointer)
        if isinstance(value, str) and location_of(value).kind == LOCAL and value.endswith((".yml", ".yaml")):
            document, beside = self._file(value, pointer)
            return replace(self, folder=beside).environment(document, pointer)
        return value

    def _code(self, code: str, pointer: str, dockerfile: str = "") -> str:
        if location_of(code).kind != LOCAL or stored_code(code):
            return code
        if self.keep_code is None or self.folder is None:
            raise InvalidInput.at(pointer, f"{code!r} is a folder, and this document came over the network", _SEND)
        try:
            return self.keep_code(Path(absolute_path(code, self.folder)), dockerfile)
        except InvalidInput as error:
            error.replace_problems(lambda problem: replace(problem, pointer=pointer))
            raise

    def _file(self, path: str, pointer: str) -> tuple[dict[str, Any], Path]:
        """The mapping in a file, and the folder of it."""
        if self.folder is None:
            raise InvalidInput.at(pointer, f"the file {path!r} is not available: this came over the network", _SEND)
        try:
            file = Path(absolute_path(path, self.folder))
            document = load_document(file.read_bytes())
        except OSError as error:
            raise InvalidInput.at(pointer, f"{path}: {error.strerror or error}") from error
        except (InvalidInput, ValueError) as error:
            raise InvalidInput.at(pointer, f"{path}: {error}") from error
        if not isinstance(document, dict):
            raise InvalidInput.at(pointer, f"{path} is not a mapping")
        return document, file.parent


_SEND: Final = "send it with the command line, which takes what it names along"
