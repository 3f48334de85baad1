"""What scripts import works where they run alone, with nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AGENT = ROOT / "services" / "agent"
HOMES = {
    "installed": [ROOT / "client", AGENT],
    "in a worker": [AGENT, AGENT / "parallelrun_worker" / "for_users"],
}
"""The folders that have the module: where ParallelRun is installed, and where only a worker brings it."""
IMPORTS = """
    import asyncio, sys
    import parallelrun.script
    from parallelrun.script import *
    before = set(sys.modules)
"""
STREAMING = """
    held, ended = {}, {}
    def enqueue(mini_batch, mini_batch_context):
        held[mini_batch_context.minibatch_index] = (mini_batch, mini_batch_context)
    def check_all_tasks_processed():
        return not held and not ended
    def get_processing_batch_number():
        return len(held)
    def get_finished_batch_result():
        return {
            index: {"ret": [row.upper() for row in rows], "mini_batch_context": context, "exception": None}
            for index, (rows, context) in [(index, held.pop(index)) for index in list(held)]
        }
"""
CASES = {
    "remember and recall": """
        assert recall("key") is None and recall("key", 5) == 5
        remember("key", {"answer": [1, "ü", None]})
        assert recall("key") == {"answer": [1, "ü", None]}
        recall("key")["answer"].append("changed")
        assert recall("key") == {"answer": [1, "ü", None]}, "as a job's later try has it"
    """,
    "aremember": """
        async def many():
            await asyncio.gather(*(aremember(f"key {number}", number) for number in range(50)))
        asyncio.run(many())
        assert [recall(f"key {number}") for number in range(50)] == list(range(50))
    """,
    "bad values": """
        for key, value in (("k" * 1025, 1), ("key", "v" * (4 << 20)), ("key", float("nan")), ("key", {1, 2}), (5, 1)):
            try:
                remember(key, value)
            except ValueError as error:
                assert "remembered" in str(error) or "JSON" in str(error), error
            else:
                raise AssertionError((key, value))
    """,
    "limit": """
        class Answer:
            headers = {"Retry-After": "7"}
        with limit("any") as permit:
            assert permit.retry_after(Answer()) == 7 and permit.retry_after() == 1
        async def call():
            async with limit("any", tokens=1000) as permit:
                return permit.retry_after("0.5")
        async def many():
            return await asyncio.gather(*(call() for _ in range(100)))
        assert asyncio.run(many()) == [0.5] * 100
    """,
    "ItemError and WorkerBroken": """
        def run(mini_batch):
            if "dead" in mini_batch:
                raise WorkerBroken("the engine is dead")
            return [ItemError("no text") if not row else row for row in mini_batch]
        first, second = run(["a", ""])
        assert first == "a" and type(second) is ItemError and str(second) == "no text"
        try:
            run(["dead"])
        except WorkerBroken as error:
            assert str(error) == "the engine is dead"
        else:
            raise AssertionError
    """,
    "mini_batch_context": """
        context = mini_batch_context(3, partition_key_value={"year": 2026}, global_row_index_lower_bound=40)
        assert (context.minibatch_index, context.partition_key_value) == (3, {"year": 2026})
        assert (context.global_row_index_lower_bound, context.dataset) == (40, None)
        assert mini_batch_context().minibatch_index == 0 and mini_batch_context().partition_key_value == {}
        assert context.idempotency_key.endswith(":3")
    """,
    "streaming calls": STREAMING + """
    for index in range(3):
        enqueue([f"row {index}"], mini_batch_context(index))
    assert get_processing_batch_number() == 3 and not check_all_tasks_processed()
    results = get_finished_batch_result()
    assert [results[index]["ret"] for index in range(3)] == [["ROW 0"], ["ROW 1"], ["ROW 2"]]
    assert results[2]["mini_batch_context"].minibatch_index == 2
    assert check_all_tasks_processed() and get_finished_batch_result() == {}
    """,
    "log_metric and EntryScript": """
        from parallelrun import log_metric
        from parallelrun.entry_script import EntryScript
        log_metric("loss", 0.5)
        EntryScript().logger.info("alone")
        assert EntryScript().output_dir and EntryScript().agent_name == ""
    """,
}  # fmt: skip


def run_alone(source: str, home: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python that has no packages, and fail if it has loaded anything else."""
    paths = f"import sys; sys.path += {[str(path) for path in HOMES[home]]!r}\n"
    check = """
    loaded = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
    assert loaded <= {"__main__", "parallelrun", "parallelrun_worker"}, loaded
    print("done")
    """
    (folder / "alone.py").write_text(paths + "".join(map(textwrap.dedent, (IMPORTS, source, check))))
    return subprocess.run(
        [sys.executable, "-I", "-S", "-X", "dev", "-W", "error", "alone.py"],
        capture_output=True, text=True, check=False, cwd=folder, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("case", CASES)
def test_script_functions_work_in_a_script_that_runs_alone(case: str, home: str, tmp_path: Path) -> None:
    done = run_alone(CASES[case], home, tmp_path)

    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_script_functions_are_the_same_wherever_they_come_from(tmp_path: Path) -> None:
    names = [
        run_alone("print(sorted(parallelrun.script.__all__))", home, tmp_path).stdout.splitlines()[0] for home in HOMES
    ]

    assert names[0] == names[1]
    assert "'mini_batch_context'" in names[0]


def test_script_functions_leave_nothing_on_the_disk_where_a_script_runs_alone(tmp_path: Path) -> None:
    run_alone(CASES["remember and recall"] + CASES["limit"], "installed", tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["alone.py"]
