"""What a worker reports of the memory and the input of a try, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_worker import frames
from tests.integration.worker.worker_harness import WorkerHarness

Start = Callable[..., WorkerHarness]

pytestmark = pytest.mark.integration

MIB = 1 << 20
needs_clear_refs = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the kernel doesn't let the peak begin anew"
)

MODULES = {
    "busy": """
    import time
    def be_busy():
        "For so long that this mini-batch is measured by itself."
        end = time.perf_counter() + 0.03
        while time.perf_counter() < end:
            pass
    """
}
ALLOCATE = """
from busy import be_busy
def run(mini_batch):
    data = bytearray(int(mini_batch[0]) << 20)
    data[::4096] = b"x" * len(data[::4096])
    be_busy()
    return ["row"]
"""
READ = """
import os
from busy import be_busy
def run(mini_batch):
    for path in mini_batch:
        fd = os.open(path, os.O_RDONLY)
        while os.read(fd, 1 << 20):
            pass
        os.close(fd)
    if mini_batch[0].endswith("large"):
        be_busy()
    return ["row"]
"""


def test_what_a_mini_batch_waits_for_and_touches_is_counted(start: Start) -> None:
    harness = start("""
        import time
        from busy import be_busy
        def run(mini_batch):
            if mini_batch[0] == "waits":
                for _ in range(300):
                    time.sleep(0.0001)
            elif mini_batch[0] == "touches":
                bytearray(64 << 20)[::4096] = bytes(64 << 8)
            be_busy()
            return ["row"]
    """, modules=MODULES).ready()  # fmt: skip
    for number, what in enumerate(("nothing", "waits", "touches")):
        harness.run(what, mini_batch=number)
    nothing, waits, touches = harness.results()
    assert nothing["voluntary_switches"] < 100
    assert waits["voluntary_switches"] >= 200  # a wait that is over before it begins is none
    assert touches["minor_faults"] > 16, "pages may be huge ones"
    assert all(result["major_faults"] >= 0 and result["involuntary_switches"] >= 0 for result in harness.results())


def test_a_modules_own_name_stays_free(start: Start) -> None:
    harness = start("import resource\ndef run(items): return [resource.MINE]", modules={"resource": "MINE = 1"}).ready()
    assert harness.run("x").rows == b"1\n"
    assert harness.results()[0]["voluntary_switches"] >= 0


@needs_clear_refs
def test_the_peak_of_a_mini_batch_is_not_that_of_the_one_before(start: Start) -> None:
    harness = start(ALLOCATE, modules=MODULES).ready()
    for number, size in enumerate(("1", "200", "1")):
        harness.run(size, mini_batch=number)
    before, large, after = (result["peak_bytes"] for result in harness.results())
    assert 200 * MIB < large < before + 240 * MIB
    assert after < before + 40 * MIB


def test_what_a_mini_batch_reads_is_counted_to_the_byte(start: Start, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(5_000_000))
    (tmp_path / "small").write_bytes(b"12345")
    harness = start(READ, modules=MODULES).ready()
    large, small = str(tmp_path / "large"), str(tmp_path / "small")
    for number, paths in enumerate(((large,), (large, small), (large, large))):
        harness.run(*paths, mini_batch=number)
    assert [result["read_bytes"] for result in harness.results()] == [5_000_000, 5_000_005, 10_000_000]


def test_the_paths_of_a_mini_batch_are_none_of_its_input(start: Start) -> None:
    harness = start("def run(mini_batch): return ['row']").ready()
    harness.deliver(0, b"\0".join(b"%060d" % number for number in range(frames.MAX_PAYLOAD // 50)))
    harness.wait_for_answers(1)
    assert harness.results()[0]["read_bytes"] == 0


def test_those_that_follow_at_once_are_measured_together(start: Start, tmp_path: Path) -> None:
    """Each has a peak; what they have read is that of the one at whose end it was asked for, and counted once."""
    for name in ("small", "large"):
        (tmp_path / name).write_bytes(bytes(1000))
    harness = start(READ, modules=MODULES).ready()
    for number in range(100):
        harness.worker.deliver(number, os.fsencode(tmp_path / "small"))
    harness.worker.deliver(100, os.fsencode(tmp_path / "large"))
    harness.worker.send()
    harness.wait_for_answers(101)
    results = harness.results()
    assert sum(result["read_bytes"] for result in results) == 101 * 1000
    assert sum(result["read_bytes"] > 0 for result in results) < 100
    assert all(result["peak_bytes"] > MIB for result in results)


def test_a_mini_batch_that_fails_is_measured_without_its_traceback(start: Start, tmp_path: Path) -> None:
    """To describe an error, Python reads the source of the script."""
    (tmp_path / "large").write_bytes(bytes(1000))
    harness = start(READ.replace("return", f"raise ValueError  # {'x' * 10_000}"), modules=MODULES).ready()
    for number in range(2):
        answer = harness.run(str(tmp_path / "large"), mini_batch=number)
        assert answer.error["category"] == "RUN_EXCEPTION"
    assert [(result["read_bytes"], result["peak_bytes"] > MIB) for result in harness.results()] == [(1000, True)] * 2


@pytest.mark.parametrize(
    "names", [("/status", "/io", "/clear_refs"), pytest.param(("/clear_refs",), marks=needs_clear_refs)]
)
def test_a_script_that_closes_what_is_not_its_own_damages_none_of_its_files(
    start: Start, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Their numbers go to the files that it opens next, and nothing of ours may be written there."""
    victim = tmp_path / "victim"
    harness = start(f"NAMES = {names!r}" + """
import os
from busy import be_busy
FILES = []
def run(mini_batch):
    if not FILES:
        for name in os.listdir("/proc/self/fd"):
            path = os.readlink(f"/proc/self/fd/{name}") if os.path.lexists(f"/proc/self/fd/{name}") else ""
            if path.endswith(NAMES):
                os.close(int(name))
        FILES.extend(open(mini_batch[0], "wb", buffering=0) for _ in range(5))
    be_busy()
    return ["row"]
""", modules=MODULES).ready()  # fmt: skip
    for number in range(3):
        harness.run(str(victim), mini_batch=number)
    assert victim.read_bytes() == b""
    is_measured = [(result["peak_bytes"] > 0, result["read_bytes"] >= 0) for result in harness.results()]
    assert is_measured == [(len(names) == 1,) * 2] * 3, "without the last of them, only the peak doesn't begin anew"
