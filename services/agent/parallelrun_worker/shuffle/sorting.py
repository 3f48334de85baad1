"""Sorts more records than fit into memory, with DuckDB, which spills to files in a folder.

DuckDB holds some thousand records at once, however large they are, so large ones are sorted in parts.
"""

import errno
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MEMORY = "256MB"
"""How much the sorting may use, apart from the interpreter, its libraries and one piece of the table."""
_BATCH_ROWS = 2048
_PART_BYTES = 1 << 15


class Keyed(NamedTuple):
    """Records, or parts of them, with the keys that they are sorted by."""

    keys: list[bytes]
    sources: list[int]
    records: list[bytes]


def sort(chunks: Iterable[Keyed], folder: str) -> Iterator[Keyed]:
    """Sort records by key; records of one key stay in the order in which they came.

    Raises:
        OSError: the disk is full.
        Exception: what `chunks` raised.
    """
    import duckdb
    import pyarrow as pa

    raised: list[Exception] = []

    def batches() -> Iterator[Any]:
        try:
            yield from _batches(chunks)
        except Exception as error:
            raised.append(error)  # DuckDB would turn it into a text
            raise

    config: dict[str, Any] = {
        "memory_limit": MEMORY, "temp_directory": folder, "threads": 1,
        "autoinstall_known_extensions": False, "autoload_known_extensions": False,
    }  # fmt: skip
    with duckdb.connect(config=config) as connection:
        connection.register("records", pa.RecordBatchReader.from_batches(_schema(), batches()))
        try:
            query = connection.sql("SELECT key, source, record FROM records ORDER BY key, ordinal")
            for batch in query.to_arrow_reader(_BATCH_ROWS):
                yield Keyed(*(column.to_pylist() for column in batch.columns))
        except (duckdb.Error, pa.ArrowException) as error:
            if raised:
                raise raised[0] from None
            reason = str(error).partition("\n")[0]
            raise OSError(errno.ENOSPC, f"the rows can't be sorted in {folder}: {reason}") from error


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [("key", pa.binary()), ("ordinal", pa.int64()), ("source", pa.int32()), ("record", pa.large_binary())]
    )


def _batches(chunks: Iterable[Keyed]) -> Iterator[Any]:
    """Arrow record batches of the chunks, with the place of each record."""
    import pyarrow as pa

    schema, ordinal = _schema(), 0
    for chunk in map(_in_parts, chunks):
        last = ordinal + len(chunk.keys)
        columns = [chunk.keys, range(ordinal, last), chunk.sources, chunk.records]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.record_batch(arrays, schema=schema)
        ordinal = last


def _in_parts(chunk: Keyed) -> Keyed:
    if all(len(record) <= _PART_BYTES for record in chunk.records):
        return chunk
    parts = [
        (key, source, record[at : at + _PART_BYTES])
        for key, source, record in zip(*chunk, strict=True)
        for at in range(0, len(record), _PART_BYTES)
    ]
    return Keyed(*map(list, zip(*parts, strict=True)))
