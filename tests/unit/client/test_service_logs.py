"""The logs of an embedded cluster's services stay short, while the services have them open."""

from __future__ import annotations

import os
from pathlib import Path

from parallelrun.embedded.service_logs import trim


def test_a_log_over_its_limit_is_emptied_and_its_end_kept(tmp_path: Path) -> None:
    log, short = tmp_path / "api.log", tmp_path / "master.log"
    short.write_bytes(b"little")
    with log.open("ab") as service:
        service.write(b"a" * 300 + b"b" * 100)
        service.flush()
        trim([log, short, tmp_path / "none.log"], max_bytes=100)
        service.write(b"more")

    assert log.read_bytes() == b"more"
    assert (tmp_path / "api.log.1").read_bytes() == b"b" * 100
    assert short.read_bytes() == b"little"


def test_however_much_is_written_no_more_than_twice_the_limit_stays(tmp_path: Path) -> None:
    log = tmp_path / "api.log"
    with log.open("ab", buffering=0) as service:
        for _ in range(50):
            service.write(os.urandom(70))
            trim([log], max_bytes=100)

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 200
