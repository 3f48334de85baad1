"""`python -P -m parallelrun_worker.shuffle CONFIG`: how a leader has a table's rows grouped.

CONFIG: path of a JSON file `{plan, schema, pieces, folder}`: the input's record in `inputs.json`, where its columns are
frozen, what is to be read, and the folder to write to. The process ends when its standard input does, since nothing
waits for it any more. It reports on standard output, in lines of JSON: `{"read": pieces}`, `{"written": share}`, and
last `{"groups": count}` when all of it is durable, or `{"failed": "input" or "disk", "message": …}`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from parallelrun_worker.log_files import DISK_TROUBLE
from parallelrun_worker.tables import grouped
from parallelrun_worker.tables.data_warnings import DataWarnings

_MOST_WARNINGS = 200
"""About different columns and files; the others are counted."""


def main() -> int:
    """Group the rows, and report how it went."""
    threading.Thread(target=_end_with_the_leader, daemon=True).start()
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    try:
        _report(groups=group(config))
    except OSError as error:
        _report(failed="disk" if error.errno in DISK_TROUBLE else "input", message=str(error))
        return 1
    except (ImportError, ValueError) as error:
        _report(failed="input", message=str(error))
        return 1
    return 0


def _end_with_the_leader() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _report(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def group(config: dict[str, Any]) -> int:
    """Write all files of the folder, durably; returns the number of groups, one for each damaged file among them.

    Raises:
        OSError, ValueError, ImportError: the table can't be read, or the disk is full.
    """
    from parallelrun_worker.shuffle.chunks import ChunkReader, Damaged
    from parallelrun_worker.shuffle.keys import texts_of
    from parallelrun_worker.shuffle.sorting import Keyed, sort

    folder, keys = config["folder"], config["plan"]["keys"]
    warnings = DataWarnings(_MOST_WARNINGS)
    reader = ChunkReader(config["plan"], config["schema"], warnings)
    read = 0
    unread: dict[str, str] = {}

    def chunks() -> Iterator[Keyed]:
        nonlocal read
        for number, piece in enumerate(config["pieces"], start=1):
            try:
                chunk = reader.read(tuple(piece))
            except Damaged as error:  # its mini-batch fails; the others have their rows
                unread.setdefault(piece[0], str(error))
            else:
                read += len(chunk.keys)
                yield chunk
            _report(read=number)

    groups = written = 0
    last: bytes | None = None
    with _new(folder, grouped.ROWS) as rows, _new(folder, grouped.GROUPS) as index:
        writer = grouped.GroupWriter(rows, index)
        for batch in sort(chunks(), os.path.join(folder, "spilled")):
            for key, source, record in zip(*batch, strict=True):
                if key != last:
                    writer.begin(texts_of(key, len(keys)))
                    last, groups = key, groups + 1
                writer.add(source, record)
            written += len(batch.keys)
            _report(written=min(1.0, written / max(read, 1)))
        for message in unread.values():
            writer.begin([None] * len(keys))
            writer.add(grouped.UNREAD, message.encode(errors="replace"))
        writer.finish()
        _sync(rows)
        _sync(index)
    _write(folder, grouped.SOURCES, json.dumps(reader.sources).encode())
    _write(folder, grouped.WARNINGS, warnings.take())
    return groups + len(unread)


def _new(folder: str, name: str) -> BinaryIO:
    return open(os.path.join(folder, name), "xb")


def _write(folder: str, name: str, content: bytes) -> None:
    with _new(folder, name) as file:
        file.write(content)
        _sync(file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


if __name__ == "__main__":
    sys.exit(main())
