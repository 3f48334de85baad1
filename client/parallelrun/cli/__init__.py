"""The command `parallelrun`. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from parallelrun.embedded.begun_template import BegunTemplate

_OBJECTS_OF_IMPORTS: Final = 100_000
_SPARED: Final = "httpx._main"
"""The command line of httpx, which it imports with all that is in it, if that is installed."""


def main(argv: Sequence[str] | None = None, template: BegunTemplate | None = None) -> int:
    """Run one command line; returns the exit code (see `exit_codes.py`)."""
    from parallelrun.cli.app import run

    return run(argv, template)


def command() -> NoReturn:
    """Be the program: run its command line, and end with the exit code.

    A quarter of the time that a short run takes in this process would go into what it doesn't use, into looking for
    garbage while modules are imported, and into freeing each object just before the kernel takes back all memory.
    """
    gc.set_threshold(_OBJECTS_OF_IMPORTS)
    if os.environ.get("PYTHONPATH"):
        from parallelrun_core.service.process_start import put_python_path_last

        put_python_path_last()
    cast("dict[str, Any]", sys.modules)[_SPARED] = None  # as if it weren't there
    template = _begin_template(sys.argv[1:])
    from parallelrun_core.service.quick_dataclasses import shared_methods

    try:
        with shared_methods():
            code = main(template=template)
    finally:
        if template is not None:
            template.close()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # which says so as Python always does
    os._exit(code)


def _begin_template(words: Sequence[str]) -> BegunTemplate | None:
    """Begin the template of services, if a cluster will be started: it imports while this process does."""
    if words[:1] != ["run"] or len(words) == 1 or {"-h", "--help"} & {*words}:
        return None
    from parallelrun.embedded.begun_template import BegunTemplate, new_mark

    try:
        return BegunTemplate.fork(new_mark())
    except OSError:  # the cluster says so when it tries
        return None
