"""Every operation of the client has a row in the table of the documentation, which lies beside this script, and each
that works by it is called by one of these scripts."""

import re
from pathlib import Path

from azure.ai.ml import MLClient
from azure.core.credentials import AccessToken


class Nobody:
    """A credential that is never asked."""

    def get_token(self, *_, **__):
        return AccessToken("", 0)


def rows(text):
    """The names of operations in the tables, each as `group.operation`; those that aren't refused; and the groups that
    are refused whole."""
    names, working, whole, groups = set(), set(), set(), []
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
            of_row, groups_of_name = set(), groups
            for name in quoted:
                group, _, verb = name.rpartition(".")
                groups_of_name = [group] if group else groups_of_name  # as in `compute.get`, `list`
                of_row.update(f"{each}.{verb}" for each in groups_of_name)
            names.update(of_row)
            if cells[1] != "refused":
                working.update(of_row)
    return names, working, whole


client = MLClient(Nobody(), "a", "b", "c")
named, working, refused = rows(Path("azure-client.md").read_text())
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

called = "".join(path.read_text() for folder in (".", "private", "provisioner") for path in Path(folder).glob("*.py"))
untried = [name for name in sorted(working) if f".{name}(" not in called]
assert not untried, untried
