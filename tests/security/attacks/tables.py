"""Files that end, hang or fill whoever reads them, beside sound ones of the same job: of these, no row is lost."""

from __future__ import annotations

import gzip
import io
import secrets
import shutil
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.acceptance.http_user import HttpUser
from tests.fuzz.parser import FINDS
from tests.security.attack import Attack, NotPlayable, Target

_READING: Final = """
def run(mini_batch):
    return [str(value) for value in mini_batch["a"]]
"""
_SOUND_ROWS: Final = ["1", "2", "3"]
_BOMB_BYTES: Final = 5 << 29
_PREVIEWED: Final = (200, 422, 429, 503)
"""Statuses that tell what is in files, or that they can't be shown."""


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3]}), sink)
    return sink.getvalue()


def _avro() -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    fastavro.writer(sink, schema, [{"a": number} for number in (1, 2, 3)])
    return sink.getvalue()


def _find(kind: str, name: str) -> Callable[[], bytes]:
    return (FINDS / kind / name).read_bytes


@cache
def _bomb() -> bytes:
    """A small file of one line that has no end."""
    sink = io.BytesIO()
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=1) as file:
        file.write(b"a\n")
        for _ in range(_BOMB_BYTES >> 24):
            file.write(bytes(1 << 24))
    return sink.getvalue()


def _nested() -> bytes:
    return b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"


def _beside_sound_files(
    step: dict[str, Any], ending: str, sound: Callable[[], bytes], hostile: Callable[[], bytes], target: Target
) -> str:
    """Read a hostile file between two sound ones, as a job and as a preview."""
    folder = target.inputs / f"tables-{secrets.token_hex(4)}"
    rows = {"path": f"{target.inputs_there}/{folder.name}", "transformations": [step]}
    job: dict[str, Any] = {"inputs": {"rows": rows}, "error_threshold": -1, "run_max_try": 1}
    try:
        folder.mkdir(mode=0o755)
        (folder / f"a.{ending}").write_bytes(sound())
        if sorted(target.rows_of(_READING, **job)) != _SOUND_ROWS:
            raise NotPlayable(f"nodes read no .{ending} there")
        (folder / f"b.{ending}").write_bytes(hostile())
        (folder / f"c.{ending}").write_bytes(sound())
        with HttpUser(target.url, target.token) as user:
            for route in ("preview", "plan"):
                status = user.client.post(f"/v1/jobs:{route}", json={"inputs": {"rows": rows}}, timeout=60).status_code
                if status not in _PREVIEWED:
                    return f"a {route} is answered with {status}"
        if (returned := sorted(target.rows_of(_READING, **job))) != sorted(2 * _SOUND_ROWS):
            return f"of two sound files there are the rows {returned}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


_PARQUET: Final[dict[str, Any]] = {"read_parquet": {}}
_AVRO: Final[dict[str, Any]] = {"read_avro": {}}
_LINES: Final[dict[str, Any]] = {"read_json_lines": {}}
_TEXT: Final[dict[str, Any]] = {"read_delimited": {}}
FOOTER: Final = "a Parquet file whose footer ends its reader"
SCHEMA: Final = "an Avro file whose schema has no names"
_HOSTILE: Final[dict[str, tuple[dict[str, Any], str, Callable[[], bytes], Callable[[], bytes]]]] = {
    FOOTER: (_PARQUET, "parquet", _parquet, _find("parquet", "levels-that-do-not-fit")),
    SCHEMA: (_AVRO, "avro", _avro, _find("avro", "a-column-without-a-name")),
    "a line of JSON that is nested without an end": (_LINES, "jsonl", lambda: b'{"a":1}\n{"a":2}\n{"a":3}\n', _nested),
    "a small packed file of gigabytes in one line": (_TEXT, "csv.gz", lambda: gzip.compress(b"a\n1\n2\n3\n"), _bomb),
}
ATTACKS: list[Attack] = [Attack(name, partial(_beside_sound_files, *parts)) for name, parts in _HOSTILE.items()]
