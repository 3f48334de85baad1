"""Folders are uploaded whole to any store: what is in them, whatever its name and size, and nothing of others."""

from __future__ import annotations

import errno
import os
import select
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from parallelrun_agent.uploading.uploader import Uploaded, Uploader
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.trouble import StoreError
from tests.integration.storage.conftest import Bucket
from tests.integration.storage.test_folder_outputs import below

pytestmark = pytest.mark.integration


class Uploads:
    """An uploader, with the pipe that it wakes its agent by."""

    def __init__(self, folder: Path, *urls: str, timeout_s: float = 30.0) -> None:
        self.folder = folder
        self._wake, end = os.pipe()
        os.set_blocking(end, False)
        self._uploader = Uploader(urls, SAME_USER, wake=end, timeout_s=timeout_s)

    def end(self, **files: bytes) -> Uploaded:
        """How the upload of these ends, each with its number before its name."""
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        self._uploader.begin("token", "process000", self.folder)
        deadline = time.monotonic() + 60
        while not self._uploader.done:
            assert time.monotonic() < deadline, "nothing has ended"
            select.select([self._wake], [], [], 0.1)
            self._uploader.poll(time.monotonic())
        self._uploader.close()
        return self._uploader.done.popleft()


def test_files_of_any_name_and_size_are_uploaded_and_removed_here(bucket: Bucket, tmp_path: Path) -> None:
    names = ["a b", "100%", "%41", "a#b", "ü", "sub/dir/x.tar.gz", ".hidden", "empty", "large", "a?b"]
    content = {name: name.encode() * 3 for name in names} | {"empty": b"", "large": os.urandom(20 << 20)}
    bucket.put("one/ü", b"of an earlier run")
    uploads = Uploads(tmp_path / "aside", bucket.url("one"), bucket.url("two/"))
    ended = uploads.end(**{f"{number}/{name}": content[name] for number in range(2) for name in names})
    assert (ended.key, ended.failure) == ("token", None)
    for folder in ("one", "two"):
        assert below(bucket, folder) == set(names)
        assert all(bucket.content(f"{folder}/{name}") == content[name] for name in names)
    assert not (tmp_path / "aside").exists()


def test_names_that_no_object_can_have_are_told(bucket: Bucket, tmp_path: Path) -> None:
    ended = Uploads(tmp_path / "aside", bucket.url("out")).end(**{"0/" + "/".join(["d" * 200] * 6): b"x"})
    assert ended.failure is not None
    assert (ended.failure.category, "1,024 bytes" in ended.failure.message) == ("OUTPUT_UNWRITABLE", True)


def test_a_store_that_is_away_is_tried_again_for_a_while(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, whole = [], ObjectStorage.put

    def put(storage: ObjectStorage, path: str, file: BinaryIO, size_bytes: int) -> None:
        tried.append(path)
        if len(tried) < 3:
            raise StoreError(errno.EIO, "it is away", path)
        whole(storage, path, file, size_bytes)

    monkeypatch.setattr(ObjectStorage, "put", put)
    assert Uploads(tmp_path / "aside", bucket.url("out")).end(**{"0/a": b"x"}).failure is None
    assert (len(tried), bucket.content("out/a")) == (3, b"x")
    tried.clear()
    late = Uploads(tmp_path / "aside", bucket.url("out"), timeout_s=0.3).end(**{"0/b": b"x"})
    assert late.failure is not None
    assert "it is away" in late.failure.message


def test_a_link_to_a_file_of_others_is_not_uploaded(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the agent")
    (tmp_path / "aside" / "0").mkdir(parents=True)
    (tmp_path / "aside" / "0" / "link").symlink_to(tmp_path / "secret")
    assert Uploads(tmp_path / "aside", bucket.url("out")).end(**{"0/file": b"x"}).failure is None
    assert below(bucket, "out") == {"file"}
