"""Objects are given their parts: a constructor touches no file, process or network, but of what is itself a handle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IO_CALLS = frozenset({
    "Client", "Popen", "connect", "create_connection", "epoll", "eventfd", "exists", "flock", "fork", "ftruncate",
    "getaddrinfo", "glob", "is_dir", "is_file", "iterdir", "makedirs", "memfd_create", "mkdir", "mkdtemp", "mkstemp",
    "mmap", "open", "pidfd_open", "pipe", "pipe2", "read_bytes", "read_text", "rename", "socket", "socketpair", "stat",
    "touch", "unlink", "urlopen", "write_bytes", "write_text",
})  # fmt: skip
"""Names of functions that reach files, processes or the network."""

HANDLES = {
    "AskedFiles": "a socket that the worker has inherited",
    "CappedLog": "the open file of a log",
    "DeliveryRing": "shared memory",
    "DirectFile": "an open file",
    "EventLoop": "an epoll",
    "LockedFile": "an open file and its lock",
    "LockedFolder": "an open folder and its lock",
    "RecordReader": "an open log",
    "RecordWriter": "an open log",
    "StackMemory": "shared memory",
    "StagedFile": "a file as it is now",
    "StorageTotals": "a pipe",
    "WorkerProcess": "a process, by its descriptor",
    "_Part": "an open part file",
}
"""Classes whose objects are a resource of the operating system: there is none before it is open."""

OWNERS = {
    "AgentSession": "the pipe that wakes its loop",
    "FileServer": "the pair of sockets between it and its child",
    "Staging": "the pipe that wakes the agent's loop",
    "Uploading": "the pipe that wakes the agent's loop",
    "Api": "connections of an engine, opened when they are first used",
    "Transport": "connections to a server, opened when they are first used",
    "InUse": "its folder",
    "Shards": "its folders",
    "StageCache": "its folder",
    "RunFolder": "an older folder of that name",
    "Master": "connections to Redis, opened when they are first used",
    "Provisioner": "connections to Redis, opened when they are first used",
}
"""Classes that open or make what they alone use."""

AS_AZURE_HAS_THEM = {"CondaDependencies", "Model", "Mounted"}
"""Classes whose constructors do what those of the same name in Azure ML's SDK do."""


def io_in_constructors(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The classes whose constructor reaches out, each with the call; what it only defines is run by others."""
    for definition in ast.walk(tree):
        if not isinstance(definition, ast.ClassDef):
            continue
        for method in definition.body:
            if isinstance(method, ast.FunctionDef) and method.name in {"__init__", "__post_init__"}:
                yield from ((definition.name, call) for call in calls_of(method))


def calls_of(function: ast.FunctionDef) -> Iterator[str]:
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in IO_CALLS:
                yield name
        pending += ast.iter_child_nodes(node)


def classes_with_io() -> set[str]:
    return {
        name
        for top in ("client", "services", "shared")
        for path in (ROOT / top).rglob("*.py")
        for name, _ in io_in_constructors(ast.parse(path.read_text(encoding="utf-8")))
    }


def test_constructors_reach_no_file_process_or_network() -> None:
    """Give such an object its parts, or a class method that opens it; what stays is listed above, with a reason."""
    allowed = HANDLES.keys() | OWNERS.keys() | AS_AZURE_HAS_THEM

    assert sorted(classes_with_io() - allowed) == []
    assert sorted(allowed - classes_with_io()) == [], "these do so no more: take them from the list"


@pytest.mark.parametrize(
    "body, names",
    [
        ("self.file = open(path)", ["open"]),
        ("Path(path).mkdir()\n        self.path = path", ["mkdir"]),
        ("self.opened = lambda: open(path)", []),
        ("self.parts = list(path)", []),
    ],
)
def test_constructors_with_io_are_noticed(body: str, names: list[str]) -> None:
    tree = ast.parse(f"class Store:\n    def __init__(self, path):\n        {body}\n")

    assert [name for _, name in io_in_constructors(tree)] == names
