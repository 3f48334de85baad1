"""`python -m parallelrun_core.service.launch MODULE ARGUMENT…`: runs a service's `main()` with a quick start and end.

Most of a short job's time goes into starting and ending the services. While modules are imported, the garbage
collector runs again and again and finds nothing; afterwards, none of their objects become garbage while the process
lives. And an interpreter that ends in order frees every object, just before the kernel takes back all memory.
Together that is a third of the CPU time of an idle service.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, cast

from parallelrun_core.service.process_start import put_python_path_last

_SPARED: Final = ("httpx._main", "opentelemetry.sdk.metrics", "rich")
"""What httpx, redis-py and structlog import if it is installed, for what no service asks of them: a tenth of all."""


def main() -> None:
    """Run the module's `main()`; never returns. What it raises, other than SystemExit, ends the process as usual."""
    del sys.argv[0]
    run(sys.argv[0])


def console_script() -> None:
    """Run the service that this program is named after: `parallelrun-agent` is `parallelrun_agent.main`."""
    run(f"{os.path.basename(sys.argv[0]).replace('-', '_')}.main")


def run(module_name: str) -> None:
    """Run the `main()` of a module with `sys.argv` as it is; never returns."""
    put_python_path_last()
    from parallelrun_core.service.process import hide_memory  # which imports modules that a user's may be named as

    hide_memory()  # before there is anything to see
    with quick_imports():
        module = import_module(module_name)
    gc.enable()
    code: object = None
    try:
        code = module.main()
    except SystemExit as end:
        code = end.code
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import, in this block, without the garbage collector and without what no service needs. Afterwards the collector
    is still off, and passes over all that is there by then."""
    from parallelrun_core.service.quick_dataclasses import shared_methods  # as in `run`

    gc.disable()
    modules = cast("dict[str, Any]", sys.modules)
    spared = [name for name in _SPARED if name not in modules]
    modules.update(dict.fromkeys(spared))  # as if they weren't installed
    with shared_methods():
        yield
    for name in spared:
        del modules[name]
    if "msgspec" in modules:
        from parallelrun_core.service.process_start import prepare_structs

        prepare_structs()
    gc.freeze()


if __name__ == "__main__":
    main()
