"""Objects of real stores are listed, read and made like files, and told apart where files needn't be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.storage.interface import Replaced
from parallelrun_core.storage.objects import ObjectStorage, clients, copying, listing
from parallelrun_core.storage.objects.listing import PAGE
from parallelrun_core.storage.objects.trouble import AccessDenied, Missing, StoreAway, StoreError
from parallelrun_core.storage.objects.uploads.parts import SMALL_BYTES
from tests.integration.storage.conftest import Bucket
from tests.object_servers import Azurite, ObjectServer, SeaweedFS
from tests.twins.sabotage import always, expect_failure

STORAGE = ObjectStorage()
pytestmark = pytest.mark.integration


def listed(url: str, *below: str) -> list[str]:
    """The URLs that a listing yields, each with a version; sorted, if it says so."""
    files, urls = STORAGE.files(url, below), list[str]()
    for folder, names in files:
        assert files.versions is not None
        assert len(files.versions) == len(names)
        assert all(version.tag for version in files.versions)
        urls += [os.fsdecode(folder + b"/" + name) for name in names]
    assert urls == sorted(urls, key=os.fsencode) or not files.is_sorted
    return urls


def written(bucket: Bucket, key: str, content: bytes, owner: str = "job_a") -> None:
    create(bucket.url(key), content, owner)


def create(url: str, content: bytes, owner: str = "job_a") -> None:
    with STORAGE.create(url, owner) as new:
        new.write(memoryview(content))
        new.sync()
        new.publish(())


NAMES = ["a.txt", "b/c.txt", "b/d/e.csv", "with space.txt", "ü.txt", "100%.txt", "%41.txt", "a#b.txt", "b-c/f.txt"]


def test_what_is_below_a_prefix_is_listed_in_the_same_order_each_time(bucket: Bucket) -> None:
    for name in NAMES:
        bucket.put(f"in/{name}")
    bucket.put("input/other.txt")
    bucket.put("in.txt")

    assert sorted(listed(bucket.url("in"))) == [bucket.url(f"in/{name}") for name in sorted(NAMES)]
    assert listed(bucket.url("in/")) == listed(bucket.url("in"))
    assert listed(bucket.url("in/b/c.txt")) == [bucket.url("in/b/c.txt")]
    assert len(listed(bucket.url())) == len(NAMES) + 2


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("*.txt", ["%41.txt", "100%.txt", "a#b.txt", "a.txt", "with space.txt", "ü.txt"]),
        ("**/*.csv", ["b/d/e.csv"]),
        ("b*/[cf].txt", ["b-c/f.txt", "b/c.txt"]),
        ("**/e.*", ["b/d/e.csv"]),
    ],
)
def test_patterns_match_as_they_match_files(bucket: Bucket, pattern: str, names: list[str]) -> None:
    for name in NAMES:
        bucket.put(f"in/{name}")

    assert sorted(listed(bucket.url(f"in/{pattern}"))) == [bucket.url(f"in/{name}") for name in names]
    assert sorted(listed(bucket.url("in"), *pattern.split("/"))) == [bucket.url(f"in/{name}") for name in names]


def test_more_than_a_page_comes_whole_and_in_order(bucket: Bucket) -> None:
    names = [f"in/{number:05d}" for number in range(PAGE + 7)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bucket.put, names))

    assert listed(bucket.url("in")) == [bucket.url(name) for name in names]


def test_a_listing_that_is_left_ends_its_thread(bucket: Bucket) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bucket.put, [f"in/{number:05d}" for number in range(PAGE + 7)]))

    for _ in STORAGE.files(bucket.url("in")):
        break


def test_what_consoles_create_for_a_folder_is_no_file(bucket: Bucket) -> None:
    bucket.put("in/folder/", b"")
    bucket.put("in/folder/a.txt")
    bucket.put("in/empty.txt", b"")

    assert listed(bucket.url("in")) == [bucket.url("in/empty.txt"), bucket.url("in/folder/a.txt")]


def test_empty_objects_that_mark_a_folder_are_no_files_and_are_counted(bucket: Bucket) -> None:
    for key, content in {
        "in": b"",
        "in/sub": b"",
        "in/sub/deep/a": b"1",
        "in/z_$folder$": b"",
        "in/empty": b"",
    }.items():
        bucket.put(key, content)

    expected = [bucket.url("in/empty"), bucket.url("in/sub/deep/a")]
    for spelled in ("in", "in/"):
        files = STORAGE.files(bucket.url(spelled))
        urls = [os.fsdecode(folder + b"/" + name) for folder, names in files for name in names]
        assert sorted(urls) == expected
        assert files.markers.count == 3 - spelled.endswith("/")
        assert "sub" in str(files.markers)
    assert listed(bucket.url("in/empty")) == [bucket.url("in/empty")]


def test_marks_of_folders_that_are_taken_for_files_are_found(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at what is below an empty object."""
    monkeypatch.setattr(listing, "markers_in", always(set()))
    monkeypatch.setattr(listing, "is_marker", always(False))
    with expect_failure():
        test_empty_objects_that_mark_a_folder_are_no_files_and_are_counted(bucket)


