"""Every operation of the client has a row in the table of the documentation, which lies beside this script."""

import re
from pathlib import Path

from azure.ai.ml import MLClient
from azure.core.credentials import AccessToken


class Nobody:
    """A credential that is never asked."""

    def get_token(self, *_, **__):
        return AccessToken("", 0)


def rows(text):
    """The names of operations in the tables, each as `group.operation`, and the groups that are refused whole."""
    names, whole, groups = set(), set(), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 3:
            continue
        quoted = re.findall(r"`([a-z_.]+)`", cells[0])
        if cells[0].startswith("of all others"):
            groups = []
        elif cells[0].startswith("of "):
            groups = quoted
        elif not groups:
            whole.update(quoted)
        else:
            for name in quoted:
                names.update([name] if "." in name else [f"{group}.{name}" for group in groups])
                if "." in name:
                    groups_of_row = name.split(".")[0]
            if any("." in name for name in quoted):  # `compute.get`, `list`
                names.update(f"{groups_of_row}.{name}" for name in quoted if "." not in name)
    return names, whole


client = MLClient(Nobody(), "a", "b", "c")
named, refused = rows(Path("azure-client.md").read_text())
missing = []
for group in sorted(name for name in dir(MLClient) if not name.startswith("_")):
    if not isinstance(getattr(MLClient, group), property):
        continue
    operations = getattr(client, group)
    if not type(operations).__name__.endswith("Operations") or group in refused:
        continue
    kind = type(operations)
    public = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    missing += [f"{group}.{name}" for name in public if f"{group}.{name}" not in named]
own = [name for name in dir(MLClient) if name[0].islower() and callable(getattr(MLClient, name))]
missing += [name for name in own if name not in refused]  # a row of the client itself is one of no group
assert not missing, missing
assert len(named) > 80, named
