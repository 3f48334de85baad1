"""Archives of code that would write outside of their folder, follow links, or fill the disk."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from functools import partial

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target

_ENTRY = "def run(mini_batch):\n    return [open('linked').read()]\n"
Member = tuple[str | zipfile.ZipInfo, bytes]


def archive(*members: Member) -> bytes:
    """A zip with a good entry script, and these."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("entry.py", _ENTRY)
        for name, data in members:
            made.writestr(name, data)
    return packed.getvalue()


def _special(kind: int, content: bytes) -> Callable[[], bytes]:
    def make() -> bytes:
        info = zipfile.ZipInfo("linked")
        info.external_attr = (kind | 0o777) << 16
        return archive((info, content))

    return make


def _play(make: Callable[[], bytes], target: Target) -> str:
    with HttpUser(target.url, target.token) as user:
        spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/one"}}
        answer = user.post(spec, make())
        if answer.status_code == 202:
            user.client.post(f"/v1/jobs/{answer.json()['id']}:cancel")
            return "a job was made of it"
        return "" if answer.status_code in (400, 413, 422) else f"{answer.status_code}: {answer.text[:200]}"


EVIL: dict[str, Callable[[], bytes]] = {
    "that leads upwards": lambda: archive(("../../../tmp/escaped.py", b"x")),
    "with an absolute name": lambda: archive(("/tmp/escaped.py", b"x")),
    "with a link to the accounts": _special(stat.S_IFLNK, b"/etc/passwd"),
    "with a device": _special(stat.S_IFCHR, b""),
    "with a pipe that holds up whoever reads it": _special(stat.S_IFIFO, b""),
    "of 64 MiB of zeros": lambda: archive(("zeros", bytes(64 << 20))),
    "of more files than a job may have": lambda: archive(*((f"{n}.py", b"") for n in range(10_001))),
    "of two files in one place": lambda: archive(("a.py", b"1"), ("A.py", b"2")),
}
ATTACKS = [Attack(f"an archive {name}", partial(_play, make)) for name, make in EVIL.items()]
