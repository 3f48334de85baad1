"""`python -m parallelrun.azureml_shim SCRIPT [ARGUMENTS]`: runs a script for Azure ML's v1 SDK, unedited."""

from __future__ import annotations

import os
import runpy
import sys

from parallelrun.azureml_shim import install


def main() -> int:
    """Run it as `python SCRIPT` does; returns the exit code."""
    if len(sys.argv) < 2:
        print("usage: python -m parallelrun.azureml_shim SCRIPT [ARGUMENTS]", file=sys.stderr)
        return 2
    if not install():
        print("note: azureml is installed here, and is used as it is", file=sys.stderr)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
