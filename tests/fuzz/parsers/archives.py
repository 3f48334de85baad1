"""Zips of code: nothing of one lands anywhere but in its own folder."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from parallelrun_core.code.snapshots import snapshot_zip
from parallelrun_core.errors import ParallelRunError
from tests.fuzz.parser import FuzzedParser, check


def _read_zip(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="parallelrun-fuzz-") as folder:
        store = Path(folder, "deep", "code")
        store.mkdir(parents=True)
        try:
            name = snapshot_zip(io.BytesIO(data), store)
            check((store / name).is_dir(), "no snapshot of that name")
        finally:
            outside = [
                path
                for path in Path(folder).rglob("*")
                if store not in (path, *path.parents) and path not in store.parents
            ]
            check(not outside, f"{outside} were made outside of the store")
            check(not any(path.is_symlink() for path in store.rglob("*")), "a link was made")


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0o644) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)
            member.external_attr, member.compress_type = mode << 16, method
            archive.writestr(member, content)
    return file.getvalue()


PARSERS = [
    FuzzedParser(
        "zip",
        [
            _zip({"score.py": b"def run(x):\n    return x\n", "a/b.txt": b"x" * 500}),
            _zip({"a": b"x"}, zipfile.ZIP_STORED),
            _zip({"../a": b"x", "/b": b"y"}),
            _zip({"a": b"/etc/passwd"}, mode=0o120777),
            _zip({"a": b"x" * 9000}, zipfile.ZIP_LZMA),
            _zip({"a": b"x" * 900}, zipfile.ZIP_BZIP2),
            b"PK\x05\x06" + bytes(18),
            b"",
        ],
        _read_zip,
        (ParallelRunError,),
    )
]
