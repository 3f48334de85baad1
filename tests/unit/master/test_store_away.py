"""A store that is away is never taken for something that is wrong with the input: both would end the job for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.mltable.document import load_mltable
from parallelrun_core.storage.interface import Version, packed
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.trouble import Missing, StoreAway
from parallelrun_core.wire.message import DescribedMiniBatch, encode_described, join_groups
from parallelrun_master.planning.changed_inputs import changed_inputs


def raising(error: OSError) -> object:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    described = DescribedMiniBatch(0, [], [], join_groups([(b"s3://b/in", [b"a"])]), [packed(Version(1, 1.0, '"a"'))])
    manifest = ManifestWriter(tmp_path, 1)
    manifest.add(encode_described(described, 1), 1)
    manifest.close(order="sorted")
    return tmp_path


def test_no_file_of_a_resumed_job_counts_as_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectStorage, "version", raising(Missing(2, "no such key", "s3://b/in/a")))
    assert changed_inputs(folder, Decided()) == ["s3://b/in/a is gone"]
    monkeypatch.setattr(ObjectStorage, "version", raising(StoreAway(5, "slow down", "s3://b/in/a")))
    with pytest.raises(StoreAway):
        changed_inputs(folder, Decided())


def test_no_mltable_counts_as_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectStorage, "is_folder", raising(StoreAway(5, "slow down", "s3://b/table")))
    with pytest.raises(StoreAway):
        load_mltable("s3://b/table")
