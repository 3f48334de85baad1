"""Keys that no file can have, and endpoints that are no stores: each is refused in words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from parallelrun_core.storage.objects import ObjectStorage, clients
from parallelrun_core.storage.objects.trouble import StoreError
from parallelrun_core.storage.objects.uploads import s3
from parallelrun_core.storage.schemes import endpoint_variables
from tests.object_servers import GoogleStub, Moto, ObjectServer

STORAGE = ObjectStorage()
ENDPOINTS = endpoint_variables("s3")
PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>\n"
pytestmark = pytest.mark.integration


class _Console(BaseHTTPRequestHandler):
    """Answers everything with a page, as a console does."""

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": "text/html", "ETag": '"a"', "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT",
            "Content-Length": str(len(PAGE)),
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(PAGE)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Console) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        for name in ENDPOINTS:
            monkeypatch.delenv(name, raising=False)
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "eu-north-1",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        clients.forget()
        yield endpoint
        clients.forget()
        server.shutdown()


@pytest.mark.parametrize("url", ["s3://bucket/in", "s3://bucket/in/", "s3://bucket/in/*.csv", "s3://bucket"])
def test_an_endpoint_that_is_a_web_page_is_refused_in_words(console: str, url: str) -> None:
    with pytest.raises(StoreError, match=r"no object store.*check the endpoint"):
        list(STORAGE.files(url))


@pytest.fixture(scope="module")
def own_store() -> Iterator[Moto]:
    """A store for this module alone: who lists all of it meets the odd keys."""
    server = Moto()
    server.require()
    with server:
        yield server


@pytest.mark.parametrize("variable", ENDPOINTS)
def test_rows_are_published_at_the_endpoint_that_any_of_its_variables_names(
    own_store: Moto, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    for name, value in own_store.environment.items():
        monkeypatch.setenv(variable if name in ENDPOINTS else name, value)
    clients.forget()
    s3.forget()
    url = f"{own_store.bucket_url}/by{len(variable)}/rows.txt"
    with STORAGE.create(url, "job") as file:
        file.write(memoryview(b"1"))
        file.sync()
        file.publish(())
    with STORAGE.open(url) as published:
        assert published.read() == b"1"
    s3.forget()
    clients.forget()


@pytest.mark.parametrize("key", ["a//b", "./b", "a/../../b", "a\x01b"])
def test_a_key_that_can_not_be_a_path_is_refused_with_its_name(
    own_store: Moto, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    for name, value in own_store.environment.items():
        monkeypatch.setenv(name, value)
    clients.forget()
    folder = f"odd{len(key)}{ord(key[1])}"
    outside = own_store.outside()
    outside.put(f"{folder}/{key}", b"1")
    outside.put(f"{folder}/good/a", b"1")
    outside.close()
    with pytest.raises(StoreError, match=r"can't be the path of a file.*rename that object, or name folders"):
        list(STORAGE.files(f"{own_store.bucket_url}/{folder}"))
    assert [names for _, names in STORAGE.files(f"{own_store.bucket_url}/{folder}/good")] == [[b"a"]]


def test_a_key_with_a_newline_is_told_in_one_line_of_printable_characters(
    store: Callable[[type[ObjectServer]], ObjectServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = store(GoogleStub)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    clients.forget()
    outside = server.outside()
    outside.put("newline/a\nb\x01.csv", b"1")
    outside.close()
    with pytest.raises(StoreError, match=r"can't be the path of a file .*a\\nb\\x01\.csv.*rename that object") as error:
        list(STORAGE.files(f"{server.bucket_url}/newline"))
    assert str(error.value).isprintable()
    assert "Debug" not in str(error.value)
