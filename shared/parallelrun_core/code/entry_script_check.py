"""The check that an entry script can be run at all, judged by its text: none of it is executed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from parallelrun_core.code.folder import IGNORE_FILES, LEAVE_OUT_HINT
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.problems import did_you_mean
from parallelrun_core.spec.python_versions import may_be_newer
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
        scripts = sorted(script.name for script in snapshot.glob("*.py"))
        at_top = f"at its top: {', '.join(scripts[:10]) or 'no .py file'}"
        hint = did_you_mean(Path(entry_script).name, scripts, otherwise=at_top)
        left_out = [f"; {name} may leave it out" for name in IGNORE_FILES if (snapshot / name).is_file()]
        raise InvalidInput.at(
            where, f"there is no file {entry_script!r} in the code", hint + "".join(left_out[:1])
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
    function = _certain_run(tree, names) if contract != "streaming" else None
    if function is None:
        return
    place = f"{entry_script}, line {function.lineno}: run()"
    if contract == "awaited" and isinstance(function, ast.FunctionDef):
        message = f"{place} is an ordinary function, of which a worker can't run several at once"
        raise InvalidInput.at(where, message, "write `async def run`, or set in_flight: threads")
    if not _takes_a_mini_batch(function.args):
        message = f"{place} can't be called with a mini-batch, or with a mini-batch and its context"
        raise InvalidInput.at(where, message, _HINTS[contract])


def _entry_file(snapshot: Path, entry_script: str) -> Path:
    """The named file, or the file of the module with this dotted path (reference §3.1)."""
    path = snapshot.joinpath(*relative_parts(entry_script))
    module = entry_script.split(".")
    if path.exists() or not all(part.isidentifier() for part in module):
        return path
    inside = snapshot.joinpath(*module)
    return inside / "__init__.py" if inside.is_dir() else inside.with_name(f"{inside.name}.py")


def _certain_run(tree: ast.Module, names: Counter[str]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function that certainly is `run`: undecorated, and nothing else can have bound its name since."""
    if "*" in names or any(_may_bind_anything(node) for node in ast.walk(tree)):
        return None
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == "run" and names["run"] == 1:
                return None if node.decorator_list else node
    return None


def _takes_a_mini_batch(parameters: ast.arguments) -> bool:
    """Return whether a worker can call it, with two arguments if it has two positional parameters, else with one."""
    positional = len(parameters.posonlyargs) + len(parameters.args)
    takes_one = positional >= 1 or parameters.vararg is not None
    return takes_one and positional - len(parameters.defaults) <= 2 and None not in parameters.kw_defaults


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
