"""`python -m supply_chain.provenance FILE IMAGE…`: what images were made of, as an in-toto statement.

The statement is SLSA provenance (https://slsa.dev/spec/v1.0/provenance), without a signature: sign it with the key of
whoever releases, for example by `cosign attest --type slsaprovenance1 --predicate FILE IMAGE`.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from supply_chain import CLEAN

ROOT: Final = Path(__file__).parents[1]
_BASE: Final = re.compile(r"^ARG BASE_IMAGE=(\S+)@sha256:([0-9a-f]{64})$", re.MULTILINE)
_BUILD_TYPE: Final = "https://docs.docker.com/reference/dockerfile/"


def statement(digests: Mapping[str, str], revision: str, root: Path = ROOT) -> dict[str, Any]:
    """The statement about images.

    Args:
        digests: of each image, by its name, in hexadecimal.
        revision: of the sources, as Git names it.
        root: of the checkout that they were built of.
    """
    base = _BASE.search((root / "Dockerfile").read_text(encoding="utf-8"))
    if base is None:
        raise ValueError("the Dockerfile names no base image by its digest")
    locks = ("Dockerfile", "requirements/build.txt", "requirements/kit.txt", "requirements/runtime.txt")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"targets": sorted(digests)},
                "resolvedDependencies": [
                    {"name": "sources", "digest": {"gitCommit": revision}},
                    {"name": base[1], "digest": {"sha256": base[2]}},
                    *({"name": name, "digest": {"sha256": _sha256(root / name)}} for name in locks),
                ],
            },
            "runDetails": {"builder": {"id": "Makefile"}},
        },
    }


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main(argv: list[str]) -> int:
    """Write the statement; returns the exit code."""
    if _output("git", "status", "--porcelain", "--untracked-files=no"):
        print("provenance: files differ from the revision that the statement names", file=sys.stderr)
    ids = {name: _output("docker", "image", "inspect", "--format", "{{.Id}}", name) for name in argv[1:]}
    digests = {name: text.removeprefix("sha256:") for name, text in ids.items()}
    document = statement(digests, _output("git", "rev-parse", "HEAD"))
    Path(argv[0]).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"provenance: {argv[0]} says what {len(digests)} images were made of")
    return CLEAN


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
