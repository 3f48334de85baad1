"""Objects are given their parts: a constructor touches no file, process or network, but of what is itself a handle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IO_CALLS = frozenset({
    "Client", "Connection", "NamedTemporaryFile", "Popen", "TemporaryDirectory", "access", "check_call",
    "check_output", "chmod", "chown", "connect", "copyfile", "copytree", "create_connection", "epoll", "eventfd",
    "execv", "exists", "fdatasync", "flock", "fork", "fstat", "fsync", "ftruncate", "getaddrinfo", "glob", "is_dir",
    "is_file", "is_symlink", "iterdir", "kill", "link", "listdir", "lockf", "lstat", "makedirs", "memfd_create",
    "mkdir", "mkdtemp", "mkstemp", "mmap", "open", "pidfd_open", "pipe", "pipe2", "posix_spawn", "read_bytes",
    "read_text", "readlink", "rename", "resolve", "rmdir", "rmtree", "run", "scandir", "sendall", "socket",
    "socketpair", "stat", "statvfs", "symlink", "system", "touch", "truncate", "unlink", "urlopen", "urlretrieve",
    "walk", "write_bytes", "write_text",
})  # fmt: skip
"""Names of functions that reach files, processes or the network."""

HANDLES = {
    "AskedFiles": "a socket that the worker has inherited",
    "AuditFile": "an open log",
    "BlockWriter": "memory that is aligned",
    "CappedLog": "the open file of a log",
    "DeliveryRing": "shared memory",
    "DirectFile": "an open file",
    "EventLoop": "an epoll",
    "JoinedLogs": "open logs",
    "LocalNewFile": "an open file",
    "LockedFile": "an open file and its lock",
    "OpenFile": "an open file",
    "RecordReader": "an open log",
    "RecordWriter": "an open log",
    "StackMemory": "shared memory",
    "StagedFile": "a file as it is now",
    "StorageTotals": "a pipe",
    "_Part": "an open part file",
}
"""Classes whose objects are a resource of the operating system: there is none before it is open."""

OWNERS = {
    "AgentSession": "the pipe that wakes its loop",
    "FileServer": "the pair of sockets between it and its child",
    "Staging": "the pipe that wakes the agent's loop",
    "Uploading": "the pipe that wakes the agent's loop",
    "DockerEngine": "connections of an engine, opened when they are first used",
    "SwarmEngine": "connections of an engine, opened when they are first used",
    "TryReport": "the file that it appends to",
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

AS_THE_DISK_IS = {
    "NamedTokens": "its file, without which no server starts",
    "PathRule": "the links that lead into its folders",
    "Room": "the free bytes that it divides",
    "RunPlaces": "what is in the folder, before anything is changed",
}
"""Classes that look at the disk once, when they are made: what they say holds for that moment."""

AS_AZURE_HAS_THEM = {"CondaDependencies", "Model", "Mounted"}
"""Classes whose constructors do what those of the same name in Azure ML's SDK do."""


Functions = dict[str, ast.FunctionDef]


def functions_of(body: list[ast.stmt]) -> Functions:
    return {each.name: each for each in body if isinstance(each, ast.FunctionDef)}


def io_in_constructors(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The classes whose constructor reaches out, each with the call; what it only defines is run by others.

    Methods of its own and functions of its module are followed.
    """
    for definition in ast.walk(tree):
        if isinstance(definition, ast.ClassDef):
            methods = functions_of(definition.body)
            followed = {f"self.{name}": method for name, method in methods.items()} | functions_of(tree.body)
            for name in methods.keys() & {"__init__", "__post_init__"}:
                yield from ((definition.name, call) for call in calls_of(methods[name], followed))


def calls_of(function: ast.FunctionDef, followed: Functions) -> Iterator[str]:
    pending: list[ast.AST] = list(function.body)
    followed = dict(followed)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in IO_CALLS:
                yield name
            if callee := followed.pop(ast.unparse(node.func), None):
                pending += callee.body
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
    allowed = HANDLES.keys() | OWNERS.keys() | AS_THE_DISK_IS.keys() | AS_AZURE_HAS_THEM
    with_io = classes_with_io()

    assert sorted(with_io - allowed) == []
    assert sorted(allowed - with_io) == [], "these do so no more: take them from the list"


@pytest.mark.parametrize(
    "body, names",
    [
        ("self.file = open(path)", ["open"]),
        ("Path(path).mkdir()\n        self.path = path", ["mkdir"]),
        ("self._begin(path)", ["unlink"]),
        ("self.file = opened(path)", ["open"]),
        ("self.opened = lambda: open(path)", []),
        ("self.parts = list(path)", []),
    ],
)
def test_constructors_with_io_are_noticed(body: str, names: list[str]) -> None:
    begin = "def _begin(self, path):\n        path.unlink()"
    text = f"class Store:\n    def __init__(self, path):\n        {body}\n    {begin}\n"
    tree = ast.parse(f"{text}def opened(path):\n    return open(path)\n")

    assert [name for _, name in io_in_constructors(tree)] == names
