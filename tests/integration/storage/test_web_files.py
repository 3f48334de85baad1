"""Files of web servers, which may have no tags, no times, and no ranges."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import fetch
from parallelrun_core.storage.interface import Replaced
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.trouble import StoreAway, StoreError

pytestmark = pytest.mark.integration

SIZES = [1000, 2 << 20, 17 << 20]
"""In memory, into a file, and of so many bytes that an object of a store comes in several ranges."""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    says_when = True
    sent: ClassVar[list[str]] = []
    """The paths whose content was asked for."""

    def do_GET(self) -> None:
        self.sent.append(self.path)
        super().do_GET()

    def log_message(self, *args: Any) -> None:
        pass

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Last-Modified" or self.says_when:
            super().send_header(keyword, value)


class _Timeless(_Quiet):
    says_when = False


class Web:
    """A folder behind a plain server: it knows no tags and no ranges."""

    def __init__(self, folder: Path, handler: type[_Quiet]) -> None:
        self._folder = folder
        folder.mkdir()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        self._server, self._thread = server, threading.Thread(target=server.serve_forever, args=(0.05,))
        self._thread.start()

    def put(self, name: str, content: bytes, modified: int = 1_000_000_000) -> str:
        path = self._folder / name
        path.write_bytes(content)
        os.utime(path, (modified, modified))
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path / "web", getattr(request, "param", _Quiet))
    yield web
    web.close()


@pytest.fixture
def cache(tmp_path: Path) -> StageCache:
    return StageCache(tmp_path / "cache", 1 << 30)


@pytest.mark.parametrize("size", SIZES)
def test_a_server_without_ranges_gives_its_files(web: Web, cache: StageCache, tmp_path: Path, size: int) -> None:
    url, target = web.put("a", b"x" * size), tmp_path / "here"
    assert fetch(url, ObjectStorage().version(url), str(target), cache) == size
    assert target.read_bytes() == b"x" * size


def test_a_range_that_a_server_does_not_know_is_refused_for_good(web: Web) -> None:
    url = web.put("a", b"12345")
    with ObjectStorage().open(url) as file, pytest.raises(StoreError, match="Range request not supported") as refused:
        file.read(2)
    assert not isinstance(refused.value, StoreAway)


@pytest.mark.parametrize("size", SIZES)
def test_a_file_without_a_tag_is_told_by_its_time(web: Web, cache: StageCache, tmp_path: Path, size: int) -> None:
    url = web.put("a", b"1" * size)
    first = ObjectStorage().version(url)
    fetch(url, first, str(tmp_path / "first"), cache)
    web.put("a", b"2" * size, modified=1_000_000_001)

    assert fetch(url, ObjectStorage().version(url), str(tmp_path / "second"), cache) == size
    with pytest.raises(Replaced):
        fetch(url, first, str(tmp_path / "third"), StageCache(tmp_path / "another cache", 1 << 30))

    assert (tmp_path / "first").read_bytes() == b"1" * size
    assert (tmp_path / "second").read_bytes() == b"2" * size


def test_a_file_that_stays_the_same_is_fetched_once(web: Web, cache: StageCache, tmp_path: Path) -> None:
    url = web.put("one", b"1")
    _Quiet.sent.clear()
    for target in ("first", "second"):
        fetch(url, ObjectStorage().version(url), str(tmp_path / target), cache)
        assert (tmp_path / target).read_bytes() == b"1"
    assert _Quiet.sent == ["/one"]


@pytest.mark.parametrize("web", [_Timeless], indirect=True)
def test_a_file_of_which_nothing_is_known_is_fetched_each_time(web: Web, cache: StageCache, tmp_path: Path) -> None:
    url = web.put("a", b"1")
    version = ObjectStorage().version(url)
    fetch(url, version, str(tmp_path / "first"), cache)
    web.put("a", b"2")

    fetch(url, version, str(tmp_path / "second"), cache)

    assert [(tmp_path / name).read_bytes() for name in ("first", "second")] == [b"1", b"2"]
