"""What an entry script has besides its mini-batches: `EntryScript`, folders, logs, profiles (reference §3.6, §3.7)."""

from __future__ import annotations

import json
import os
import pstats
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.worker.worker_harness import WorkerHarness

pytestmark = pytest.mark.integration

Start = Callable[..., WorkerHarness]

HELPER = """
    import json, pickle
    from azureml_user.parallel_run import EntryScript
    import parallelrun.entry_script
    at_import = EntryScript()
    at_import.logger.info("imported %s", "it")
    def init():
        EntryScript().logger.info("begins")
    def run(items):
        entry = EntryScript(logging_level="DEBUG")
        entry.logger.debug("ran")
        same = pickle.loads(pickle.dumps(entry)) is entry is at_import is parallelrun.entry_script.EntryScript()
        return [json.dumps([same, entry.log_dir, entry.output_dir, entry.working_dir, entry.agent_name, entry.dir])]
"""


def test_the_helper_is_one_in_each_process_and_knows_its_folders(start: Start) -> None:
    harness = start(HELPER).ready()
    home, logs = str(harness.logs.parent), harness.logs / "user" / "entry_script_log" / "node000"
    assert json.loads(harness.run("x").rows) == [True, str(logs), home, home, "process000", home]
    lines = (logs / "process000.log.txt").read_text().splitlines()
    assert [line.split("|")[1:] for line in lines] == [
        ["INFO", str(harness.worker.pid), line.split("|")[3], words]
        for line, words in zip(lines, ["imported it", "begins"], strict=False)
    ] + [["DEBUG", str(harness.worker.pid), lines[0].split("|")[3], "ran"]]
    assert "begins" not in harness.stdout.read_text()


def test_the_helpers_folder_for_logs_is_there_before_anything_is_logged(start: Start) -> None:
    harness = start("""
        import os
        from azureml_user.parallel_run import EntryScript
        def init():
            open(os.path.join(EntryScript().log_dir, "mine.txt"), "w").close()
        def run(items):
            return items
    """).ready()
    assert (harness.logs / "user" / "entry_script_log" / "node000" / "mine.txt").exists()


def test_a_child_that_is_spawned_gets_the_helper_of_its_parent(start: Start) -> None:
    harness = start("""
        import multiprocessing
        from azureml_user.parallel_run import EntryScript
        def run(items):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(describe, [EntryScript()])
        def describe(entry):
            entry.logger.info("from a child")
            return entry.agent_name
    """).ready()
    assert harness.run("x").rows == b"process000\n"
    (log,) = (harness.logs / "user").rglob("*.log.txt")
    assert log.read_text().endswith("|from a child\n")


def test_a_module_of_the_users_own_of_that_name_is_what_the_script_gets(start: Start) -> None:
    script = "from azureml_user import parallel_run\ndef run(items):\n    return [parallel_run]"
    assert start(script, modules={"azureml_user": "parallel_run = 'mine'"}).ready().run("x").rows == b"mine\n"


def test_files_below_logs_come_back_and_nothing_is_left_where_there_are_none(start: Start) -> None:
    write = (
        "import os\ndef run(items):\n    os.makedirs('logs/deep', exist_ok=True)\n    open('logs/deep/x', 'w').close()"
    )
    writer, other = start(f"{write}\n    return items").ready(), start("def run(items): return items").ready()
    assert writer.run("a").returned == other.run("a").returned == 1
    for harness in (writer, other):
        harness.worker.end()
        assert harness.exited() == 0
        harness.close()
    assert (writer.logs / "files" / "deep" / "x").exists()
    assert not (other.logs / "files").exists()


@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_a_profile_names_the_users_functions(start: Start, module: str) -> None:
    script = (
        "def work(): pass\ndef init(): work()\ndef run(items):\n    work()\n    return items\ndef shutdown(): work()"
    )
    harness = start(script, config={"profiling_module": module}).ready()
    assert harness.run("a").rows == b"a\n"
    harness.worker.end()
    assert harness.exited() == 0
    stats = pstats.Stats(str(harness.logs / "process000.profile")).stats  # type: ignore[attr-defined]
    assert [counts[0] for (file, _, name), counts in stats.items() if name == "work" and "score.py" in file] == [3]