def test_an_object_and_the_mark_of_a_folder_of_its_name_are_one_file(server: ObjectServer, bucket: Bucket) -> None:
    if isinstance(server, SeaweedFS):
        pytest.skip("it refuses such objects")
    for key, content in {"in/a": b"1", "in/a/": b"", "in/b": b"", "in/b/": b"", "in/c": b"1"}.items():
        bucket.put(key, content)

    assert listed(bucket.url("in")) == [bucket.url(f"in/{name}") for name in "abc"]

    bucket.put("in/c/", b"2")
    with pytest.raises(StoreError, match=r"in/c: there is an object of this name, and another one with a '/' behind"):
        listed(bucket.url("in"))


def test_a_folder_that_has_content_itself_is_refused_and_a_pattern_leaves_it_out(
    server: ObjectServer, bucket: Bucket
) -> None:
    if isinstance(server, SeaweedFS | Azurite):
        pytest.skip("the first refuses such objects, and of the second, the library doesn't list them")
    bucket.put("own/", b"abc")
    bucket.put("own/a", b"1")
    for spelled in ("own", "own/"):
        with pytest.raises(StoreError, match=r"own/: an object of 3 bytes has a key that ends in '/'.*a pattern"):
            listed(bucket.url(spelled))
    assert listed(bucket.url("own/**")) == [bucket.url("own/a")]


def test_a_folder_inside_with_content_of_its_own_is_refused_with_the_reason(
    server: ObjectServer, bucket: Bucket
) -> None:
    if isinstance(server, SeaweedFS | Azurite):
        pytest.skip("the first refuses such objects, and the second takes what isn't there for another version")
    bucket.put("in/sub/", b"abc")
    bucket.put("in/sub/a", b"1")
    files = STORAGE.files(bucket.url("in"))
    found = {os.fsdecode(folder + b"/" + name): (files.versions or ())[at] for folder, names in files
             for at, name in enumerate(names)}  # fmt: skip
    assert sorted(found) == [bucket.url("in/sub"), bucket.url("in/sub/a")]
    version = found[bucket.url("in/sub")]
    words = r"in/sub: .*its key ends in '/', as no file's can; then rename that object, or leave it out by a pattern"
    with pytest.raises(Missing, match=words):
        STORAGE.whole(bucket.url("in/sub"), version)
    with pytest.raises(Missing, match=words), STORAGE.open(bucket.url("in/sub"), version=version) as file:
        file.read(1)
    with pytest.raises(Missing, match=words):
        STORAGE.copy(bucket.url("in/sub"), version, -1)
    assert listed(bucket.url("in/*/*")) == [bucket.url("in/sub/a")]


def test_an_object_that_is_also_a_folder_is_refused_with_both_meanings(bucket: Bucket) -> None:
    bucket.put("both", b"abc")
    bucket.put("both/a", b"1")

    with pytest.raises(
        InvalidInput, match=r"3 bytes, and also a folder.*both/ for the folder.*\[b\]oth for the object"
    ):
        listed(bucket.url("both"))
    assert listed(bucket.url("both/")) == [bucket.url("both/a")]
    assert listed(bucket.url("[b]oth")) == [bucket.url("both")]


