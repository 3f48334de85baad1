"""Profiles of workers, summed up and as trees; what a script writes in their place is passed over."""

from __future__ import annotations

import cProfile
import json
import profile
import pstats
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_api.profiles.reading import read_profiles
from parallelrun_api.profiles.sums import Function, FunctionTimes, ProfiledCall, ProfileSum, WorkerProfile
from parallelrun_api.profiles.tree import tree_of
from parallelrun_api.views.files import ServedFolder
from parallelrun_worker.diagnostics.profile_data import MOST_FUNCTIONS, profile_data

CALLERS = ("short", "long")
HERE = str(Path(__file__).parent)


def leaf(count: int) -> int:
    return sum(range(count))


def short() -> int:
    return leaf(1_000)


def long() -> int:
    return sum(leaf(200_000) for _ in range(3))


def recursive(depth: int) -> int:
    return leaf(50_000) + (recursive(depth - 1) if depth else 0)


def run() -> None:
    short()
    long()
    recursive(5)


def data_of(module: Any = cProfile) -> bytes:
    profiler = module.Profile()
    profiler.runcall(run)
    return profile_data(pstats.Stats(profiler).stats, HERE)  # type: ignore[attr-defined]


def served(folder: Path) -> ServedFolder:
    return ServedFolder(anchor=folder, beneath="node")


def sum_of(folder: Path, **texts: bytes) -> ProfileSum:
    for name, text in texts.items():
        (folder / "node" / "node0").mkdir(parents=True, exist_ok=True)
        (folder / "node" / "node0" / f"{name}.profile.json").write_bytes(text)
    return read_profiles(served(folder), node="", process="").sum


def named(profile: ProfileSum, name: str) -> Function:
    (function,) = (each for each in profile.functions if each.name == name)
    return function


@pytest.mark.parametrize("module", [cProfile, profile])
def test_functions_are_summed_up_over_workers(tmp_path: Path, module: Any) -> None:
    text = data_of(module)
    one, two = sum_of(tmp_path, a=text), sum_of(tmp_path, b=text)
    function = named(two, "leaf")
    assert function.file == "test_profiles.py"
    assert two.functions[function].calls == 2 * one.functions[function].calls == 2 * (1 + 3 + 6)
    assert two.functions[named(two, "recursive")].plain_calls == 2
    assert two.total_s == pytest.approx(2 * one.total_s)
    assert two.functions[named(two, "run")].cumulative_s == pytest.approx(two.total_s, rel=0.2)


@pytest.mark.parametrize("module", [cProfile, profile])
def test_a_tree_has_the_time_of_each_call_below_its_caller(tmp_path: Path, module: Any) -> None:
    summed = sum_of(tmp_path, a=data_of(module))
    tree = tree_of(summed, depth=10, limit=100)
    root = next(number for number, node in enumerate(tree) if node.function.name == "run")
    assert tree[root].parent == -1
    for number, node in enumerate(tree):
        assert node.parent < number
        below = sum(each.seconds for each in tree if each.parent == number)
        assert below <= node.seconds * 1.01 + 1e-4
    if module is cProfile:
        spent = {caller: sum(node.seconds for node in tree if _caller(tree, node) == caller) for caller in CALLERS}
        assert spent["long"] > 10 * spent["short"] > 0


def _caller(tree: list[Any], node: Any) -> str:
    return tree[node.parent].function.name if node.parent >= 0 else ""


def test_a_tree_is_bounded_in_depth_and_number(tmp_path: Path) -> None:
    summed = sum_of(tmp_path, a=data_of())
    assert max(node.depth for node in tree_of(summed, depth=2, limit=100)) == 1
    first, *_ = tree_of(summed, depth=10, limit=1)
    assert first.function.name == "run"


def test_the_functions_of_a_worker_are_bounded() -> None:
    stats: dict[Any, Any] = {("file", number, "f" * 1000): (1, 1, 0.0, float(number), {}) for number in range(5000)}
    text = profile_data(stats, "/code")
    data = json.loads(text)
    assert (len(data["functions"]), data["left_out"]) == (MOST_FUNCTIONS, 4000)
    assert data["functions"][0][1] == 4999
    assert len(text) < 1 << 20


def test_profiles_of_many_workers_that_have_nothing_in_common_are_bounded() -> None:
    """Scripts can write them: whatever they say, a sum and its tree are small."""
    summed = ProfileSum()
    calls = [ProfiledCall(0, callee, 1, 0.1, 0.1) for callee in range(MOST_FUNCTIONS)] * 4
    tracemalloc.start()
    try:
        for worker in range(40):
            functions = [FunctionTimes("f", line, f"{worker}", 1, 1, 0.1, 0.2) for line in range(MOST_FUNCTIONS)]
            summed.add(WorkerProfile(1, 1.0, functions, calls))
        assert len(tree_of(summed, depth=50, limit=2000)) == 2000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (len(summed.functions), summed.left_out) == (20_000, 20_000)
    assert peak < 64 << 20
    with pytest.raises(ValueError, match="more than a worker writes"):
        summed.add(WorkerProfile(1, 1.0, functions, [*calls, calls[0]]))


def test_a_tree_of_functions_that_all_call_all_takes_little_memory() -> None:
    count = 63
    functions = [FunctionTimes("f", line, "n", 1, 1, 1.0, 100.0) for line in range(count)]
    calls = [ProfiledCall(caller, callee, 1, 1.0, 50.0) for caller in range(count) for callee in range(count)]
    summed = ProfileSum()
    summed.add(WorkerProfile(1, 1.0, functions, calls))
    tracemalloc.start()
    try:
        assert len(tree_of(summed, depth=50, limit=2000)) == 2000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 << 20


def test_what_is_no_profile_is_counted_and_left_out(tmp_path: Path) -> None:
    good = data_of()
    calls_nobody = json.dumps({**json.loads(good), "calls": [[0, 99_999, 1, 0.0, 0.0]]}).encode()
    later = json.dumps({**json.loads(good), "schema": 2}).encode()
    sum_of(tmp_path, good=good, cut=good[:-10], nothing=b"", number=b"1", later=later, wild=calls_nobody)
    (tmp_path / "node" / "node0" / "old.profile").write_bytes(b"marshalled")
    (tmp_path / "node" / "node0" / "good.profile").write_bytes(b"the same for pstats")
    (tmp_path / "node" / "node0" / "link.profile.json").symlink_to("good.profile.json")
    read = read_profiles(served(tmp_path), node="", process="")
    assert [worker.process for worker in read.workers] == ["good"]
    assert read.left_out == 6
    assert read_profiles(served(tmp_path), node="node1", process="").workers == []
    assert len(read_profiles(served(tmp_path), node="node0", process="good").workers) == 1


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9), st.floats(0, 10)), max_size=30),
    st.lists(st.floats(0, 10), min_size=7, max_size=7),
)
def test_any_calls_give_a_tree_that_ends(calls: list[tuple[int, int, int, float]], times: list[float]) -> None:
    summed = ProfileSum()
    functions = [FunctionTimes("f", number, "n", 1, 1, s / 2, s) for number, s in enumerate(times)]
    summed.add(WorkerProfile(1, sum(times), functions, [ProfiledCall(a, b, n, s / 2, s) for a, b, n, s in calls]))
    tree = tree_of(summed, depth=50, limit=500)
    assert len(tree) <= 500
    assert all(node.parent < number for number, node in enumerate(tree))
    assert all(tree[node.parent].seconds >= node.seconds for node in tree if node.parent >= 0)
