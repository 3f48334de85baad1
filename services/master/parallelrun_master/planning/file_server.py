"""Reads files of stores for a child process of a leader, which has neither our libraries nor a way to the stores.

One channel for each child; its end ends it. What is asked and answered is in `parallelrun_worker/tables/elsewhere.py`.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, Final

from parallelrun_core.storage.interface import Replaced, read_at, size_of, unpacked
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import FileVersion

_MOST_OPEN: Final = 2
"""Each may have some MiB that were fetched ahead. Children read one file after the other."""


class FileServer:
    """Used in a `with` statement.

    Args:
        rule: which files may be opened; None: any.
        versions: those that were listed; of other files, all reads are of the version that the first one meets.

    Attributes:
        fd: the child's end, to be passed on to it.
    """

    def __init__(self, rule: PathRule | None = None, versions: Mapping[str, FileVersion] | None = None) -> None:
        self._rule = rule
        self._versions = {path: unpacked(version) for path, version in (versions or {}).items()}
        self._files: OrderedDict[str, BinaryIO] = OrderedDict()
        self._own, self._of_child = socket.socketpair()
        self.fd = self._of_child.fileno()

    def __enter__(self) -> FileServer:
        threading.Thread(target=self._serve, name="file-server", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pass_on()
        with suppress(OSError):  # the child has ended it
            self._own.shutdown(socket.SHUT_RDWR)

    def pass_on(self) -> None:
        """The child has its end now, and alone."""
        self._of_child.close()

    def _serve(self) -> None:
        try:
            with self._own, self._own.makefile("rwb") as channel:
                for line in channel:
                    path, start, size = json.loads(line)
                    try:
                        file = self._file(path)
                        data = read_at(file, start, size) if size else b""
                        answer: list[object] = [len(data), size_of(file)]
                    except Replaced:
                        data, answer = b"", [errno.ESTALE, "it has been replaced since it was listed", path]
                    except Exception as error:
                        code = error.errno if isinstance(error, OSError) else None
                        words = (isinstance(error, OSError) and error.strerror) or str(error)
                        data, answer = b"", [code or errno.EIO, words, path]
                    channel.write(json.dumps(answer).encode() + b"\n")
                    channel.write(data)
                    channel.flush()
        except OSError:
            pass  # the child has ended
        finally:
            while self._files:
                self._files.popitem()[1].close()

    def _file(self, path: str) -> BinaryIO:
        if path in self._files:
            self._files.move_to_end(path)
            return self._files[path]
        storage = storage_of(path)
        if path not in self._versions:
            self._versions[path] = storage.version(path)
        while len(self._files) >= _MOST_OPEN:
            self._files.popitem(last=False)[1].close()
        name = os.fsencode(path)
        self._files[path] = storage.open(name, self._rule, version=self._versions[path], is_streamed=True)
        return self._files[path]
