"""The imports at the beginning of an entry script, as far as its workers may share what they bring in.

They may share the standard library, and packages that are known to work in a process that was forked after their
import. The first import of anything else is the end: it may change what the following ones find.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

PACKAGES = frozenset(("numpy", "pandas", "pyarrow"))
"""Each of them computes after a fork in tests/integration/worker/test_templates.py."""
_WITH_EFFECTS = frozenset(("antigravity", "idlelib", "this", "turtledemo"))
_ALWAYS_OURS = "parallelrun_worker"


class UserModule(ImportError):
    """A module that would be imported is one of the user's own."""


def leading_imports(source: str | bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the module of each leading import of a script, and the names that are imported from it.

    Raises:
        SyntaxError, ValueError: it can't be parsed.
    """
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not may_share(alias.name):
                    return
                yield alias.name, ()
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None or not may_share(node.module):
                return
            if node.module != "__future__":
                yield node.module, tuple(alias.name for alias in node.names)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # a docstring
            return


def may_share(module: str) -> bool:
    """Return whether workers may share this module, by its name."""
    package = module.partition(".")[0]
    return package in PACKAGES or (package in sys.stdlib_module_names and package not in _WITH_EFFECTS)


class UserModuleGuard:
    """A finder, to be the first one of `sys.meta_path`, that refuses whatever these folders have a module for.

    A worker would find it there, and its code is the user's. Whoever imports may go on without the module, so a refusal
    is also remembered.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)
        self._sought: set[str] = set()
        """The top-level modules that were looked for, whether they were found or not."""
        self.refused = ""
        """The name of the last module that was refused; empty: none was."""

    def add(self, folders: Iterable[str], imported: Iterable[str]) -> None:
        """Refuse what these folders have a module for, too, also of what was imported, or sought in vain, before.

        Args:
            imported: the modules that were imported while this was no finder yet.

        Raises:
            UserModule: one of them is one of the user's.
        """
        self._folders += folders
        for name in {*imported, *self._sought}:
            if "." not in name:
                self.find_spec(name)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave it to the next finder.

        Raises:
            UserModule: it is one of the user's.
        """
        if path is None:
            self._sought.add(name)
        if path is None and name != _ALWAYS_OURS and PathFinder.find_spec(name, self._folders) is not None:
            self.refused = name
            raise UserModule(name)
        return None
