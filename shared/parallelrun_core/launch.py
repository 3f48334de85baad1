"""`python -m parallelrun_core.launch MODULE ARGUMENT…`: a service's `main()`, begun and ended quickly.

A short job's time is mostly that of starting the services and ending them. While modules are imported, the garbage
collector looks again and again and finds nothing; once they are, nothing of theirs becomes garbage as long as the
process lives. And an interpreter that ends in order frees every object, just before the kernel takes back all of
them. Together that is a third of the processor time of a service that has nothing to do.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module


def main() -> None:
    """Run the module's `main()`; never returns. What it raises, other than SystemExit, ends the process as usual."""
    del sys.argv[0]
    gc.disable()
    module = import_module(sys.argv[0])
    gc.freeze()
    gc.enable()
    code: object = None
    try:
        module.main()
    except SystemExit as end:
        code = end.code
    if code is not None and not isinstance(code, int):
        sys.exit(str(code))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    main()
