"""Files that clients have uploaded: below `uploads/` of the root folder, where jobs may read them.

A blob is a file of the same path. It appears whole, and durable, or not at all. What belongs to it and is no content,
its metadata and the blocks of an upload that is not finished, is in a folder beside, which nobody else sees.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from parallelrun_api.azure.blobs.owners import UploadOwners
from parallelrun_api.people.person import CURRENT
from parallelrun_core.durable_files import replace_durably, sync_folder
from parallelrun_core.errors import Conflict, InvalidInput, NotFound
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER, make_store, uploads_of
from parallelrun_core.service import telemetry
from parallelrun_core.untrusted.paths import open_beneath

log = telemetry.logger()

MAX_BLOCKS: Final = 50_000
MAX_BODY_BYTES: Final = 260 << 20
"""Of one request: what the client uploads at once at most."""
_MAX_METADATA: Final = 8 << 10
_MAX_BLOCK_ID: Final = 200
_COUNT_EVERY_S: Final = 60.0
_ABANDONED_S: Final = 24 * 3600
_COPY_BYTES: Final = 1 << 20
_KEPT: Final = frozenset({"blocks", "metadata", "closed", "owners"})
"""What is beside the blobs and belongs to no upload that is going on."""
_FILE: Final = 0o644
_FOLDER: Final = 0o755
_WAY_THROUGH: Final = 0o711


class OverQuota(InvalidInput, code="over_quota", http_status=413):
    """There is no room for more uploads."""


class BlobStore:
    """The containers below a root folder. Safe to share between threads and processes.

    Args:
        max_bytes: what all uploads together may have; what other processes upload at the same time is seen a little
            later.
    """

    def __init__(self, root: Path, *, max_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self.folder: Final = uploads_of(root)
        self._beside: Final = root / "azure" / "blobs"
        self._owners: Final = UploadOwners(self.folder, self._beside / "owners")
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._used = 0
        self._reserved = 0
        self._counted_at = float("-inf")

    def file(self, container: str, blob: str) -> Path:
        """Return where a blob is, or would be."""
        return self.folder / container / blob

    def open(self, container: str, blob: str) -> int:
        """Open a blob; returns the file descriptor.

        Raises:
            NotFound: there is none.
        """
        return open_beneath(self.folder, f"{container}/{blob}")

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """A new file for a body that is being received; gone afterwards, unless `put` or `stage` have taken it."""
        self._make(self._beside)
        path = self._beside / f".new-{secrets.token_hex(8)}"
        try:
            with path.open("xb") as file:
                yield file
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def room(self, more_bytes: int) -> Iterator[None]:
        """Keep room for so much more while it is written; what is not written in the end is free again.

        Raises:
            OverQuota: there is none.
        """
        self.reserve(more_bytes)
        written = 0
        try:
            yield
            written = more_bytes
        finally:
            self.release(more_bytes, written=written)

    def reserve(self, more_bytes: int) -> None:
        """Keep room for so much more, until `release`.

        Raises:
            OverQuota: there is none.
        """
        if self._clock() > self._counted_at + _COUNT_EVERY_S:
            self.clean_up()
            used = _bytes_below(self.folder) + _bytes_below(self._beside)
            with self._lock:
                self._used, self._counted_at = used, self._clock()
        with self._lock:
            used_bytes = self._used + self._reserved
            if used_bytes + more_bytes > self._max_bytes:
                message = f"all uploads together may have {self._max_bytes:,} bytes, and have {used_bytes:,}"
                raise OverQuota.at("body", message, "remove what no job needs any more from the folder uploads")
            self._reserved += more_bytes

    def release(self, reserved: int, *, written: int) -> None:
        """End what `reserve` has begun.

        Args:
            written: how much of it is there now.
        """
        with self._lock:
            self._reserved -= reserved
            self._used += written

    def close(self, container: str) -> None:
        """Close a container: nothing in it changes from now on; durable when this returns."""
        folder = self._closed(container).parent
        self._make(folder)
        self._closed(container).touch(mode=PRIVATE_FILE)
        sync_folder(folder)

    def is_closed(self, container: str) -> bool:
        """Return whether nothing in a container changes any more."""
        return self._closed(container).exists()

    def check_not_closed(self, container: str) -> None:
        """Make sure that a container can still be written to.

        Raises:
            Conflict: it can't.
        """
        if self.is_closed(container):
            raise Conflict("These are the files of a version that there is: a version never changes.")

    def put(self, container: str, blob: str, file: IO[bytes]) -> None:
        """Make what was received a blob, in place of one of the same name. One of somebody else stays as it is.

        Raises:
            Conflict: a folder has that name, or a file the name of a folder above it; or the container is closed.
            NotAllowed: it is part of an upload of somebody else, which has no such file, or another one.
        """
        self.check_not_closed(container)
        file.flush()
        path = self.file(container, blob)
        if not self._owners.claim(container, blob):
            if not _is_same(file, path):
                raise self._owners.refusal(container, blob)
            return
        try:
            self._make_folders(path.parent)
            os.fchmod(file.fileno(), _FILE)
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise Conflict(f"{blob[:200]!r} is both a file and a folder.") from error
        sync_folder(path.parent)
        self._metadata(container, blob).unlink(missing_ok=True)

    # Uploads in blocks

    def stage(self, container: str, blob: str, block: str, file: IO[bytes]) -> None:
        """Put a block aside, for `commit`.

        Raises:
            InvalidInput: there are too many, or it has no id.
        """
        if not 0 < len(block) <= _MAX_BLOCK_ID:
            raise InvalidInput.at("blockid", f"an id of a block has 1 to {_MAX_BLOCK_ID} characters")
        folder = self._blocks(container, blob)
        self._make(folder)
        if sum(1 for _ in folder.iterdir()) >= MAX_BLOCKS:
            raise InvalidInput.at("blockid", f"a blob has at most {MAX_BLOCKS:,} blocks")
        file.flush()
        Path(file.name).replace(folder / _digest(block))

    def commit(self, container: str, blob: str, blocks: list[str]) -> None:
        """Make a blob of these blocks, in this order; again, as after an answer that was lost, it changes nothing.

        Raises:
            InvalidInput: one is missing, or there are too many.
        """
        if len(blocks) > MAX_BLOCKS:
            raise InvalidInput.at("blocklist", f"a blob has at most {MAX_BLOCKS:,} blocks")
        folder = self._blocks(container, blob)
        committed, list_digest = folder.with_suffix(".committed"), _digest("\0".join(blocks))
        paths = [folder / _digest(block) for block in blocks]
        # A block may be named many times: what that makes counts before any of it is written.
        try:
            size = sum(path.stat().st_size for path in paths)
            with self.room(size), self.incoming() as whole:
                for path in paths:
                    with path.open("rb") as part:
                        shutil.copyfileobj(part, whole, _COPY_BYTES)
                self.put(container, blob, whole)
        except FileNotFoundError as error:
            if committed.exists() and committed.read_text() == self._commit_of(container, blob, list_digest):
                return
            raise InvalidInput.at("blocklist", "a block of the list was not uploaded") from error
        if blocks:
            committed.write_text(self._commit_of(container, blob, list_digest))
        shutil.rmtree(folder, ignore_errors=True)

    def _commit_of(self, container: str, blob: str, blocks: str) -> str:
        """Return what tells a blob, as it is now, that was made of a list of blocks with this digest."""
        with suppress(FileNotFoundError):
            status = self.file(container, blob).stat(follow_symlinks=False)
            return f"{blocks} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
        return ""

    # Metadata

    def set_metadata(self, container: str, blob: str, metadata: dict[str, str]) -> None:
        """Replace the metadata of a blob.

        Raises:
            NotFound: there is no such blob.
            InvalidInput: it is too much.
        """
        os.close(self.open(container, blob))
        if not self._owners.claim(container, blob):
            return  # clients do so once they have uploaded what was there
        text = json.dumps(metadata).encode()
        if len(text) > _MAX_METADATA:
            raise InvalidInput.at("metadata", f"at most {_MAX_METADATA:,} bytes")
        path = self._metadata(container, blob)
        self._make(path.parent)
        replace_durably(path, text, mode=PRIVATE_FILE)

    def metadata(self, container: str, blob: str) -> dict[str, str]:
        """The metadata of a blob; empty if it has none, or somebody else has uploaded it: clients take metadata for a
        proof of what is there."""
        if not self._owners.trusts(container, blob):
            return {}
        try:
            value = json.loads(self._metadata(container, blob).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}

    def clean_up(self) -> None:
        """Remove what uploads that were given up have left."""
        for folder in (self._beside, self._beside / "blocks"):
            with suppress(FileNotFoundError):
                for path in folder.iterdir():
                    with suppress(FileNotFoundError):
                        if path.name not in _KEPT:
                            self._remove_if_old(path)

    def _remove_if_old(self, path: Path) -> None:
        if self._clock() - path.stat().st_mtime < _ABANDONED_S:
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()

    def _blocks(self, container: str, blob: str) -> Path:
        """The folder of the blocks that the person of this request has uploaded of a blob."""
        owner = CURRENT.get().owner
        return self._beside / "blocks" / _digest(f"{container}/{blob}" + (f"\0{owner}" if owner else ""))

    def _metadata(self, container: str, blob: str) -> Path:
        return self._beside / "metadata" / f"{_digest(f'{container}/{blob}')}.json"

    def _closed(self, container: str) -> Path:
        return self._beside / "closed" / container

    def _make(self, folder: Path) -> None:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)

    def _make_folders(self, folder: Path) -> None:
        """Create the folders of a blob, which workers pass through and can read."""
        if not self.folder.exists():
            make_store(self.folder)
            self.folder.chmod(_WAY_THROUGH)  # whatever the umask
        missing = [each for each in (folder, *folder.parents) if each.is_relative_to(self.folder) and not each.exists()]
        for each in reversed(missing):
            with suppress(FileExistsError):
                each.mkdir(mode=_FOLDER)
                each.chmod(_FOLDER)
                sync_folder(each.parent)


def check_is_file(fd: int, blob: str) -> None:
    """Make sure that what was opened is a file.

    Raises:
        NotFound: it isn't; the descriptor is closed.
    """

    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotFound(f"There is no blob {blob[:200]!r}.")


def _is_same(file: IO[bytes], path: Path) -> bool:
    """Return whether a file that was received is the same as one that is there."""
    try:
        return filecmp.cmp(file.name, path, shallow=False)
    except OSError:
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _bytes_below(folder: Path) -> int:
    total = 0
    for current, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(f"{current}/{name}", follow_symlinks=False).st_size
    return total
