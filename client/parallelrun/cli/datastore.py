"""`parallelrun datastore …`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from parallelrun.cli import completion
from parallelrun.cli.definitions import add_create, add_delete, add_list, add_show
from parallelrun.cli.server import Commands

if TYPE_CHECKING:
    from parallelrun.embedded.datastores import OwnDatastores
    from parallelrun.models import Datastore


def _own() -> OwnDatastores:
    from parallelrun.embedded.datastores import OwnDatastores

    return OwnDatastores()


datastore = Commands(
    lambda client: client.datastores,
    _own,
    help="Named places in object stores. Those of a server; without one, of `parallelrun run` on this machine.",
)


def _lines(datastore: Datastore) -> Iterator[tuple[str, object]]:
    yield from ((name, getattr(datastore, name)) for name in ("name", "type", "location"))
    yield "credentials", datastore.access
    for field, value in datastore.definition.items():
        if field == "credentials" and isinstance(value, dict):
            yield "secret", f"the file datastores/{value.get('secret')} in the folder of secrets of each node"
        elif field not in ("name", "type"):
            yield field, value


add_create(
    datastore,
    "Define a datastore, or define it anew, and print its name.",
    lambda defined, target: (
        f"{defined.location}, {target.location}\nname what is in it as azureml://datastores/{defined.name}/paths/PATH"
    ),
)
add_list(
    datastore,
    "List all datastores.",
    ["name", "type", "location", ("CREDENTIALS", lambda each: each.access)],
)
add_show(datastore, "Show one datastore.", lambda each: [*_lines(each)], completion.datastores)
add_delete(datastore, "Forget a datastore. What is in the store stays.", completion.datastores)
