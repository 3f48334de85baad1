"""Puts what a document of an asset refers to into it: files that it names, and code that is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from parallelrun_core.code.source import CodeSource, source_of
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import INCLUDES, STORED_ALREADY, stored_code
from parallelrun_core.names.computes import DOCKERFILE
from parallelrun_core.storage.location import LOCAL, location_of
from parallelrun_core.storage.supported import absolute_path
from parallelrun_core.untrusted.document import load_document

_DEEPEST: Final = 20
_SEND: Final = "send it with the command line, which takes what it names along"

KeepCode = Callable[[Path | CodeSource, str], str]
"""Stores code, and returns what a document has for it. With the path of a Dockerfile in the folder, it is
what an image is built of, and no code."""


@dataclass(frozen=True)
class Inlining:
    """Puts the content of files that a document names in place of their names, and stored code in place of folders."""

    folder: Path | None
    keep_code: KeepCode | None

    def part(self, part: dict[str, Any], pointer: str, depth: int) -> dict[str, Any]:
        """A component, a step, or the task of one."""
        if depth > _DEEPEST:
            raise InvalidInput.at(pointer, f"components are in each other more than {_DEEPEST} times")
        copy = dict(part)
        includes = self._includes(copy.pop(INCLUDES, None), pointer)
        if isinstance(code := copy.get("code"), str) or includes:
            copy["code"] = self._code(code or "", f"{pointer}/code", includes=includes)
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

    def _code(self, code: str, pointer: str, dockerfile: str = "", includes: Sequence[str] = ()) -> str:
        if location_of(code).kind != LOCAL or stored_code(code):
            if includes:
                raise InvalidInput.at(pointer, *STORED_ALREADY)
            return code
        if self.keep_code is None or self.folder is None:
            raise InvalidInput.at(pointer, f"{code!r} is a folder, and this document came over the network", _SEND)
        try:
            folder = absolute_path(code, self.folder) if code else ""
            beside = [absolute_path(each, self.folder) for each in includes]
            if Path(folder).is_file():
                folder, beside = "", [folder, *beside]
            return self.keep_code(source_of(folder, beside) if beside else Path(folder), dockerfile)
        except InvalidInput as error:
            error.replace_problems(lambda problem: replace(problem, pointer=pointer))
            raise

    def _includes(self, value: Any, pointer: str) -> Sequence[str]:
        """The paths of what is put beside the code."""
        if not value:
            return ()
        if self.folder is None:
            raise InvalidInput.at(
                f"{pointer}/{INCLUDES}", "these files are not available: this came over the network", _SEND
            )
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput.at(f"{pointer}/{INCLUDES}", "must be a list of paths")
        return value

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