def test_a_prefix_with_brackets_is_taken_as_it_is_if_it_is_there(bucket: Bucket) -> None:
    for key in ("run[1]/a.csv", "run[1]/x/b.csv", "run1/c.csv", "d[2].csv"):
        bucket.put(key)

    assert listed(bucket.url("run[1]")) == [bucket.url("run[1]/a.csv"), bucket.url("run[1]/x/b.csv")]
    assert listed(bucket.url("run[1]/*.csv")) == [bucket.url("run[1]/a.csv")]
    assert listed(bucket.url("run[1]/x/*")) == [bucket.url("run[1]/x/b.csv")]
    assert listed(bucket.url("d[2].csv")) == [bucket.url("d[2].csv")]
    assert listed(bucket.url("run[12]/*")) == [bucket.url("run1/c.csv")]


def test_an_object_is_read_in_ranges_of_one_version(bucket: Bucket) -> None:
    bucket.put("a", b"0123456789")
    with STORAGE.open(bucket.url("a").encode()) as file:
        assert (file.read(3), file.tell()) == (b"012", 3)
        assert file.seek(-2, os.SEEK_END) == 8
        assert (file.read(10), file.read(10)) == (b"89", b"")
        bucket.put("a", b"abcdefghij")
        file.seek(0)
        with pytest.raises(Replaced) as raised:
            file.read(1)
    assert raised.value.filename == bucket.url("a")


def test_what_is_there_is_known(bucket: Bucket) -> None:
    tag = bucket.put("in/a", b"123")

    assert STORAGE.version(bucket.url("in/a"))[::2] == (3, tag)
    assert STORAGE.is_there(bucket.url("in/a"))
    assert STORAGE.is_there(bucket.url("in"))
    assert not STORAGE.is_there(bucket.url("i"))
    assert STORAGE.is_folder(bucket.url("in"))
    assert not STORAGE.is_folder(bucket.url("in/a"))


def test_a_listing_has_the_versions_that_reading_asks_for(bucket: Bucket) -> None:
    bucket.put("in/a", b"123")
    bucket.put("in/b", b"45")
    listing = STORAGE.files(bucket.url("in"))
    pages = [(names, list(listing.versions or ())) for _, names in listing]

    for name, version in (
        (name, version) for names, versions in pages for name, version in zip(names, versions, strict=True)
    ):
        url = bucket.url(f"in/{os.fsdecode(name)}")
        assert (version.size_bytes, version.tag) == STORAGE.version(url)[::2]
        with STORAGE.open(url, version=version) as file:
            assert file.read() == bucket.content(f"in/{os.fsdecode(name)}")


def test_what_is_missing_is_named_with_the_words_of_the_store(bucket: Bucket) -> None:
    with pytest.raises(Missing) as raised:
        STORAGE.open(bucket.url("nothing"))
    assert raised.value.filename == bucket.url("nothing")
    with pytest.raises(Missing, match="there is no such object"):
        STORAGE.version(bucket.url("nothing"))


def test_a_bucket_that_is_missing_is_told(bucket: Bucket, server: ObjectServer) -> None:
    if isinstance(server, SeaweedFS):
        pytest.skip("it makes buckets by itself")
    url = server.bucket_url + "-which-is-not-there"
    with pytest.raises(Missing, match=r"NoSuchBucket|ContainerNotFound"):
        create(f"{url}/a", b"x")
    with pytest.raises(Missing, match=r"NoSuchBucket|ContainerNotFound"):
        listed(f"{url}/a/b*")


def test_a_new_object_is_there_at_once_or_never(bucket: Bucket) -> None:
    content = os.urandom(SMALL_BYTES + 12_345)
    with STORAGE.create(bucket.url("out/rows.csv"), "job_a") as new:
        new.write(memoryview(content))
        new.sync()
        assert not STORAGE.is_there(bucket.url("out/rows.csv"))
        new.publish(())
    assert bucket.content("out/rows.csv") == content
    assert STORAGE.unfinished(bucket.url("out/rows.csv"), "job_a") == []


def test_an_empty_output_is_an_empty_object(bucket: Bucket) -> None:
    written(bucket, "out/rows.csv", b"")
    assert bucket.content("out/rows.csv") == b""


def test_an_object_of_somebody_else_is_never_replaced(bucket: Bucket) -> None:
    written(bucket, "out/rows.csv", b"mine", owner="job_b")
    with pytest.raises(Conflict, match="existing objects are never overwritten"):
        written(bucket, "out/rows.csv", b"new")
    bucket.put("out/other.csv", b"mine")
    with pytest.raises(Conflict):
        written(bucket, "out/other.csv", b"new")
    assert (bucket.content("out/rows.csv"), bucket.content("out/other.csv")) == (b"mine", b"mine")


