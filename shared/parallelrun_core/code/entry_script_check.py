"""The check that an entry script can be run at all, judged by its text: none of it is executed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.code.folder import IGNORE_FILES, LEAVE_OUT_HINT
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.spec.conda import may_be_newer
from parallelrun_core.untrusted.paths import opened_path, relative_parts

_CALLED: Final = ("run", "init", "shutdown")
_MAY_BIND_ANYTHING: Final = frozenset({"exec", "globals", "locals", "modules", "setattr", "vars", "__dict__"})


def check_entry_script(snapshot: Path, entry_script: str, python: str = "") -> None:
    """Make sure that the entry script exists, can be parsed, and defines a `run` that can be called without await.

    Args:
        python: the version that the job asks for; what only a newer one than ours can parse is left to the workers.

    Raises:
        InvalidInput: with the line of a syntax error, or of a function that would have to be awaited.
    """
    where = "/entry_script"
    try:
        with _entry_file(snapshot, entry_script).open("rb") as file:
            is_inside = opened_path(file.fileno()).is_relative_to(snapshot.resolve())
            source = file.read() if is_inside else b""
    except (UnsafePath, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        scripts = ", ".join(sorted(script.name for script in snapshot.glob("*.py"))[:10]) or "no .py file"
        left_out = [f"; {name} may leave it out" for name in IGNORE_FILES if (snapshot / name).is_file()]
        raise InvalidInput.at(
            where, f"there is no file {entry_script!r} in the code", f"at its top: {scripts}" + "".join(left_out[:1])
        ) from error
    if not is_inside:  # its errors would show what is there
        raise InvalidInput.at("/code", f"{entry_script} is a link to outside the code folder", LEAVE_OUT_HINT)
    try:
        tree = ast.parse(source, filename=entry_script)
    except SyntaxError as error:
        if may_be_newer(python):
            return
        line = f"line {error.lineno}: {(error.text or '').strip()}" if error.lineno else ""
        raise InvalidInput.at(where, f"{entry_script}: {error.msg}", line) from error
    except ValueError as error:
        raise InvalidInput.at(where, f"{entry_script}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise InvalidInput.at(where, f"{entry_script} is nested too deeply to be parsed") from error
    names = Counter(_names_bound_in(tree))
    if not names.keys() & {"run", "*"}:
        raise InvalidInput.at(where, f"{entry_script} does not define run()", "it must have `def run(mini_batch):`")
    for function in _only_to_be_awaited(tree, names):
        raise InvalidInput.at(
            where,
            f"{entry_script}, line {function.lineno}: {function.name}() is called without await",
            f"write `def {function.name}`, and use asyncio.run(…) in it",
        )


def _entry_file(snapshot: Path, entry_script: str) -> Path:
    """The named file, or the file of the module with this dotted path (reference §3.1)."""
    path = snapshot.joinpath(*relative_parts(entry_script))
    module = entry_script.split(".")
    if path.exists() or not all(part.isidentifier() for part in module):
        return path
    inside = snapshot.joinpath(*module)
    return inside / "__init__.py" if inside.is_dir() else inside.with_name(f"{inside.name}.py")


def _only_to_be_awaited(tree: ast.Module, names: Counter[str]) -> Iterator[ast.AsyncFunctionDef]:
    """Functions that we call and that certainly are coroutines: nothing else can have bound their names since."""
    if "*" in names or any(_may_bind_anything(node) for node in ast.walk(tree)):
        return
    for node in tree.body:
        match node:
            case ast.AsyncFunctionDef(name=name, decorator_list=[]) if name in _CALLED and names[name] == 1:
                yield node


def _may_bind_anything(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name in _MAY_BIND_ANYTHING
    return False


def _names_bound_in(tree: ast.Module) -> Iterator[str]:
    """Every name that a statement of the module binds, in any branch; '*' for a star import."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name
