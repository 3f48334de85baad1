"""`Model`: where a model is on this node."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

from parallelrun_worker.shims.job import about_job, not_here

_URL = re.compile(r"[a-z][a-z0-9+.-]*:")


class Model:
    """A registered model, or an input of the job that is one.

    Args:
        name: of the model, or of the input.
        id: `NAME:VERSION`, in place of the name.
        version: by default, the newest.

    Raises:
        ModelNotFound: there is none; says which there are.
    """

    def __init__(
        self, workspace: Any = None, name: str | None = None, id: str | None = None, *rest: Any, **named: Any
    ) -> None:
        version = named.get("version", rest[2] if len(rest) > 2 else None)
        if name is None and id is not None:
            name, _colon, version = id.rpartition(":") if ":" in id else (id, "", version)
        model = _model_called(str(name), version)
        self.name = str(model["name"])
        self.version = int(model["version"]) if str(model["version"]).isdecimal() else model["version"] or 1
        self.id = f"{self.name}:{self.version}"
        self.path = str(model["path"])
        self.tags: dict[str, Any] = {}
        self.properties: dict[str, Any] = {}
        self.description = ""
        self.workspace = workspace

    @staticmethod
    def get_model_path(model_name: str, version: Any = None, _workspace: Any = None, **_: Any) -> str:
        """The path of a model on this node.

        Raises:
            ModelNotFound: there is none; says which there are.
        """
        path = str(_model_called(model_name, version)["path"])
        if _URL.match(path):
            raise ModelNotFound(
                f"The model {model_name!r} is in an object store, at {path}: make it an input of the job "
                f"(type: custom_model, path: azureml:{model_name}@latest), and it is brought to the node."
            )
        return path

    def download(self, target_dir: str = ".", exist_ok: bool = False, **_: Any) -> str:
        """Copy the model into a folder; returns the path of the copy."""
        path = self.get_model_path(self.name, self.version)
        target = os.path.join(target_dir, os.path.basename(path.rstrip("/")))
        if os.path.exists(target) and not exist_ok:
            raise FileExistsError(f"{target} is there already: exist_ok=True replaces it")
        os.makedirs(target_dir, exist_ok=True)
        if os.path.isdir(path):
            if os.path.isdir(target):
                shutil.rmtree(target)
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)
        return target

    @staticmethod
    def list(workspace: Any = None, name: str | None = None, **_: Any) -> list[Model]:
        """The models that the job can use."""
        models = [each for each in about_job().get("models", ()) if name in (None, each["name"])]
        return [Model(workspace, each["name"], version=each["version"] or None) for each in models]

    @staticmethod
    def register(*_: Any, **_named: Any) -> Any:
        raise not_here("Model.register", "write it to an output, and register that: `parallelrun model create`")

    @staticmethod
    def deploy(*_: Any, **_named: Any) -> Any:
        raise not_here("Model.deploy")

    def __repr__(self) -> str:
        return f"Model(name={self.name}, id={self.id}, version={self.version})"


class ModelNotFound(Exception):
    """No model of this name can be used by the job."""


def _model_called(name: str, version: Any) -> dict[str, Any]:
    models = list(about_job().get("models", ()))
    wanted_version = "" if version in (None, "latest") else str(version)
    same = [each for each in models if each["name"].lower() == name.lower()]
    for each in same:
        if wanted_version in ("", str(each["version"] or 1)):
            return dict(each)
    folder = os.environ.get("AZUREML_MODEL_DIR", "")
    if not same and folder and os.path.exists(os.path.join(folder, name)):
        return {"name": name, "version": "", "path": os.path.join(folder, name)}
    listed = ", ".join(f"{each['name']}:{each['version']}" if each["version"] else each["name"] for each in models)
    raise ModelNotFound(
        f"The job knows no model {name!r}{f' of version {wanted_version}' if wanted_version else ''}; "
        f"it knows: {listed or 'none'}. "
        f"Register it (parallelrun model create -f FILE), or give the job an input {name!r}."
    )
