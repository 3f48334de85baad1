"""Rows are published in a store at once or never, whoever dies or comes second."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.uploads import multipart
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer, SeaweedFS
from tests.twins import sabotage
from tests.unit.core.factories import outcome

pytestmark = pytest.mark.integration
STORAGE = ObjectStorage()
ROWS = [b"%07d\n" % number * 1000 for number in range(2500)]  # two parts and a bit

_DIES = """
import os, signal, sys
from pathlib import Path
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.storage.objects.uploads import s3

folder, url, event, left = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])

def count(**_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

s3._client("s3").meta.events.register(event, count)
merge(SegmentTable(folder).in_order(), folder / "parts", url, lambda _: None)
print(left)
"""


@pytest.fixture(scope="module", params=[Moto, SeaweedFS], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest, store: Store) -> ObjectServer:
    return store(request.param)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job whose mini-batches are all decided."""
    folder = tmp_path_factory.mktemp("jobs") / "job_00000000000000000000"
    (folder / "parts").mkdir(parents=True)
    made, at = [], 0
    with (folder / "parts" / "part").open("wb") as part:
        for number, rows in enumerate(ROWS):
            part.write(rows)
            made.append(outcome(number, part="part", offset=at, length=len(rows), crc=zlib.crc32(rows), rows=1000))
            at += len(rows)
    log = DecisionWriter(folder, 1)
    log.add(made)
    log.sync()
    log.close()
    return folder


def published(job: Path, bucket: Bucket, **options: Any) -> str:
    table = SegmentTable(job)
    return merge(table.in_order(), job / "parts", bucket.url("out/rows.txt"), lambda _: None, **options).sha256


def test_a_concatenator_that_dies_at_any_request_leaves_all_or_nothing(
    job: Path, bucket: Bucket, server: ObjectServer
) -> None:
    """Before each request that it sends, and after each answer; then another one makes the output."""
    sha256 = hashlib.sha256(b"".join(ROWS)).hexdigest()
    url, deaths = bucket.url("out/rows.txt"), 0
    for event in ("before-send.s3", "after-call.s3"):
        for at in range(1, 50):
            died = subprocess.run(
                [sys.executable, "-c", _DIES, str(job), url, event, str(at)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if not died.returncode:
                break
            assert died.returncode == -9, died.stderr
            deaths += 1
            assert bucket.keys() in ([], [f"{bucket.prefix}/out/rows.txt"])
            if bucket.keys():
                assert hashlib.sha256(bucket.content("out/rows.txt")).hexdigest() == sha256
        else:
            pytest.fail("it needs more requests than that")
        assert published(job, bucket) == sha256
        assert hashlib.sha256(bucket.content("out/rows.txt")).hexdigest() == sha256
        assert bucket.keys() == [f"{bucket.prefix}/out/rows.txt"]
        assert STORAGE.unfinished(url, job.name) == []
    assert deaths > 10


def test_an_object_of_others_is_known_before_anything_is_uploaded(job: Path, bucket: Bucket) -> None:
    bucket.put("out/rows.txt", b"theirs")
    with pytest.raises(Conflict, match="never overwritten"):
        published(job, bucket)
    assert bucket.content("out/rows.txt") == b"theirs"
    assert STORAGE.unfinished(bucket.url("out/rows.txt"), job.name) == []


def test_an_object_of_others_that_comes_meanwhile_is_not_replaced(job: Path, bucket: Bucket) -> None:
    def they_are_faster() -> tuple[()]:
        bucket.put("out/rows.txt", b"theirs")
        return ()

    with pytest.raises(Conflict, match="never overwritten"):
        published(job, bucket, before_publishing=they_are_faster)
    assert bucket.content("out/rows.txt") == b"theirs"


def written(bucket: Bucket, content: bytes) -> multipart.MultipartObject:
    """An upload of a job that is complete but for its name."""
    made = STORAGE.create(bucket.url("out/rows.txt"), "job_a")
    made.write(memoryview(content))
    made.sync()
    assert isinstance(made, multipart.MultipartObject)
    return made


@pytest.mark.parametrize("is_first", [True, False])
def test_a_late_upload_does_not_replace_a_later_one(bucket: Bucket, is_first: bool) -> None:
    if not is_first:
        with written(bucket, b"first") as first:
            first.publish(())
    with written(bucket, b"late") as late:
        with written(bucket, b"later") as later:
            later.publish(())
        with pytest.raises(OSError, match="changed while it was made"):
            late.publish(())
    assert bucket.content("out/rows.txt") == b"later"


def test_an_upload_whose_last_answer_is_lost_is_published(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks again, and hears that there is no such upload any more, or that the name is taken."""
    whole = multipart.MultipartObject._complete

    def asked_twice(self: multipart.MultipartObject, condition: dict[str, str]) -> None:
        whole(self, condition)
        whole(self, condition)

    monkeypatch.setattr(multipart.MultipartObject, "_complete", asked_twice)
    with written(bucket, b"rows") as made:
        made.publish(())
    assert bucket.content("out/rows.txt") == b"rows"


def test_an_object_takes_the_place_of_another_in_one_step(bucket: Bucket) -> None:
    bucket.put("out/rows.txt", b"old")
    bucket.put("out/.new", b"new")
    STORAGE.replace(bucket.url("out/.new"), bucket.url("out/rows.txt"))
    assert bucket.content("out/rows.txt") == b"new"
    assert bucket.keys() == [f"{bucket.prefix}/out/rows.txt"]


def test_without_the_condition_an_object_of_others_is_replaced(job: Path, bucket: Bucket) -> None:
    with sabotage.expect_failure(), sabotage.without("uploads.condition"):
        test_an_object_of_others_that_comes_meanwhile_is_not_replaced(job, bucket)
