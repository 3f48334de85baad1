"""Findings: the problems that a job can have, a module for each subject, with a function `findings_of`.

There is no list of the subjects: adding one is adding a module. `case.py` is what they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallelrun_core.adviser.advice import AdviceFinding
    from parallelrun_core.adviser.findings.case import Case


def subjects() -> list[Callable[[Case], Iterator[AdviceFinding]]]:
    """The function of each subject, which yields what it finds in a job; the order decides nothing."""
    modules = (import_module(f"{__name__}.{name}") for name in sorted(m.name for m in iter_modules(__path__)))
    return [module.findings_of for module in modules if hasattr(module, "findings_of")]