def test_nice_is_as_the_job_asks(start: Start) -> None:
    script = "import os\ndef run(items): return [os.getpriority(os.PRIO_PROCESS, 0)]"
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert start(script, config={"nice": 3}).ready().run("a").rows == f"{min(19, mine + 3)}\n".encode()


def test_the_workers_own_log_tells_each_mini_batch(start: Start) -> None:
    harness = start("def run(items):\n    if 'bad' in items: raise ValueError\n    return items").ready()
    harness.run("a", mini_batch=5)
    harness.run("bad", mini_batch=6)
    harness.worker.end()
    harness.exited()
    log: Path = harness.logs / "process000.txt"
    told = [line.split("|")[1] + "|" + line.split("|")[4] for line in log.read_text().splitlines()]
    assert "INFO|Mini-batch 5 is picked." in told, "who looks while the first one runs sees it"
    assert any(line.startswith("INFO|Mini-batch 5: run() took ") and "1 rows of 1 items" in line for line in told)
    assert any(line.startswith("ERROR|Mini-batch 6: run() failed") and "ValueError" in line for line in told)
    assert told[-1] == "INFO|shutdown() is done; the worker ends."
    copies = (harness.logs / "sys" / "error" / "node" / "node000" / "process000.txt").read_text().splitlines()
    assert copies == [line for line in log.read_text().splitlines() if "|ERROR|" in line]


def test_a_worker_that_waits_has_written_all_that_it_had_to_say(start: Start) -> None:
    harness = start("def run(items):\n    return items").ready()
    for number in range(3):
        harness.run("a", mini_batch=number)
    log: Path = harness.logs / "process000.txt"
    harness.until(
        lambda: harness.worker.refresh_logs() or "Mini-batch 2: run() took" in log.read_text(),
        "the last line is there",
    )
    assert harness.run("a", mini_batch=3).rows == b"a\n"


def test_the_level_of_the_job_is_that_of_all_its_logs(start: Start) -> None:
    script = """
        import logging
        from azureml_user.parallel_run import EntryScript
        def run(items):
            for logger in (logging.getLogger("mine"), EntryScript().logger):
                logger.info("too much")
                logger.warning("enough")
            return items
    """
    harness = start(script, logging_level="WARNING").ready()
    harness.run("a")
    harness.worker.end()
    harness.exited()
    (own,) = (harness.logs / "user").rglob("*.log.txt")
    for log in (harness.stdout, own):
        assert "enough" in log.read_text()
        assert "too much" not in log.read_text()
    assert not (harness.logs / "process000.txt").exists()


def test_arguments_as_published_scripts_read_them(start: Start) -> None:
    script = """
        import argparse, json, sys
        parser = argparse.ArgumentParser()
        parser.add_argument("--model")
        parser.add_argument("--size", type=int, default=0)
        parser.add_argument("--rate", type=float)
        parser.add_argument("--names", nargs="*")
        parser.add_argument("--json_setting", type=json.loads)
        parser.add_argument("--fast", action="store_true")
        args, unknown = parser.parse_known_args()
        by_hand = sys.argv[sys.argv.index("--logging_level") + 1]
        def run(items):
            return [json.dumps([vars(args), by_hand])]
    """
    argv = ["--error_threshold", "10", "--logging_level", "INFO", "--model", "/m/a b", "--size", "20", "--rate", "0.5",
            "--names", "x", "y", "--json_setting", '{"name": "v 1"}', "--fast", "--input_ds_0", "data"]  # fmt: skip
    found, by_hand = json.loads(start(script, argv=argv).ready().run("x").rows)
    assert found == {
        "model": "/m/a b", "size": 20, "rate": 0.5, "names": ["x", "y"], "json_setting": {"name": "v 1"}, "fast": True,
    }  # fmt: skip
    assert by_hand == "INFO"
