"""Modules of Azure ML's v1 SDK by their names, as far as public samples of parallel jobs import them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_DATA: Final = "parallelrun.azureml_shim.data"
_ENVIRONMENT: Final = "parallelrun.azureml_shim.environment"
_WORKSPACE: Final = "parallelrun.azureml_shim.workspace"
_OURS: Final = "parallelrun"
_VERSION: Final = "0.parallelrun"

_CORE: Final = {
    **dict.fromkeys(("Workspace", "Experiment", "Run", "Model", "ComputeTarget"), _WORKSPACE),
    **dict.fromkeys(("Dataset", "Datastore"), _DATA),
    **dict.fromkeys(("Environment", "RunConfiguration", "ScriptRunConfig"), _ENVIRONMENT),
}
_STEPS: Final = dict.fromkeys(("ParallelRunConfig", "ParallelRunStep", "PythonScriptStep"), _OURS)
_SIGN_IN: Final = (
    "AzureCliAuthentication", "InteractiveLoginAuthentication", "MsiAuthentication", "ServicePrincipalAuthentication",
)  # fmt: skip
MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "azureml": {},
    "azureml.contrib": {},
    "azureml.contrib.pipeline": {},
    "azureml.contrib.pipeline.steps": _STEPS,
    "azureml.core": _CORE,
    "azureml.core.authentication": dict.fromkeys(_SIGN_IN, _WORKSPACE),
    "azureml.core.compute": dict.fromkeys(("AmlCompute", "ComputeTarget"), _WORKSPACE),
    "azureml.core.compute_target": {"ComputeTargetException": _WORKSPACE},
    "azureml.core.conda_dependencies": {"CondaDependencies": _ENVIRONMENT},
    "azureml.core.dataset": {"Dataset": _DATA},
    "azureml.core.datastore": {"Datastore": _DATA},
    "azureml.core.environment": dict.fromkeys(("CondaDependencies", "Environment"), _ENVIRONMENT),
    "azureml.core.experiment": {"Experiment": _WORKSPACE},
    "azureml.core.model": {"Model": _WORKSPACE},
    "azureml.core.run": {"Run": _WORKSPACE},
    "azureml.core.runconfig": dict.fromkeys(
        ("CondaDependencies", "DEFAULT_CPU_IMAGE", "DEFAULT_GPU_IMAGE", "RunConfiguration"), _ENVIRONMENT
    ),
    "azureml.core.workspace": {"Workspace": _WORKSPACE},
    "azureml.data": {"OutputFileDatasetConfig": _OURS},
    "azureml.data.data_reference": {"DataReference": _DATA},
    "azureml.data.datapath": {"DataPath": _DATA},
    "azureml.data.dataset_consumption_config": {"DatasetConsumptionConfig": _DATA},
    "azureml.data.output_dataset_config": {"OutputFileDatasetConfig": _OURS},
    "azureml.exceptions": {"ComputeTargetException": _WORKSPACE},
    "azureml.pipeline": {},
    "azureml.pipeline.core": {
        **dict.fromkeys(("Pipeline", "PipelineData", "PipelineParameter", "StepSequence"), _OURS),
        "PipelineRun": _WORKSPACE,
    },
    "azureml.pipeline.core.graph": {"PipelineParameter": _OURS},
    "azureml.pipeline.core.run": {"PipelineRun": _WORKSPACE},
    "azureml.pipeline.steps": _STEPS,
    "azureml.widgets": {"RunDetails": _WORKSPACE},
}
"""Names that each module has, and our module that has what they stand for."""


class _Missing:
    """A name that has no counterpart here. Scripts import many that they don't use: whoever uses it is told."""

    def __init__(self, name: str) -> None:
        self._message = f"{name} has no counterpart in ParallelRun (see docs/from-azure-ml.md)"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._message)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(self._message)


class _Loader(Loader):
    """Makes a module whose names are looked up when they are used."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        names = MODULES.get(module.__name__, {})

        def __getattr__(name: str) -> Any:
            if name in names:
                return getattr(import_module(names[name]), name)
            if name.startswith("__"):
                raise AttributeError(name)
            return _Missing(f"{module.__name__}.{name}")

        vars(module).update(__getattr__=__getattr__, __all__=sorted(names), __version__=_VERSION)
        if module.__name__ == "azureml.core":
            vars(module).update(VERSION=_VERSION)


class _Finder(MetaPathFinder):
    """Finds these modules. It is asked last, after all that finds what is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "azureml":
            return None
        return ModuleSpec(fullname, _Loader(), origin="parallelrun.azureml_shim", is_package=True)


def install_finder() -> bool:
    """Let this process import these modules; returns whether it does, which a real `azureml` prevents."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return True
    if "azureml" in sys.modules or find_spec("azureml") is not None:
        return False
    sys.meta_path.append(_Finder())
    return True
