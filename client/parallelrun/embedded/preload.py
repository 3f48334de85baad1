"""The modules that the workers of a run begin with, which its node can import before the job is there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.environment import Environment
from parallelrun_worker.templates.leading_imports import PACKAGES, leading_imports

_OF_TABLES: Final = "pandas"


def preload_of(spec: JobSpec | PipelineSpec) -> tuple[str, ...]:
    """The modules; empty: none takes long, or the workers may have a Python or variables of their own."""
    if not isinstance(spec, JobSpec) or spec.command:
        return ()
    if spec.environment != Environment() or spec.secrets or spec.environment_variables:
        return ()
    tables = [_OF_TABLES] if spec.reads_tables else []
    return tuple(dict.fromkeys([*tables, *_of_script(spec)]))


def _of_script(spec: JobSpec) -> list[str]:
    """The packages that the script begins with, as far as a template imports them; what is wrong with it is reported
    later."""
    try:
        path = Path(spec.code, spec.entry_script)
        if not path.is_file():
            path = Path(spec.code, *spec.entry_script.split(".")).with_suffix(".py")
        imports = list(leading_imports(path.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [module for module, _ in imports if module.partition(".")[0] in PACKAGES]
