"""Of tables in stores, only what mini-batches need is read, by few requests."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_core.storage.objects import clients
from tests.counting_proxy import CountingProxy
from tests.integration.storage.conftest import Bucket, Store
from tests.integration.storage.tables import Make, lines, parquet
from tests.object_servers import Moto, ObjectServer

pytestmark = pytest.mark.integration

MIB = 1 << 20
MOST = 1.05
"""Times what the mini-batches need."""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


@pytest.fixture
def counted(server: ObjectServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProxy]:
    proxy = CountingProxy(server.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    clients.forget()
    yield proxy
    proxy.close()
    clients.forget()


def test_of_a_csv_only_what_is_needed_is_read(bucket: Bucket, job: Make, counted: CountingProxy) -> None:
    text = ("number,text,day\n" + lines(range(900_000), 60)).encode()
    bucket.put("t/a.csv", text)
    planned = job(bucket.url("t"), "read_delimited", size="4mb")
    planning = counted.bytes
    assert planning < 2 * MIB, "it is cut without being read: only the first rows are, for the types"

    planned.run()

    assert len(planned.messages) == -(-len(text) // (4 * MIB)) > 5
    assert counted.bytes <= MOST * len(text) + planning
    assert planned.fetched_bytes <= 1.01 * len(text)


def test_of_a_parquet_file_only_the_columns_and_row_groups_are_read(
    bucket: Bucket, job: Make, counted: CountingProxy
) -> None:
    numbers = np.random.default_rng(1).integers(1 << 60, size=(4, 1_000_000))
    file = io.BytesIO()
    table = pa.table({f"column{at}": column for at, column in enumerate(numbers)})
    pq.write_table(table, file, row_group_size=125_000, compression="none", use_dictionary=False)
    bucket.put("t/a.parquet", file.getvalue())
    steps = ["read_parquet", {"keep_columns": ["column1", "column3"]}, {"take": 500_000}]
    planned = job(bucket.url("t"), *steps, size="rows:125000")
    planning, requests = counted.bytes, counted.requests
    assert planning < MIB / 4

    planned.run()

    needed = 2 * 8 * 500_000
    assert len(planned.messages) == 4
    assert needed <= counted.bytes - planning <= MOST * needed
    assert requests <= 8
    assert counted.requests - requests == 4 * 2 + 1, "two columns of each row group, and the footer once"


def test_a_footer_is_read_by_one_request(bucket: Bucket, job: Make, counted: CountingProxy) -> None:
    for at in range(10):
        bucket.put(f"t/{at}.parquet", parquet(2000))
    counted.requests = 0

    planned = job(bucket.url("t"), "read_parquet")

    assert len(planned.messages) == 10
    assert counted.requests <= 10 + 6
