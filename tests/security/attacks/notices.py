"""Receivers of notices that are inside: masters would send them requests that whoever has named them can't send."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, Final

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.target import ONE

_ENTRY: Final = "def run(mini_batch):\n    return mini_batch\n"
_JOB_S: Final = 60.0
_ADDRESSES: Final = (
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:7f00:1]", "[::7f00:1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:db8::5efe:7f00:1]", "[fe80::1]", "[fec0::1]",
)  # fmt: skip
"""This machine, by addresses of all forms."""
_NOBODYS: Final = ("0", "0x0", "00", "0.0", "0.0.0", "0x0.0x0", "0.0.0.0", "[::]", "[::ffff:0:0]")
"""This machine, by spellings of an address to which nobody sends notices, also where the operator allows all."""
_NAMES: Final = ("localhost", "LOCALHOST", "localhost.", "ip6-localhost", "x.localhost", "{hostname}")
"""This machine, by names."""


def _told(hosts: tuple[str, ...], target: Target) -> str:
    """Have jobs tell a server of this machine of their end, by each door that takes such a URL."""
    if getattr(target, "store", None) is None:
        raise NotPlayable("what runs there reaches no server of ours")
    with _listening() as (port, asked), HttpUser(target.url, target.token) as user:
        urls = [f"http://{host.format(hostname=socket.gethostname())}:{port}/hook" for host in hosts]
        jobs = [(url, _with_notice(user, target, url, is_short=number % 2 == 0)) for number, url in enumerate(urls)]
        for url, job_id in jobs:
            said = _said_of(user, job_id) if job_id else "not delivered"
            if "not delivered" not in said:
                return f"{url}: nobody has refused to tell it: {said}"
        return f"somebody was told: {asked[0]!r}" if asked else ""


def _with_notice(user: HttpUser, target: Target, url: str, *, is_short: bool) -> str:
    """Submit a job that is to tell of its end; returns its id, empty if it was refused."""
    spec: dict[str, Any] = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/{ONE}"}}
    answer = user.post({**spec, "notify": url if is_short else {"url": url}}, zip_of({"entry.py": _ENTRY}))
    assert answer.status_code in (202, 422), answer.text
    return str(answer.json()["id"]) if answer.status_code == 202 else ""


def _said_of(user: HttpUser, job_id: str) -> str:
    """What became of the notice of a job."""
    user.ended(job_id, _JOB_S)
    for _ in range(round(_JOB_S / 0.1)):
        answer = user.client.get(f"/v1/jobs/{job_id}/logs/sys/notices.txt")
        if answer.status_code == 200 and answer.text:
            return answer.text
        threading.Event().wait(0.1)  # a notice has no event
    return "nothing"


@contextmanager
def _listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server of this machine by IPv4 and IPv6: its port, and what it was asked."""
    asked: list[bytes] = []
    with closing(_bound()) as server:
        server.settimeout(0.2)
        ended = threading.Event()

        def answer() -> None:
            while not ended.is_set():
                with suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        connection.settimeout(5)
                        asked.append(connection.recv(1 << 12))
                        connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1], asked
        finally:
            ended.set()
            thread.join()


def _bound() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


ATTACKS: list[Attack] = [
    Attack("receivers of notices at addresses of this machine", partial(_told, _ADDRESSES), shared_only=True),
    Attack("receivers of notices at addresses that nobody has", partial(_told, _NOBODYS)),
    Attack("receivers of notices whose names lead to this machine", partial(_told, _NAMES), shared_only=True),
]
