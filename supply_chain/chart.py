"""`python -m supply_chain.chart CHART FOLDER`: checks the Helm chart, and packs it.

As `helm lint --strict` does, and with what it renders, by several sets of values, compared with the schemas of each
release of Kubernetes that kubernetes-validate knows, in which no field may be unknown. Exits with 1 and says what is
wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import helm_python
import kubernetes_validate
import yaml
from kubernetes_validate import utils

VALUES: Final[dict[str, dict[str, Any]]] = {
    "as it comes": {},
    "with what is there": {
        "api": {
            "existingSecret": "token",
            "hosts": ["pr.example.org"],
            "operators": ["anna"],
            "replicas": 2,
            "tokensSecret": "tokens",
        },
        "data": {"existingClaim": "jobs"},
        "image": {"pullSecrets": ["registry"]},
        "otel": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_SAMPLER_ARG": "0.5"},
        "provisioner": {"images": ["team/*"], "nodeSecret": "stores", "replicas": 2},
        "redis": {"existingSecret": "redis", "url": "rediss://redis.example.org:6379/0"},
        "storesSecret": "stores",
        "volumes": [{"claim": "inputs", "path": "/inputs", "readOnly": True}, {"claim": "outputs", "path": "/outputs"}],
    },
    "with as little as possible": {"networkPolicy": {"enabled": False}, "provisioner": {"replicas": 0}},
}
REFUSED: Final[dict[str, dict[str, Any]]] = {
    "root": {"user": 0},
    "a variable of somebody else": {"otel": {"PATH": "/bin"}},
    "a misspelled name": {"redis": {"adress": "redis"}},
    "a password in a URL": {"redis": {"url": "redis://:secret@redis/0"}},
}
_WARNING: Final = 2


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a chart."""
    report = helm_python.lint(path, {}, strict=True)
    yield from report["errors"]
    yield from (f"{each['path']}: {each['error']}" for each in report["messages"] if each["severity"] >= _WARNING)
    with helm_python.Chart.load(path) as chart:
        for what, values in VALUES.items():
            rendered = chart.render(values, name="pr", namespace="batch")
            documents = [document for name, text in rendered.items() if name.endswith(".yaml")
                         for document in yaml.safe_load_all(text) if document]  # fmt: skip
            yield from (f"{what}: {problem}" for document in documents for problem in _unfit(document))
        for what, values in REFUSED.items():
            try:
                chart.validate_schema(values)
            except helm_python.HelmValuesError:
                continue
            yield f"values.schema.json accepts {what}"


def _unfit(document: dict[str, Any]) -> Iterator[str]:
    """For which releases an object isn't fit, and why."""
    for version in utils.all_versions():
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            yield f"Kubernetes {version}, {document['kind']} {document['metadata']['name']}: {error}"


def main() -> int:
    """Check and pack; returns the exit code."""
    path, folder = map(Path, sys.argv[1:])
    unfit = list(problems(path))
    for problem in unfit:
        print(problem, file=sys.stderr)
    if not unfit:
        folder.mkdir(exist_ok=True)
        releases = sorted({version.partition("-")[0] for version in utils.all_versions()}, key=_order)
        print(f"{helm_python.package(path, destination=folder)}: fit for Kubernetes {releases[0]} to {releases[-1]}")
    return int(bool(unfit))


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    sys.exit(main())
