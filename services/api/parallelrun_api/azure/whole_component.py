"""Components in which nothing refers to what only the facade knows: code, environments and components in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from parallelrun_api.azure.ids import version_of
from parallelrun_api.people.person import seen_places
from parallelrun_core.assets.contents import keep_code, keep_context
from parallelrun_core.azure.scope import ReadBudget
from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.names.assets import code_called, stored_code
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of

if TYPE_CHECKING:
    from parallelrun_api.azure.facade import Facade
    from parallelrun_api.azure.resolving import FacadeNames

_DEEPEST: Final = 12


class WholeComponents:
    """Makes documents whole, with copies of the code that they name. Safe to share between threads."""

    def __init__(self, facade: Facade, names: FacadeNames) -> None:
        self._facade = facade
        self._names = names

    def document(self, document: dict[str, Any], pointer: str) -> dict[str, Any]:
        """Return a component's document in which nothing refers to what only the facade knows.

        Raises:
            InvalidInput: it names what jobs may not use, has too many steps, or components too deep in each other.
        """
        return self._whole(document, 0, ReadBudget(), pointer)

    def environment(self, properties: dict[str, Any], pointer: str) -> dict[str, Any]:
        """An environment with a copy of what its image is built of, if it is; the pointer is where it is named."""
        content = self._names.content("environments", properties)
        build = content.get("build")
        if not build or stored_code(build["path"]):
            return content
        return {**content, "build": {**build, "path": self._kept(build["path"], pointer, build["dockerfile_path"])}}

    def _kept(self, path: str, pointer: str, dockerfile: str = "") -> str:
        """Return what a component calls a folder of code, or of a Dockerfile, which is copied."""
        self.check_code(path, pointer)
        root, folder, rule = self._facade.context.settings.root, Path(path), self._rule()
        try:
            name = keep_context(root, folder, dockerfile, rule) if dockerfile else keep_code(root, folder, rule)
        except InvalidInput as error:  # which says where it would be in a job
            problems = (Problem(pointer=pointer, message=each.message, hint=each.hint) for each in error.problems)
            raise InvalidInput(problems=tuple(problems)) from error
        return code_called(name)

    def _rule(self) -> PathRule:
        """Return what the person of the request may have copied."""
        settings = self._facade.context.settings
        return PathRule(settings.root, seen_places(settings.places))

    def check_code(self, path: str, pointer: str) -> None:
        """Make sure that jobs may read this folder, wherever links lead, with all that is in it.

        Args:
            pointer: the place of the document that names the folder.

        Raises:
            InvalidInput: they may not.
        """
        trouble = storage_of(path).place_trouble(path, self._rule(), pattern=())
        if trouble is not None:
            raise InvalidInput.at(pointer, trouble.message, trouble.hint)

    def _whole(self, part: dict[str, Any], depth: int, budget: ReadBudget, pointer: str) -> dict[str, Any]:
        """A part of a component in which nothing refers to what only this facade knows."""
        copy = dict(part)
        if isinstance(code := copy.get("code"), str) and version_of(code) is not None:
            path = self._names.asset("code", code).content["path"]
            copy["code"] = path if stored_code(path) else self._kept(path, f"{pointer}/code")
        environment = copy.get("environment")
        if isinstance(environment, str) and (named := version_of(environment)) is not None:
            record = self._facade.asset_store.get(*named)
            if record["properties"].get("isAnonymous"):
                copy["environment"] = self.environment(record["properties"], f"{pointer}/environment")
        component = copy.get("component")
        if isinstance(component, str) and version_of(component) is not None:
            if depth == _DEEPEST:
                message = f"components are nested more than {_DEEPEST} deep"
                raise InvalidInput.at(f"{pointer}/component", message)
            document = self._names.asset("component", component).content["document"]
            copy["component"] = self._whole(document, depth + 1, budget, f"{pointer}/component")
        if isinstance(copy.get("task"), dict):
            copy["task"] = self._whole(copy["task"], depth, budget, f"{pointer}/task")
        if isinstance(copy.get("jobs"), dict):
            budget.take(len(copy["jobs"]), f"{pointer}/jobs")
            copy["jobs"] = {
                name: self._whole(step, depth, budget, f"{pointer}/jobs/{name}") if isinstance(step, dict) else step
                for name, step in copy["jobs"].items()
            }
        return copy
