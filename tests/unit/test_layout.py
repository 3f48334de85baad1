"""The layout rules that no linter can express."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from parallelrun_core.mltable.formats import read_steps
from parallelrun_core.mltable.input_plan import FORMAT_LIBRARIES

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "client": {"parallelrun"},
    "services/agent": {"parallelrun_agent", "parallelrun_worker"},
    "services/api": {"parallelrun_api"},
    "services/concatenator": {"parallelrun_concatenator"},
    "services/master": {"parallelrun_master"},
    "services/provisioner": {"parallelrun_provisioner"},
    "shared": {"parallelrun_core"},
}
WORKER = ROOT / "services" / "agent" / "parallelrun_worker"
FROM_THE_USERS_ENVIRONMENT = {"numpy"}.union(
    *(step.libraries for step in read_steps().values()), *FORMAT_LIBRARIES.values()
)
IF_IT_IS_THERE = {"tables/charsets.py": {"charset_normalizer"}}
"""What a message is made better by."""
WHERE_THE_MASTER_RUNS = {"shuffle/sorting.py": {"duckdb"}}
_AN_INDEX = 3
"""So many modules that a docstring lists make it the index of its package."""
IO = {
    "asyncio", "ctypes", "fcntl", "hiredis", "http", "httpx", "io", "mmap", "multiprocessing", "os", "psutil",
    "queue", "redis", "rq", "select", "selectors", "shutil", "socket", "ssl", "subprocess", "tempfile", "threading",
    "time", "urllib",
}  # fmt: skip
POLICIES = sorted(f"{path.parent.name}.policy" for path in (ROOT / "services").glob("*/*/policy"))

IMPORT_ALL_OF = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
    if not module.name.endswith(".__main__") and not module.name.startswith(tuple(sys.argv[2:])):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


@pytest.mark.parametrize("folder", sorted(PACKAGES))
def test_an_import_root_holds_its_packages_and_no_other_code(folder: str) -> None:
    """Each root is on the import path, so a stray module here would be importable under its bare name."""
    entries = [entry for entry in (ROOT / folder).iterdir() if entry.name != "__pycache__"]

    assert {entry.name for entry in entries if entry.is_dir()} == PACKAGES[folder]
    assert [entry.name for entry in entries if entry.suffix in {".py", ".pyi", ".so"}] == []


def test_services_is_a_folder_and_no_package() -> None:
    assert {f"services/{entry.name}" for entry in (ROOT / "services").iterdir() if entry.is_dir()} == {
        folder for folder in PACKAGES if folder.startswith("services/")
    }
    assert list((ROOT / "services").glob("*.py")) == []


@pytest.mark.parametrize("folder, package", [(f, p) for f in sorted(PACKAGES) for p in sorted(PACKAGES[f])])
def test_every_package_is_complete(folder: str, package: str) -> None:
    assert (ROOT / folder / package / "__init__.py").is_file()
    assert (ROOT / folder / package / "py.typed").is_file()
    for init in (ROOT / folder / package).rglob("__init__.py"):
        index = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        listed = set(re.findall(r"^ *(\w+)\.py ", index, re.MULTILINE))
        if len(listed) >= _AN_INDEX:
            modules = {each.stem for each in init.parent.glob("*.py") if not each.stem.startswith("__")}
            assert modules - {*re.findall(r"(\w+)\.py\b", index)} == set(), f"the index in {init} lacks them"
            assert listed - modules - {"__main__"} == set(), f"{init} lists them, and they are gone"


def test_the_worker_starts_with_the_standard_library_alone() -> None:
    """The user's own `redis.py` or `utils.py` can only win if nothing of ours loaded another one before."""
    loaded = modules_loaded_by("parallelrun_worker")

    assert loaded - sys.stdlib_module_names - {"parallelrun_worker"} == set()


def test_the_core_starts_without_the_heavy_libraries() -> None:
    """Every service of every node pays for what the core imports, but only who asks for advice or pictures for what
    computes them.
    """
    loaded = modules_loaded_by("parallelrun_core", but=("parallelrun_core.adviser.", "parallelrun_core.tries."))

    assert loaded & FROM_THE_USERS_ENVIRONMENT == set()


def test_advice_is_read_and_shown_without_the_heavy_libraries() -> None:
    """A client imports what an answer consists of with its own first import."""
    for module in ("advice", "words"):
        assert modules_loaded_by(f"parallelrun_core.adviser.{module}") & FROM_THE_USERS_ENVIRONMENT == set()


@pytest.mark.parametrize("source", sorted(str(path.relative_to(WORKER)) for path in WORKER.rglob("*.py")))
def test_the_worker_names_only_what_the_users_environment_has(source: str) -> None:
    at_start, later = imported_names(ast.parse((WORKER / source).read_text(encoding="utf-8")))

    assert at_start - sys.stdlib_module_names - {"parallelrun_worker"} == set()
    others = WHERE_THE_MASTER_RUNS.get(source, set()) | IF_IT_IS_THERE.get(source, set())
    allowed = FROM_THE_USERS_ENVIRONMENT | others
    assert later - sys.stdlib_module_names - {"parallelrun_worker"} <= allowed


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_does_no_io_and_rests_on_nothing_of_ours_that_does(policy: str) -> None:
    """It may neither read the clock nor open files: what it needs is passed in."""
    ours = [package for packages in PACKAGES.values() for package in packages]
    graph = grimp.build_graph(*ours, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None)
    used = graph.find_upstream_modules(policy, as_package=True)
    assert [" -> ".join(graph.find_shortest_chain(policy, name, as_packages=True) or ()) for name in used & IO] == []


def test_there_are_policies_in_agent_master_and_provisioner() -> None:
    assert POLICIES == ["parallelrun_agent.policy", "parallelrun_master.policy", "parallelrun_provisioner.policy"]


def test_no_name_of_a_test_is_longer_than_a_sentence_that_one_reads_at_a_glance() -> None:
    names = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert [name for name in sorted(names) if len(name) > 80] == []


def modules_loaded_by(package: str, *, but: tuple[str, ...] = ("-",)) -> set[str]:
    """The top-level names that a fresh interpreter has loaded after it imported all modules of `package`.

    Args:
        but: what the names of modules begin with that are left out.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-c", IMPORT_ALL_OF, package, *but], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def imported_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The top-level names imported when the module is loaded, and those imported by a function call only."""
    lazy = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_for_type_checkers(node)
        for child in ast.walk(node)
    }
    at_start: set[str] = set()
    later: set[str] = set()
    for node in ast.walk(tree):
        (later if id(node) in lazy else at_start).update(names_of(node))
    return at_start, later


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.module.partition(".")[0]
