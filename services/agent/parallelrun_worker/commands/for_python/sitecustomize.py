"""Runs when a Python starts that a command has started: what an entry script can import, its modules can import, too.

That folder comes last on `sys.path`, so an installed package of such a name wins. Any Python may run this.
"""

import os
import sys
from importlib import import_module

_HERE = os.path.dirname(os.path.abspath(__file__))


class _MlflowImport:
    """Tells of the import of MLflow, and finds nothing: what begins the job's run is imported only then."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name == "mlflow":
            sys.meta_path.remove(self)
            import_module("parallelrun_worker.tracking.imports").begin_run()


def _provide() -> None:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(_HERE)), "for_users"))
    sys.meta_path.insert(0, _MlflowImport())
    this_module = sys.modules.pop("sitecustomize")
    try:
        import_module("sitecustomize")  # that of the environment, if it has one
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this_module


if "sitecustomize" in sys.modules:
    _provide()
