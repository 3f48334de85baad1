"""Outputs of a `parallel_for`: each is a folder with those of all turns, or a file with the values of all turns.

OUTPUT/TURN     a link to the output of a turn, unless that is in a store; of a file, a folder with a link to it
OUTPUT/MLTable  names all of them, for whoever reads a table
OUTPUT          of values: as JSON, in the order of the items, or by their names if they have some
"""

from __future__ import annotations

import json
import os
import posixpath
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from parallelrun_core.durable_files import replace_file, sync_folder
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.pipelines.outputs import Part, parts_of
from parallelrun_core.pipelines.turns import is_gathered, turn_name
from parallelrun_core.spec.pipeline import PipelineSpec
from parallelrun_core.storage.location import is_url
from parallelrun_master.pipelines.condition_values import text_of_output

_TABLE: Final = "MLTable"
_MOST_TEXT: Final = 1 << 20


def gather(folder: JobFolder, spec: PipelineSpec) -> None:
    """Put the outputs of all turns together, where the pipeline is a `parallel_for`. Again, the same.

    Raises:
        OSError: its folder can't be written.
    """
    if not is_gathered(spec):
        return
    folder.outputs.mkdir(exist_ok=True)
    for name, output in spec.outputs.items():
        parts = parts_of(folder, name)
        if output.type == "uri_file":
            replace_file(
                folder.outputs / name, json.dumps(_values(parts, list(spec.loop.items if spec.loop else ()))).encode()
            )
        else:
            _link(folder.outputs / name, parts)
    sync_folder(folder.outputs)


def _link(target: Path, parts: list[Part]) -> None:
    target.mkdir(exist_ok=True)
    lines = ["type: mltable", "paths:"]
    for part in parts:
        spec = part.job.record().job_spec()
        path, kind = part.job.output_paths(spec)[part.output], spec.outputs[part.output].type
        place = part.name
        if not is_url(path):
            link = target / part.name if kind == "uri_folder" else target / part.name / posixpath.basename(path)
            link.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                link.unlink()
            link.symlink_to(os.path.relpath(path, link.parent) if path.startswith(f"{part.job.root}/") else path)
            place = f"./{link.relative_to(target)}"
        lines.append(
            f"  - {'folder' if kind == 'uri_folder' else 'file'}: {json.dumps(place if not is_url(path) else path)}"
        )
    replace_file(target / _TABLE, ("\n".join(lines) + "\n").encode())


def _values(parts: list[Part], turns: list[str]) -> Any:
    values = {part.name: _value(part) for part in parts}
    is_list = turns == [turn_name(number) for number in range(1, len(turns) + 1)]
    return [values.get(turn) for turn in turns] if is_list else values


def _value(part: Part) -> Any:
    try:
        text = text_of_output(part.job, part.output, _MOST_TEXT).strip()
    except NotFound:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text if isinstance(value, dict | list) else value
