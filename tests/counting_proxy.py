"""A proxy before a server that counts what comes from it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class CountingProxy:
    """Listens on a port of its own.

    Attributes:
        bytes: of all answers.
        requests: of HTTP/1.1.
    """

    def __init__(self, port: int) -> None:
        self.bytes = self.requests = 0
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            answers = threading.Thread(target=self._pass_answers, args=(server, client), daemon=True)
            answers.start()
            with suppress(OSError):
                while data := client.recv(1 << 16):
                    self.requests += data.count(b" HTTP/1.1\r\n")
                    server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                self.bytes += len(data)
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
