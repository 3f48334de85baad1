"""Names of Services, for a Kubernetes that has no DNS of its own, as that of a test has none.

A cluster's DNS is told to each Pod by its kubelet. Here a webhook of admission tells it, for one namespace, and the
server answers with the addresses of Pods: there is nothing either that would carry a connection from a Service to them.
"""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

Addresses = Callable[[str], list[str]]
"""The addresses behind the Service of this name."""

_DNS_PORT: Final = 53
_A, _IN = 1, 1
_ANSWER, _NO_SUCH_NAME = 0x8580, 0x8583
_TTL_S: Final = 1


@contextmanager
def named(namespace: str, address: str, folder: Path, addresses: Addresses) -> Iterator[dict[str, Any]]:
    """Serve the names of a namespace's Services; gives the webhook that tells its Pods, for the cluster to know.

    Args:
        address: of this machine, as Pods reach it.
        folder: for the webhook's key and certificate.
    """
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=names",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with _Names((address, _DNS_PORT), _Question) as names, ThreadingHTTPServer(("127.0.0.1", 0), _Hook) as hook:
        names.namespace, names.addresses = namespace, addresses
        hook.socket = trust.wrap_socket(hook.socket, server_side=True)
        _Hook.patch = _patch(namespace, address)
        for server in (names, hook):
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield _webhook(namespace, hook.server_port, (folder / "cert.pem").read_bytes())
        finally:
            names.shutdown()
            hook.shutdown()


def _webhook(namespace: str, port: int, trusted: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"names-{namespace}"},
        "webhooks": [{
            "name": "names.parallelrun.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(trusted).decode()},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchLabels": {"parallelrun.test": namespace}},
        }],
    }  # fmt: skip


def _patch(namespace: str, address: str) -> str:
    ends = ("svc.cluster.local", "cluster.local")
    given = {"nameservers": [address], "searches": [f"{namespace}.{ends[0]}", *ends],
             "options": [{"name": "ndots", "value": "5"}]}  # fmt: skip
    steps = [{"op": "add", "path": "/spec/dnsPolicy", "value": "None"},
             {"op": "add", "path": "/spec/dnsConfig", "value": given}]  # fmt: skip
    return base64.b64encode(json.dumps(steps).encode()).decode()


class _Hook(BaseHTTPRequestHandler):
    """Answers each review of a Pod with what is to be changed."""

    patch = ""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": self.patch}
        body = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Names(socketserver.ThreadingUDPServer):
    allow_reuse_address = True
    daemon_threads = True
    namespace: str
    addresses: Addresses


class _Question(socketserver.BaseRequestHandler):
    """One question of a resolver: a header of 12 bytes, the labels of a name, its type and class (RFC 1035)."""

    server: _Names

    def handle(self) -> None:
        packet, socket = self.request
        labels, at = [], 12
        while size := packet[at]:
            labels.append(packet[at + 1 : at + 1 + size].decode())
            at += 1 + size
        question = packet[12 : at + 5]
        kind = struct.unpack("!H", packet[at + 1 : at + 3])[0]
        is_ours = [label.lower() for label in labels[1:]] == [self.server.namespace, "svc", "cluster", "local"]
        there = self.server.addresses(labels[0].lower()) if is_ours else []
        given = there if kind == _A else []
        head = struct.pack("!2sHHHHH", packet[:2], _ANSWER if there else _NO_SUCH_NAME, 1, len(given), 0, 0)
        record = struct.pack("!HHHIH", 0xC00C, _A, _IN, _TTL_S, 4)
        answers = b"".join(record + bytes(map(int, each.split("."))) for each in given)
        socket.sendto(head + question + answers, self.client_address)
