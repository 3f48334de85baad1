"""Users' data are opened, listed and asked for only by their storage, so that another kind is added there alone.

Whoever checks, plans or reads inputs and publishes outputs may touch the file system by itself only for what is no
user's data, and each such place is named here with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BEHIND_THE_SEAM = [
    "client/parallelrun/job_file/reading.py",
    "services/api/parallelrun_api/submission/checks.py",
    "services/concatenator/parallelrun_concatenator",
    "services/master/parallelrun_master/planning",
    "shared/parallelrun_core/azure",
    "shared/parallelrun_core/mltable",
    "shared/parallelrun_core/spec",
]
OF_OS = {
    "access",
    "fstat",
    "link",
    "listdir",
    "lstat",
    "makedirs",
    "mkdir",
    "open",
    "pread",
    "rename",
    "replace",
    "scandir",
    "stat",
    "walk",
}
OF_OS_PATH = {"exists", "getmtime", "getsize", "isdir", "isfile", "islink", "lexists", "realpath"}
OF_PATHS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir", "open",
    "read_bytes", "read_text", "rename", "resolve", "rglob", "rmdir", "stat", "touch", "unlink", "walk", "write_bytes",
    "write_text",
}  # fmt: skip
LIBRARIES = {"glob", "shutil", "tempfile"}

THE_CODE = "the code and the job file are the submitter's own, on this machine"
AN_ENTRY_SCRIPT = "it runs in a worker, to which its inputs were brought"
A_TABLE = "a table of ours beside the module"
A_COPY = "what a storage has copied to this disk"
THE_JOB_FOLDER = "the job folder stays on the shared volume"
ALLOWED = {
    ("client/parallelrun/job_file/reading.py", "_text_of"): THE_CODE,
    ("client/parallelrun/job_file/reading.py", "_trouble_with_code"): THE_CODE,
    (
        "client/parallelrun/job_file/reading.py",
        "_suggestion",
    ): "a name that is nearly right is only looked for on this machine",
    ("shared/parallelrun_core/azure/environment.py", "read_file"): THE_CODE,
    ("shared/parallelrun_core/azure/v2_reader.py", "_put_code"): THE_CODE,
    ("services/master/parallelrun_master/planning/extent.py", "main"): "an empty folder for lists of its own",
    ("shared/parallelrun_core/azure/mlflow_scoring/score_mlflow_model.py", "init"): AN_ENTRY_SCRIPT,
    ("shared/parallelrun_core/azure/mlflow_scoring/score_mlflow_model.py", "read"): AN_ENTRY_SCRIPT,
    ("shared/parallelrun_core/spec/conda.py", "_name_tables"): A_TABLE,
    ("shared/parallelrun_core/mltable/input_plan.py", "load_plans"): THE_JOB_FOLDER,
    ("services/concatenator/parallelrun_concatenator/parts.py", "__init__"): THE_JOB_FOLDER,
    ("services/concatenator/parallelrun_concatenator/parts.py", "_read"): THE_JOB_FOLDER,
    ("services/concatenator/parallelrun_concatenator/parts.py", "_read_all"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/changed_inputs.py", "changed_inputs"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/changed_inputs.py", "listing_changes"): THE_JOB_FOLDER,
    (
        "services/master/parallelrun_master/planning/formats/delta_lake.py",
        "_check_log",
    ): "the library opens the log of a table by itself",
    ("services/master/parallelrun_master/planning/formats/delta_log.py", "copied"): A_COPY,
    ("services/master/parallelrun_master/planning/formats/delta_log.py", "copy"): A_COPY,
    ("services/master/parallelrun_master/planning/preview.py", "preview"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "read_groups"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "warnings_of"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "run"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "_check_room"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "_make_folder"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "_child"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "_publish"): THE_JOB_FOLDER,
    ("services/master/parallelrun_master/planning/shuffling.py", "discard"): THE_JOB_FOLDER,
}


def sources() -> Iterator[Path]:
    for place in BEHIND_THE_SEAM:
        path = ROOT / place
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def touches_files(call: ast.Call) -> bool:
    """Whether a call asks the file system, and not a storage."""
    match call.func:
        case ast.Name(id="open"):
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr=name):
            return name in OF_OS
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=name):
            return name in OF_OS_PATH
        case ast.Attribute(value=ast.Name(id=name)) if name in LIBRARIES:
            return True
        case ast.Attribute(value=receiver, attr=name):
            return name in OF_PATHS and "storage" not in ast.unparse(receiver)
    return False


def functions_that_touch_files(source: str) -> set[str]:
    """The innermost functions with such calls."""
    touching: set[str] = set()

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and touches_files(node):
            touching.add(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return touching


def test_only_storages_open_and_ask_for_users_data() -> None:
    touching = {
        (str(path.relative_to(ROOT)), function)
        for path in sources()
        for function in functions_that_touch_files(path.read_text(encoding="utf-8"))
    }
    assert sorted(touching - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - touching) == [], "no longer needed"


@pytest.mark.parametrize(
    "text, is_noticed",
    [
        ("open(path)", True), ("os.stat(path)", True), ("os.path.isdir(path)", True), ("Path(path).exists()", True),
        ("pattern.glob(x)", True), ("shutil.copyfile(a, b)", True), ("storage_of(path).open(path)", False),
        ("self._storage.open(path)", False), ("os.path.join(a, b)", False), ("storage.version(path)", False),
    ],
)  # fmt: skip
def test_the_rule_notices_what_it_is_to_notice(text: str, is_noticed: bool) -> None:
    assert functions_that_touch_files(f"def f():\n    {text}") == ({"f"} if is_noticed else set())
