"""`parallelrun redis-acl`: the users that a Redis of one's own needs for the services."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def redis_acl(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the passwords, one file each; those in it are kept.")
    ],
) -> None:
    """Make the services' users for a Redis server. Prints an ACL file, and writes the passwords into files.

    Give each service its own: --redis-secret-file DIR/ROLE/secret.
    """
    from parallelrun.cli.output import say
    from parallelrun_core.store.credentials import prepare

    acl = folder / "users.acl"
    files = prepare(folder, acl)
    print(acl.read_text(), end="")
    for role, path in files.items():
        say(f"parallelrun-{role}:  --redis-secret-file {path}")
