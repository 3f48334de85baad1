"""Names that scripts import from `azureml.core`, as far as they mean something here."""

_NAMES = {
    "Dataset": "dataset",
    "Datastore": "workspace",
    "Experiment": "run",
    "Model": "model",
    "Run": "run",
    "Workspace": "workspace",
    "get_run": "run",
}
VERSION = "0.parallelrun"


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _NAMES:
        return getattr(import_module(f"parallelrun_worker.shims.{_NAMES[name]}"), name)
    from parallelrun_worker.shims.job import not_here

    raise not_here(f"azureml.core.{name}")