def test_a_job_replaces_what_it_has_made_itself(bucket: Bucket) -> None:
    written(bucket, "out/rows.csv", b"first")
    written(bucket, "out/rows.csv", b"second")
    assert bucket.content("out/rows.csv") == b"second"


def test_of_many_writers_at_the_same_time_one_wins(bucket: Bucket, server: ObjectServer) -> None:
    def write(number: int) -> bool:
        try:
            written(bucket, "out/rows.csv", b"%d" % number, owner=f"job_{number}")
        except (Conflict, OSError):
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    assert any(won)
    if not isinstance(server, SeaweedFS):  # it looks for the name, and completes the upload later
        assert sum(won) == 1
    assert won[int(bucket.content("out/rows.csv"))]


def test_what_was_never_published_leaves_nothing(bucket: Bucket) -> None:
    with STORAGE.create(bucket.url("out/rows.csv"), "job_a") as new:
        new.write(memoryview(b"x"))
    assert bucket.keys() == []
    assert STORAGE.unfinished(bucket.url("out/rows.csv"), "job_a") == []


def test_what_a_dead_process_has_left_is_known_and_discarded(bucket: Bucket) -> None:
    url = bucket.url("out/rows.csv")
    left = STORAGE.create(url, "job_a")
    left.write(memoryview(b"x"))
    left.sync()
    unfinished = STORAGE.unfinished(url, "job_a")
    assert len(unfinished) == 1

    STORAGE.discard(unfinished)

    assert STORAGE.unfinished(url, "job_a") == []
    with pytest.raises(StoreError):
        left.publish(())
    assert bucket.keys() == []
    left.__exit__()


def test_wrong_credentials_are_told_in_the_words_of_the_store(
    bucket: Bucket, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not server.wrong:
        pytest.skip("it believes everybody")
    bucket.put("in/a")
    for name, value in server.wrong.items():
        monkeypatch.setenv(name, value)
    clients.forget()

    with pytest.raises(AccessDenied) as raised:
        STORAGE.open(bucket.url("in/a"))
    assert raised.value.filename == bucket.url("in/a")
    with pytest.raises(AccessDenied, match=r"SignatureDoesNotMatch|AuthorizationFailure"):
        listed(bucket.url("in/*"))


def test_after_a_fork_it_refuses_instead_of_hanging(bucket: Bucket) -> None:
    bucket.put("in/a")
    script = f"""
import os
from parallelrun_core.storage.objects import ObjectStorage
url = {bucket.url("in/a")!r}
ObjectStorage().version(url)
child = os.fork()
if not child:
    try:
        ObjectStorage().version(url)
    except RuntimeError as error:
        os._exit(42 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_folders_that_are_listed_at_the_same_time_give_the_same(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"in/d{folder}/{name}{number:02}" for folder in range(3) for name in ("f", "é ") for number in range(9)]
    for key in [*keys, "in/a", "in/z"]:
        bucket.put(key)
    alone = listed(bucket.url("in"))
    monkeypatch.setenv("PARALLELRUN_LIST_AT_ONCE", "3")
    monkeypatch.setattr(listing, "PAGE", 4)

    together = listed(bucket.url("in"))

    assert sorted(together) == sorted(alone)
    assert len(together) == len(keys) + 2


def test_a_copy_that_a_machine_without_threads_breaks_off_writes_nowhere_else(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()

    def starts(thread: threading.Thread) -> None:
        if thread.name.startswith("copy"):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    bucket.put("large", b"x" * (25 << 20))
    url = bucket.url("large")
    copying._pool.cache_clear()
    with (tmp_path / "file").open("wb") as file, (tmp_path / "other").open("wb") as other:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", starts)
            with pytest.raises(StoreAway, match="can't start new thread"):
                STORAGE.copy(url, STORAGE.version(url), file.fileno())
        os.dup2(other.fileno(), file.fileno())  # as when the file is closed, and its number given to the next one
        copying._pool().shutdown()
        assert os.fstat(other.fileno()).st_size == 0
    copying._pool.cache_clear()
    with (tmp_path / "file").open("wb") as file:
        STORAGE.copy(url, STORAGE.version(url), file.fileno())
    assert (tmp_path / "file").read_bytes() == b"x" * (25 << 20)
