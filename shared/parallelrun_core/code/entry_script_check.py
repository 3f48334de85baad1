"""The check that an entry script can be run at all, judged by its text: none of it is executed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from parallelrun_core.code.folder import IGNORE_FILES, LEAVE_OUT_HINT
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.spec.conda import may_be_newer
from parallelrun_core.untrusted.paths import opened_path, relative_parts

Contract = Literal["run", "awaited", "streaming"]
"""What a worker calls: run(), which may be a coroutine function; a run() that must be one; or `enqueue()` and the other
functions of the reference's streaming contract."""
_STREAMING: Final = (
    "enqueue", "check_all_tasks_processed", "get_finished_batch_result", "get_processing_batch_number",
)  # fmt: skip
FUNCTIONS: Final[Mapping[Contract, tuple[str, ...]]] = {"run": ("run",), "awaited": ("run",), "streaming": _STREAMING}
"""The functions that an entry script must have."""
_HINTS: Final[Mapping[Contract, str]] = {
    "run": "it must have `def run(mini_batch):`",
    "awaited": "it must have `async def run(mini_batch):`",
    "streaming": "a script for in_flight: streaming, or --amlbi_async_mode, takes mini-batches by enqueue()",
}
_MAY_BIND_ANYTHING: Final = frozenset({"exec", "globals", "locals", "modules", "setattr", "vars", "__dict__"})


def check_entry_script(snapshot: Path, entry_script: str, python: str = "", contract: Contract = "run") -> None:
    """Make sure that the entry script exists, can be parsed, and defines what a worker calls.

    Args:
        python: the version that the job asks for; what only a newer one than ours can parse is left to the workers.

    Raises:
        InvalidInput: with the line of a syntax error, or of a function that can't be called as the job says.
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
    functions = FUNCTIONS[contract]
    missing = [name for name in functions if not names.keys() & {name, "*"}]
    if missing:
        absent = " and ".join(f"{name}()" for name in missing)
        raise InvalidInput.at(where, f"{entry_script} does not define {absent}", _HINTS[contract])
    function = _ordinary_run(tree, names) if contract == "awaited" else None
    if function is not None:
        raise InvalidInput.at(
            where,
            f"{entry_script}, line {function.lineno}: run() is an ordinary function, of which a worker can't run "
            "several at once",
            "write `async def run`, or set in_flight: threads",
        )


def _entry_file(snapshot: Path, entry_script: str) -> Path:
    """The named file, or the file of the module with this dotted path (reference §3.1)."""
    path = snapshot.joinpath(*relative_parts(entry_script))
    module = entry_script.split(".")
    if path.exists() or not all(part.isidentifier() for part in module):
        return path
    inside = snapshot.joinpath(*module)
    return inside / "__init__.py" if inside.is_dir() else inside.with_name(f"{inside.name}.py")


def _ordinary_run(tree: ast.Module, names: Counter[str]) -> ast.FunctionDef | None:
    """Return a `run` that certainly is no coroutine function: nothing else can have bound its name since."""
    if "*" in names or any(_may_bind_anything(node) for node in ast.walk(tree)):
        return None
    for node in tree.body:
        match node:
            case ast.FunctionDef(name="run", decorator_list=[]) if names["run"] == 1:
                return node
    return None


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
