"""A web server with https for git repositories and files, as hosts of packages are.

`https://localhost` and `https://127.0.0.1` are two hosts to whoever compares them, and one server here.
"""

from __future__ import annotations

import http.server
import os
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from parallelrun.azure.certificate import Certificate

_GIT = ("git", "-c", "protocol.file.allow=always", "-c", "user.name=t", "-c", "user.email=t@localhost")


class GitServer:
    """The server; `with` it.

    Args:
        folder: what it serves: repositories, and files.
        state: where its certificate is made.
    """

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        """The hosts and paths that were asked for."""
        self._certificate = Certificate(state)
        self._certificate.make()
        folder.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"server_of_git": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate.chain)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def variables(self) -> dict[str, str]:
        """What clients need to trust it, and to meet no configuration of this machine's user."""
        bundle = str(self._certificate.bundle)
        return {"SSL_CERT_FILE": bundle, "GIT_SSL_CAINFO": bundle, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def repository(self, name: str, files: dict[str, str], submodules: dict[str, str]) -> str:
        """Make a repository; returns its commit.

        Args:
            submodules: the URLs of other repositories, by their folders in this one; each has the content of `other`.
        """
        path = self.folder / name
        path.mkdir()
        for each, text in files.items():
            (path / each).write_text(text)
        _git(path, "init", "-q")
        modules = "".join(f'[submodule "{each}"]\n\tpath = {each}\n\turl = {url}\n' for each, url in submodules.items())
        if submodules:
            (path / ".gitmodules").write_text(modules)
        _git(path, "add", ".")
        for each in submodules:
            other = _git(self.folder / "other", "rev-parse", "HEAD")
            _git(path, "update-index", "--add", "--cacheinfo", f"160000,{other},{each}")
        _git(path, "commit", "-q", "-m", "first")
        _git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
        return _git(path, "rev-parse", "HEAD")


def _git(path: Path, *arguments: str) -> str:
    command = [*_GIT, "-C", str(path), *arguments]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


class _Handler(http.server.BaseHTTPRequestHandler):
    server_of_git: GitServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server_of_git.asked.append(f"{self.headers.get('Host', '')}{parts.path}")
        file = self.server_of_git.folder / parts.path.lstrip("/")
        if not file.is_file():
            self._ask_git(parts.path, parts.query)
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        self._ask_git(parts.path, parts.query)

    def _ask_git(self, path: str, query: str) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        variables = {
            "GIT_PROJECT_ROOT": str(self.server_of_git.folder), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(content)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "PATH": os.environ["PATH"],
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=content, capture_output=True, env=variables, check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200" if head else "404").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
