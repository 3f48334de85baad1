"""Environments of v1, and their packages."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import yaml

from parallelrun.builders import parts
from parallelrun.builders.missing import ReportsMissing

DEFAULT_CPU_IMAGE: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"
DEFAULT_GPU_IMAGE: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.1-cudnn8-ubuntu20.04"


class CondaDependencies(ReportsMissing):
    """The packages of an environment, as in a conda file."""

    def __init__(self, conda_dependencies_file_path: str | None = None) -> None:
        self.content: dict[str, Any] = {"dependencies": []}
        if conda_dependencies_file_path:
            with open(conda_dependencies_file_path, encoding="utf-8") as file:
                self.content = yaml.safe_load(file)

    @classmethod
    def create(
        cls,
        pip_packages: list[str] | None = None,
        conda_packages: list[str] | None = None,
        python_version: str | None = None,
        *,
        pip_indexurl: str | None = None,
        pin_sdk_version: bool = True,
    ) -> CondaDependencies:
        """The packages with these names.

        Args:
            pip_indexurl: the index that packages of PyPI are taken from.
            pin_sdk_version: no effect: no SDK of Azure ML is installed.
        """
        packages = cls()
        python = [f"python={python_version}"] if python_version else []
        packages.content["dependencies"] = [*python, *(conda_packages or [])]
        for package in [*([f"--index-url {pip_indexurl}"] if pip_indexurl else []), *(pip_packages or [])]:
            packages.add_pip_package(package)
        return packages

    def add_channel(self, channel: str) -> None:
        """Add a channel that packages of conda come from."""
        self.content.setdefault("channels", []).append(channel)

    def add_conda_package(self, conda_package: str) -> None:
        """Add a package of conda."""
        self.content["dependencies"].append(conda_package)

    def add_pip_package(self, pip_package: str) -> None:
        """Add a package of PyPI."""
        dependencies = self.content["dependencies"]
        pip = next((each for each in dependencies if isinstance(each, dict)), None)
        if pip is None:
            dependencies.append(pip := {"pip": []})
        pip["pip"].append(pip_package)


class Environment(parts.Environment, ReportsMissing):
    """v1's `Environment`: the packages are in `python.conda_dependencies`, the image in `docker.base_image`."""

    INSTEAD: ClassVar = dict.fromkeys(("build", "build_local"), "nodes make environments when a job needs them")

    def __init__(self, name: str | None = None, **fields: Any) -> None:
        super().__init__(name=name, **fields)
        self.python = SimpleNamespace(conda_dependencies=None, user_managed_dependencies=False)
        self.docker = SimpleNamespace(base_image=None, enabled=True)
        self.spark = SimpleNamespace(precache_packages=False)

    @classmethod
    def get(cls, workspace: Any, name: str, version: str | None = None) -> Environment:
        """The environment of this name; one of Azure ML's own means the Python of the node."""
        return cls(name=name)

    def clone(self, new_name: str) -> Environment:
        """Return a copy with this name, which can be changed by itself."""
        environment = deepcopy(self)
        environment.name = new_name
        return environment

    def register(self, workspace: Any = None) -> Environment:
        """Return this environment unchanged: a job has its packages itself."""
        return self

    def document(self) -> Any:
        """The environment as in a job file."""
        packages = self.python.conda_dependencies
        if packages is not None:
            self.conda_file = packages.content
        if self.docker.base_image not in (None, DEFAULT_CPU_IMAGE, DEFAULT_GPU_IMAGE):
            self.image = self.docker.base_image
        return super().document()


class RunConfiguration(ReportsMissing):
    """v1's `RunConfiguration`, of which a step uses the environment.

    Args:
        conda_dependencies: the packages of the environment.
        script, arguments, framework, communicator, command: no effect: a step has its own.
    """

    def __init__(
        self,
        script: str | None = None,
        arguments: Any = None,
        framework: str | None = None,
        communicator: str | None = None,
        conda_dependencies: CondaDependencies | None = None,
        *,
        command: Any = None,
    ) -> None:
        self.environment = Environment("environment")
        self.environment.python.conda_dependencies = conda_dependencies
        self.docker = SimpleNamespace(use_docker=True)
        self.target: Any = None
