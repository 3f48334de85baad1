"""Tables: whatever is in a file, its rows are the same wherever it is cut, or it is refused by its name."""

from __future__ import annotations

import io
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pandas as pd

from parallelrun_core.spec import JobSpec
from parallelrun_worker.tables.values import EXACT_IN_FLOAT
from tests.fuzz.parser import FuzzedParser, check
from tests.odd_files.reading import Outcome, Row, outcome_of, own_job

_ONE_PIECE, _MANY_PIECES = "1gb", "1kb"
_MEMORY = Path("/dev/shm")
_FOLDER = tempfile.TemporaryDirectory(
    prefix="parallelrun-fuzz-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None
)  # what a job makes durable takes much longer on a disk than the parsers take


@cache
def _job(files: Path, step: str, size: str) -> JobSpec:
    """The job over the folder of a parser's one file; reading the job takes as long as reading the file."""
    return own_job(files, json.loads(step), size)


def _outcome(data: bytes, name: str, step: dict[str, Any], size: str) -> Outcome:
    files = Path(_FOLDER.name, name)
    files.mkdir(exist_ok=True)
    (files / name).write_bytes(data)
    job = _job(files, json.dumps(step), size)
    with tempfile.TemporaryDirectory(dir=_FOLDER.name) as folder:
        outcome = outcome_of(job, Path(folder, "job"))
    check(not outcome.crashes, "; ".join(outcome.crashes))
    # Whether a text of Parquet is UTF-8 is not looked at before somebody asks for it: that would take a tenth longer.
    errors = [error for error in outcome.refused if "'utf-8' codec can't decode" not in error]
    check(not errors or name in " ".join(errors), f"no name in {errors[:1]}")
    return outcome


def _cut_in_two_ways(name: str, step: dict[str, Any], data: bytes) -> None:
    whole = _outcome(data, name, step, _ONE_PIECE)
    parts = _outcome(data, name, step, _MANY_PIECES)
    if not whole.refused and not parts.refused and not whole.warnings and not parts.warnings:
        check(_values(whole.rows) == _values(parts.rows), f"cut, {name} has other rows")


def _values(rows: list[Row]) -> str:
    """The values of rows without nulls. Other rows of the same mini-batch decide whether a whole number is a float, and
    a longer one gives all of them one more column, which is null there."""
    return str([{name: kept for name, value in row.items() if (kept := _value(value)) is not None} for row in rows])


def _value(value: object) -> object:
    if value is None or value is pd.NA or value is pd.NaT or value != value:  # noqa: PLR0124 - NaN
        return None
    if isinstance(value, np.integer):  # as in a column that has a null, too
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_IN_FLOAT else value


def _parser(kind: str, name: str, step: dict[str, Any], seeds: list[bytes]) -> FuzzedParser:
    # What can't be made a job is refused before, as an InvalidInput, which outcome_of knows.
    return FuzzedParser(kind, seeds, lambda data: _cut_in_two_ways(name, step, data), ())


def _avro(codec: str) -> bytes:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}],
    }
    file = io.BytesIO()
    fastavro.writer(
        file, schema, [{"a": n, "b": "x" * n} for n in range(50)], codec=codec, sync_interval=200, sync_marker=b"s" * 16
    )
    return file.getvalue()


def _parquet(compression: str, *, rows: int = 40, **options: Any) -> bytes:
    frame = pd.DataFrame({"a": range(rows), "b": ["x", "y"] * (rows // 2), "c": [[n] for n in range(rows)]})
    file = io.BytesIO()
    frame.to_parquet(file, index=False, compression=compression, **options)  # type: ignore[call-overload]
    return file.getvalue()


def _parquet_in_pages(**options: Any) -> bytes:
    """A row group that is cut, of small pages."""
    return _parquet("none", rows=400, data_page_size=300, write_batch_size=20, **options)


_CSV = b"".join(b'%d,"x ""%d""",2024-01-%02d\n' % (n, n, n % 28 + 1) for n in range(60))

PARSERS = [
    _parser(
        "delimited",
        "t.csv",
        {"read_delimited": {"delimiter": ","}},
        [
            b"a,b,c\n" + _CSV,
            b"\xef\xbb\xbfa,b,c\r\n" + _CSV.replace(b"\n", b"\r\n"),
            b"a,b\r1,2\r3,4\r",
            b"a,a\n1,2\n",
            ("a,b,c\n" + _CSV.decode()).encode("utf-16"),
            b"sep=;\na;b\n1;2\n",
            b'a,b\n"x\ny",1\n',
            b"",
            b"\n\n\n",
            b"a\n" + b"9" * 400 + b"\n",
        ],
    ),
    _parser(
        "quoted-newlines",
        "t.csv",
        {"read_delimited": {"delimiter": ",", "support_multi_line": True}},
        [
            b"a,b,c\n" + _CSV,
            b'a,b\n"x\ny",1\n' * 40,
            b'a,b\n"x\r\ny","z"\r\n',
            b'a,b\n1,"never closed\n2,3\n',
            b'a\n"x"y\n',
        ],
    ),
    _parser(
        "json-lines",
        "t.jsonl",
        {"read_json_lines": {}},
        [
            b'{"a": 1, "b": "x"}\n{"a": 2.5, "c": [1, {"d": null}]}\n' * 30,
            b'{"a": 1}\r\n{"a": "x"}\r{"a": true}\n',
            b'{"a": NaN}\n{"a": 1e400}\n',
            b'{"a": 9007199254740993}\n{}\n',
            b'[1]\n"x"\nnull\n',
            b'{"a": "\\ud800"}\n',
            '{"a": "ü"}\n'.encode("utf-16"),
            b"",
        ],
    ),
    _parser(
        "parquet",
        "t.parquet",
        {"read_parquet": {}},
        [
            _parquet("none", row_group_size=10),
            _parquet("snappy", row_group_size=10),
            _parquet_in_pages(),
            _parquet_in_pages(use_dictionary=False, data_page_version="2.0"),
            b"",
            b"PAR1PAR1",
        ],
    ),
    _parser("avro", "t.avro", {"read_avro": {}}, [_avro("null"), _avro("deflate"), b"Obj\x01", b""]),
]

os.environ.setdefault("OMP_NUM_THREADS", "1")
