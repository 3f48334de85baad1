"""Tables in each kind of store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.storage.conftest import Bucket
from tests.integration.storage.tables import Make, avro, delta, lines, parquet, seen

pytestmark = pytest.mark.integration

FILES: dict[str, tuple[bytes, list[Any]]] = {
    "a.csv": (("number,text,day\n" + lines(range(3000))).encode(), ["read_delimited"]),
    "a.parquet": (parquet(50_000), ["read_parquet", {"keep_columns": ["number", "half"]}]),
    "a.avro": (avro(2000), ["read_avro"]),
}


def test_tables_are_the_same_as_on_disk(bucket: Bucket, job: Make, tmp_path: Path) -> None:
    for name, (content, steps) in FILES.items():
        bucket.put(f"t/{name}", content)
        (tmp_path / name).write_bytes(content)
        there, here = (job(path, *steps, size="20kb") for path in (bucket.url(f"t/{name}"), str(tmp_path / name)))
        assert seen(there.run()) == seen(here.run())


def test_delta_tables_are_the_same_as_on_disk(bucket: Bucket, job: Make, tmp_path: Path) -> None:
    delta(tmp_path / "t", ["day"])
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            bucket.put(str(path.relative_to(tmp_path)), path.read_bytes())
    step = {"read_delta_lake": {"version_as_of": 1}}
    assert seen(job(bucket.url("t"), step).run()) == seen(job(str(tmp_path / "t"), step).run())
