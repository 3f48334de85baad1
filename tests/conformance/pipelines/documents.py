"""The documents of this folder, and what they are expected to mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from parallelrun.job_file.reading import read_job_file
from parallelrun_core.intake.reading import Reading
from parallelrun_core.spec.command import with_settings
from parallelrun_core.spec.data_defaults import OWN

HERE: Final = Path(__file__).parent
DOCUMENTS: Final = sorted((HERE / "documents").glob("*.yml"))
NOT_RUN: Final = ("paths_of_outputs", "types_and_modes")
"""They name a datastore and tables that aren't there: only what they mean is checked."""


def meaning(path: Path) -> dict[str, Any]:
    """What a document means: its spec without defaults, the order of its steps, and the notes; DIR is its folder."""
    reading = read_job_file(path)
    return {"spec": _spec(reading), "order": _order(reading), "notes": list(map(str, reading.notes))}


def _spec(reading: Reading) -> Any:
    assert reading.pipeline is not None
    return plain(reading.pipeline.model_dump(mode="json", exclude_defaults=True))


def _order(reading: Reading) -> list[str]:
    assert reading.pipeline is not None
    return reading.pipeline.order()


def plain(spec: Mapping[str, Any]) -> Any:
    """A pipeline's spec without what a job has by default (`tests/unit/storage/test_leftovers.py` has what each form of
    a document says of files that are no data), and with DIR for the folder of the documents."""
    steps = {name: {**step, "job": _job(step["job"])} for name, step in spec["steps"].items()}
    return _with_short_paths({**spec, "steps": steps})


def _job(job: Mapping[str, Any]) -> Any:
    if "steps" in job:
        return plain(job)
    settled = with_settings({}) if job.get("command") else {}
    return {name: value for name, value in job.items() if value not in ("", {}, []) and settled.get(name) != value}


def _with_short_paths(part: Any) -> Any:
    match part:
        case dict():
            return {name: _with_short_paths(value) for name, value in part.items() if name not in OWN.inputs}
        case list():
            return [_with_short_paths(value) for value in part]
        case str():
            return part.replace(f"{HERE}/documents", "DIR").replace(f"{HERE}/components", "DIR/../components")
    return part
