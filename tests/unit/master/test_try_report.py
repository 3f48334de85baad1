"""The report of all tries and its sums: a leader that takes over neither loses nor repeats a row."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome, PartTry, Phase, Use
from parallelrun_master.reports.columns import COLUMNS
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport
from tests.unit.core.factories import failed
from tests.unit.master.factories import CSV, a_try, rows_of, try_report


def test_a_try_has_a_row_for_its_loading_and_one_for_its_run(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    times = {"elapsed_s": 1.5, "process_s": 0.5, "run_s": 1.25, "load_s": 0.125}
    made.add([a_try(7, 2, items=10, rows=8, **times, use=Use(3 << 19, 1 << 18, 7, 0, 12, 3))], {})
    made.close()
    assert (tmp_path / CSV).read_text().splitlines()[0] == ",".join(COLUMNS)
    loaded, ran = rows_of(tmp_path)
    assert ran == {
        "Mini-batch Id": "7", "Picked Count": "2", "Process": "n/process001",
        "Process Start Time": "2001-09-09T01:46:40.250000", "Total": "10", "Succeeded": "8", "Failed": "2",
        "Elapsed Seconds": "1.500000", "Process Seconds": "0.500000", "Run Method Seconds": "1.250000",
        "Status": "RUN_DONE", "Error Category": "", "Error Message": "", "Mini-batch Detail": '{"id":7,"items":10}',
        "Peak Memory (MB)": "1.5", "Read (MB)": "0.250000", "Minor Page Faults": "7", "Major Page Faults": "0",
        "Voluntary Context Switches": "12", "Involuntary Context Switches": "3",
    }  # fmt: skip
    assert (loaded["Status"], loaded["Elapsed Seconds"], loaded["Succeeded"]) == ("LOAD_DONE", "0.125000", "")
    assert loaded["Mini-batch Id"] == "7"
    assert [name for name, cell in loaded.items() if cell] == [
        "Mini-batch Id", "Picked Count", "Process", "Process Start Time", "Total", "Elapsed Seconds", "Status",
        "Mini-batch Detail",
    ]  # fmt: skip


def test_a_part_that_ran_apart_has_a_row_above_that_of_its_try(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    bad = Failure("RUN_EXCEPTION", "ValueError: bad", "")
    parts = (PartTry(0, 4, "process002", 1e9, 0.75), PartTry(4, 6, "process003", 1e9, 1.25, bad))
    made.add([a_try(7, 2, items=10, rows=4, parts=parts)], {7: 1})
    made.close()
    good, refused, loaded, ran = ({name: cell for name, cell in row.items() if cell} for row in rows_of(tmp_path))
    part = {"Mini-batch Id": "7", "Picked Count": "3", "Process Start Time": "2001-09-09T01:46:40.000000"}
    assert good == part | {
        "Process": "n/process002", "Total": "4", "Succeeded": "4", "Failed": "0", "Elapsed Seconds": "0.750000",
        "Process Seconds": "0.000000", "Run Method Seconds": "0.750000", "Status": "PART_DONE",
        "Mini-batch Detail": '{"id":7,"first":0,"items":4}',
    }  # fmt: skip
    assert refused == part | {
        "Process": "n/process003", "Total": "6", "Succeeded": "0", "Failed": "6", "Elapsed Seconds": "1.250000",
        "Process Seconds": "0.000000", "Run Method Seconds": "1.250000", "Status": "PART_EXCEPTION",
        "Error Category": "RUN_EXCEPTION", "Error Message": "ValueError: bad",
        "Mini-batch Detail": '{"id":7,"first":4,"items":6}',
    }  # fmt: skip
    assert (loaded["Status"], ran["Status"], ran["Failed"]) == ("LOAD_DONE", "RUN_DONE", "6")


def test_the_cpu_time_of_a_try_beside_others_is_an_empty_cell_and_moves_none(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    made.add([a_try(7, run_s=1.25, process_s=-1.0), a_try(8, run_s=1.25, process_s=0.5)], {})
    made.close()
    beside, alone = rows_of(tmp_path)[1::2]
    assert (beside["Process Seconds"], alone["Process Seconds"]) == ("", "0.500000")
    assert [name for name in COLUMNS if beside[name] != alone[name]] == [
        "Mini-batch Id", "Process Seconds", "Mini-batch Detail",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "use, cells",
    [
        (Use(), ("", "", "", "", "", "")),
        (Use(1 << 20, 0, 0, 0, 0, 0), ("1.0", "0.000000", "0", "0", "0", "0")),
        (Use(5 << 20), ("5.0", "", "", "", "", "")),
    ],
)
def test_what_is_unknown_of_a_try_is_an_empty_cell(tmp_path: Path, use: Use, cells: tuple[str, ...]) -> None:
    made = try_report(tmp_path)
    made.add([a_try(1, use=use)], {})
    made.close()
    assert tuple(rows_of(tmp_path)[-1].values())[-6:] == cells


def test_peaks_of_any_number_of_processes_are_reported(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    made.add([a_try(number, use=Use(number << 20)) for number in range(1, 3000)], {})
    made.close()
    peaks = [float(row["Peak Memory (MB)"]) for row in rows_of(tmp_path) if row["Status"] == "RUN_DONE"]
    assert peaks == list(range(1, 3000))


def test_a_report_that_an_earlier_release_began_goes_on(tmp_path: Path) -> None:
    """It has fewer columns, and in this one they are in another order."""
    (tmp_path / CSV).parent.mkdir(parents=True)
    old = {
        "Status": "RUN_DONE", "Mini-batch Id": "1", "Picked Count": "1", "Process": "n/p", "Total": "5",
        "Succeeded": "4", "Elapsed Seconds": "2.0", "Process Seconds": "", "Run Method Seconds": "1.5",
    }  # fmt: skip
    (tmp_path / CSV).write_text(",".join(old) + "\n" + ",".join(old.values()) + "\n")
    sums = Summaries(tmp_path, least_tries=0)
    made = TryReport(tmp_path, Mask({}), sums)
    made.add([a_try(2, items=5, rows=5, node="n", process="p")], {})
    made.close()
    last = rows_of(tmp_path)[-1]
    assert (last["Status"], last["Mini-batch Id"], last["Succeeded"], len(last)) == ("RUN_DONE", "2", "5", len(old))
    while sums.step():
        pass
    sums.write()
    (row,) = rows_of(tmp_path, "sys/job_report/process_summary.csv")
    assert [row[name] for name in ("Tries", "Total", "Succeeded", "Run Method Seconds")] == ["2", "10", "9", "1.600000"]


def test_a_try_that_no_worker_had_counts_for_its_node(tmp_path: Path) -> None:
    """Its files were not there in time; the node is as alive as any."""
    sums = Summaries(tmp_path, least_tries=0)
    made = TryReport(tmp_path, Mask({}), sums)
    failure = Failure("LOAD_TIMEOUT", "its files were not on this node yet")
    made.add([a_try(1, status="retry", failure=failure, node="n", process="", load_s=6.0)], {})
    made.close()
    sums.write()
    # As its leader counts it, and as the next one reads it.
    for of_processes in (sums, Summaries(tmp_path, least_tries=0)):
        of_processes.read_later(tmp_path / CSV, (tmp_path / CSV).stat().st_size if of_processes is not sums else 0)
        while of_processes.step():
            pass
        of_processes.write()
        (row,) = rows_of(tmp_path, "sys/job_report/node_summary.csv")
        assert (row["Node"], row["Tries"], row["LOAD_TIMEOUT"]) == ("n", "1", "1")


def test_sums_of_what_nobody_knows_are_empty(tmp_path: Path) -> None:
    def sums_of(*tries: Outcome) -> list[str]:
        sums = Summaries(tmp_path, least_tries=0)
        made = TryReport(tmp_path, Mask({}), sums)
        made.add(tries, {})
        made.close()
        while sums.step():
            pass
        sums.write()
        (row,) = rows_of(tmp_path, "sys/job_report/process_summary.csv")
        return [row[name] for name in ("Tries", "Process Seconds", "Read (MB)")]

    unknown = [a_try(number, process_s=-1.0, use=Use()) for number in (1, 2)]
    assert sums_of(*unknown) == ["2", "", ""]
    assert sums_of(a_try(3, process_s=0.5, use=Use(0, 1 << 20))) == ["3", "", "1.000000"], (
        "of some tries it isn't known"
    )


@pytest.mark.parametrize(
    "category, statuses",
    [
        ("RUN_EXCEPTION", ["LOAD_DONE", "RUN_EXCEPTION"]),
        ("OOM_KILLED", ["LOAD_DONE", "RUN_EXCEPTION"]),
        ("RUN_TIMEOUT", ["LOAD_DONE", "RUN_TIMEOUT"]),
        ("LOAD_TIMEOUT", ["LOAD_TIMEOUT"]),
        ("INPUT_UNREADABLE", ["LOAD_EXCEPTION"]),
    ],
)
def test_the_status_says_how_it_ended(tmp_path: Path, category: ErrorCategory, statuses: list[str]) -> None:
    made = try_report(tmp_path, TOKEN="hidden-value")
    failure = Failure(category, 'a "quoted", hidden-value\nand a second line')
    made.add([a_try(1, status="retry", failure=failure, detail='{"files": ["/a, b"]}')], {})
    made.close()
    rows = rows_of(tmp_path)
    assert [row["Status"] for row in rows] == statuses
    assert rows[-1]["Error Category"] == category
    assert rows[-1]["Error Message"] == 'a "quoted", *** and a second line'
    assert rows[-1]["Mini-batch Detail"] == '{"files": ["/a, b"]}'
    assert rows[-1]["Succeeded"] == "0"


def test_more_rows_than_items_fail_none(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    made.add([a_try(1, items=2, rows=5)], {})
    made.close()
    assert [(row["Succeeded"], row["Failed"]) for row in rows_of(tmp_path)][-1] == ("2", "0")


def test_phases_of_a_worker_are_rows_without_a_mini_batch(tmp_path: Path) -> None:
    made = try_report(tmp_path)
    made.add_phase(Phase("n", "process000", "INIT", 1e9, 2.5))
    made.add_phase(Phase("n", "process001", "INIT", 1e9, 3.0, Failure("INIT_EXCEPTION", "no model")))
    made.add_phase(Phase("n", "process000", "SHUTDOWN", 1e9 + 9, 0.5))
    made.close()
    assert [(row["Status"], row["Elapsed Seconds"], row["Mini-batch Id"]) for row in rows_of(tmp_path)] == [
        ("ENTRY_SCRIPT_INIT_START", "", ""),
        ("ENTRY_SCRIPT_INIT_DONE", "2.500000", ""),
        ("ENTRY_SCRIPT_INIT_START", "", ""),
        ("ENTRY_SCRIPT_INIT_EXCEPTION", "3.000000", ""),
        ("ENTRY_SCRIPT_SHUTDOWN_DONE", "0.500000", ""),
    ]


@settings(max_examples=25)
@given(flushed=st.integers(0, 6), seen=st.integers(0, 6), torn=st.booleans())
def test_whoever_takes_over_adds_what_is_missing_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory, flushed: int, seen: int, torn: bool
) -> None:
    logs = tmp_path_factory.mktemp("logs")
    all_tries = [failed(0, tries=1), a_try(0, 2), a_try(1), failed(2, tries=1), a_try(2, 2), a_try(3)]
    first = try_report(logs)
    for each in all_tries[:flushed]:
        first.add([each], {})
    first.flush()
    if torn:
        with (logs / CSV).open("a") as file:
            file.write("17,1,n/process001,20")
    second = try_report(logs)
    first.add([a_try(99)], {})  # it wakes beside its successor
    first.flush()
    assert second.is_catching_up
    for each in all_tries[min(seen, flushed) :]:  # what Redis has not forgotten, some of which is in the file
        second.add([each], {})
    second.caught_up()
    second.add([a_try(4)], {})
    second.close()
    found = [
        (int(row["Mini-batch Id"]), int(row["Picked Count"]))
        for row in rows_of(logs)
        if row["Status"].startswith("RUN")
    ]
    assert found == [(0, 1), (0, 2), (1, 1), (2, 1), (2, 2), (3, 1), (4, 1)]


def test_a_report_that_is_full_says_so(tmp_path: Path) -> None:
    made = TryReport(tmp_path, Mask({}), Summaries(tmp_path), max_bytes=2000)
    for number in range(100):
        made.add([a_try(number)], {})
        made.flush()
    made.close()
    assert (tmp_path / CSV).stat().st_size < 3000
    assert [row["Status"] for row in rows_of(tmp_path)].count("REPORT_FULL") == 1
    assert rows_of(tmp_path)[-1]["Status"] == "REPORT_FULL"


def test_summaries_go_on_from_what_an_earlier_leader_has_reported(tmp_path: Path) -> None:
    for turn in range(2):
        sums = Summaries(tmp_path, least_tries=8)
        made = TryReport(tmp_path, Mask({}), sums)
        for number in range(3):
            node, use = f"n{number % 2}", Use(1 << 20, 3 << 20)
            made.add([a_try(turn * 10 + number, node=node, items=4, rows=3, run_s=0.5, load_s=0.25, use=use)], {})
        made.add(
            [a_try(turn * 10 + 5, node="n0", status="failed", failure=Failure("RUN_TIMEOUT", "slow"), items=4)], {}
        )
        made.close()
        while sums.step():
            pass
        sums.write()
    nodes = {row["Node"]: row for row in rows_of(tmp_path, "sys/job_report/node_summary.csv")}
    assert [nodes["n0"][name] for name in ("Tries", "Total", "Succeeded", "Failed", "RUN_DONE", "RUN_TIMEOUT")] == [
        "6", "24", "12", "12", "4", "2",
    ]  # fmt: skip
    assert (nodes["n1"]["Run Method Seconds"], nodes["n1"]["Load Seconds"]) == ("1.000000", "0.500000")
    assert (nodes["n1"]["Read (MB)"], nodes["n1"]["Seconds per Item"]) == ("6.000000", "0.187500")
    processes = rows_of(tmp_path, "sys/job_report/process_summary.csv")
    assert [row["Process"] for row in processes] == ["n0/process001", "n1/process001"]
    for name, elapsed_s, least in ("short", 0.5, 10), ("long", 5.0, 2):
        sums, has_sums = Summaries(tmp_path / name), []
        for _ in range(least):
            sums.add("n/p", "RUN_DONE", items=1, succeeded=1, elapsed_s=elapsed_s, process_s=0.0, run_s=0.0)
            sums.write()
            has_sums.append((tmp_path / name).exists())
        assert has_sums == [False] * (least - 1) + [True], "a few short tries are seen at a glance"


def test_a_report_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "sys").write_text("a file where a folder should be")
    made = try_report(tmp_path)
    made.add([a_try(1)], {})
    made.close()
