"""What a try used is known by name from its worker to the report, and to readers of other releases."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import msgspec

from parallelrun_core.wire.outcome import Outcome, Use, decode_list, decode_places
from parallelrun_worker import frames
from tests.unit.core.factories import outcome
from tests.unit.master.factories import rows_of

ROOT = Path(__file__).parents[2]
LAST = "    involuntary_switches: int = -1\n"
FIELD = (LAST, LAST + "    waited_s: float = 0\n")
ONE_MORE = {
    "services/agent/parallelrun_worker/diagnostics/meter.py": [
        ("peak_bytes=peak,\n", "peak_bytes=peak, waited_s=2.5,\n")
    ],
    "services/agent/parallelrun_worker/frames.py": [FIELD],
    "shared/parallelrun_core/wire/outcome.py": [FIELD],
    "services/master/parallelrun_master/reports/columns.py": [
        ('    "Involuntary Context Switches",\n', '    "Involuntary Context Switches", "Waited (s)",\n'),
        ("for count in counts)))", 'for count in counts), f"{use.waited_s:.1f}"))'),
    ],
}
"""All that is changed for one more measurement, which is no integer."""
A_TRY = """
import sys
from pathlib import Path
from types import SimpleNamespace
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.outcomes import OutcomeBuilder
from parallelrun_agent.workers.answers import parse_answer
from parallelrun_core.wire.leasing import Delivery
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import decode_list, encode, encode_list
from parallelrun_worker import frames
from parallelrun_worker.diagnostics.meter import Meter
from tests.unit.master.factories import try_report

meter = Meter()
meter.begin()
frame = frames.pack_result(frames.DONE, meter.measure(0), mini_batch=7, items=1, rows=1, run_s=0.5, process_s=0.25)
assignment = Assignment(Delivery(7, "token", 0, False, b""), 1, 1.0)
answer = parse_answer(frames.DONE, frame[frames.HEAD.size :], Mask({}))
worker = SimpleNamespace(process="process000", part_name="part")
made = OutcomeBuilder("node", 0, 3).build(assignment, worker, answer, 0.75)
report = try_report(Path(sys.argv[1]))
report.add(decode_list(encode_list([encode(made)])), {})
report.close()
"""


def test_the_worker_and_its_readers_have_the_same_measurements_in_the_same_order() -> None:
    """The worker imports nothing of ours, so it has them once more."""
    assert list(get_type_hints(frames.Use).items()) == list(get_type_hints(Use).items())
    assert msgspec.structs.astuple(Use()) == frames.Use()


def test_a_measurement_is_added_in_four_files_and_arrives_in_the_report(tmp_path: Path) -> None:
    for folder in ("services", "shared"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, changes in ONE_MORE.items():
        text = (tmp_path / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, f"{old!r} in {name}"
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    path = [str(tmp_path / "shared"), *(str(service) for service in (tmp_path / "services").iterdir())]
    done = subprocess.run(
        [sys.executable, "-c", A_TRY, str(tmp_path / "logs")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded, ran = rows_of(tmp_path / "logs")
    assert (ran["Waited (s)"], ran["Run Method Seconds"], loaded["Waited (s)"]) == ("2.5", "0.500000", "")
    assert float(ran["Peak Memory (MB)"]) > 1


def test_outcomes_of_releases_with_fewer_or_more_measurements_are_read() -> None:
    written = outcome(7, use=Use(1000, 2000))
    whole = msgspec.json.decode(msgspec.json.encode(written))[: Outcome.__struct_fields__.index("use") + 2]
    uses = {
        Use(): whole[:-2],
        Use(1000): [*whole[:-2], [1000]],
        Use(1000, 2000): [*whole[:-2], [1000, 2000]],
        Use(1000, 2000, 3, 4, 5, 6): [
            *whole[:-2],
            [1000, 2000, 3, 4, 5, 6, 7.5, "more"],
            [],
            [],
            [],
            {},
            "a later field",
        ],
    }
    raw = msgspec.json.encode(list(uses.values()))
    assert decode_list(raw) == [msgspec.structs.replace(written, use=use) for use in uses]
    assert [each.mini_batch for each in decode_places(raw)] == [7, 7, 7, 7]
