"""The secrets with which services log in to Redis, one for each role: made, written, and put into a URL.

`python -m parallelrun_core.store.credentials FOLDER [--acl FILE]` makes those that are missing, `FOLDER/<role>/secret`
for each role, and writes the ACL file with their hashes; `parallelrun redis-acl` does the same.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from parallelrun_core.durable_files import replace_file, write_once
from parallelrun_core.errors import InvalidInput
from parallelrun_core.store.roles import Role, acl_file

_FILE: Final = "secret"
_BYTES: Final = 32


def new_secrets() -> dict[Role, str]:
    return {role: secrets.token_hex(_BYTES) for role in Role}


def login(url: str, user: str, secret: str) -> str:
    """The URL with this user and secret; unchanged without a secret, or if it names a user or a password itself."""
    scheme, slashes, rest = url.partition("://")
    if not secret or not slashes or "@" in urlsplit(url).netloc:
        return url
    return f"{scheme}://{quote(user, safe='')}:{quote(secret, safe='')}@{rest}"


def has_login(url: str) -> bool:
    """Return whether a URL of Redis has a user or a password in it, so that it may not be shown."""
    parts = urlsplit(url)
    return "@" in parts.netloc or any(name in ("username", "password") for name, _ in parse_qsl(parts.query, True))


def read_secret(path: Path) -> str:
    """The secret in a file that only its owner can read.

    Raises:
        InvalidInput: others can read it, it can't be read, or it is empty.
    """
    where = "redis_secret_file"
    try:
        mode = path.stat().st_mode
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise InvalidInput.at(where, f"{path} can't be read: {error}", "name a file that holds the secret") from error
    if not stat.S_ISREG(mode) or mode & 0o077:
        hint = f"chmod 600 {path}"
        raise InvalidInput.at(where, f"others than its owner can read {path} (mode {stat.S_IMODE(mode):o})", hint)
    if not text:
        raise InvalidInput.at(where, f"{path} is empty", "write the secret into it")
    return text


def prepare(folder: Path, acl: Path) -> dict[Role, Path]:
    """Make the secrets that are missing, and write the ACL file with the rules of this release; returns their files.

    Each is `<role>/secret`, so that a container can have its own without the others. What is there is kept, so this
    can be done at every start; who removes one and does it again has a new one.

    Raises:
        OSError: that can't be written.
        InvalidInput: a secret that is there can be read by others.
    """
    files = {role: folder / role / _FILE for role in Role}
    for path in files.values():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            write_once(path, f"{secrets.token_hex(_BYTES)}\n".encode(), mode=0o600)
    # Readable for the user of Redis: it has nothing but hashes of long random words.
    replace_file(acl, acl_file({role: read_secret(path) for role, path in files.items()}).encode(), mode=0o644)
    return files


def main() -> None:
    """Prepare the secrets of a cluster."""
    import argparse  # not for those who only log in

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--acl", type=Path, help="the ACL file; by default users.acl in the folder")
    options = parser.parse_args()
    os.umask(0o022)
    prepare(options.folder, options.acl or options.folder / "users.acl")


if __name__ == "__main__":
    main()
