"""`python helm.py`: one of Helm's actions, said in JSON on stdin; prints the release. Runs where Helm's SDK is.

It is Helm's own code (its Go SDK, which a package carries), so a chart is rendered, installed and remembered as by the
command `helm`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import helm_python


def main(asked: dict[str, Any]) -> None:
    """Do it, and wait until all that it makes is ready."""
    with helm_python.Config(kubeconfig_path=asked["kubeconfig"], namespace=asked["namespace"]) as helm:
        if asked["action"] == "uninstall":
            said = helm.uninstall(asked["release"], wait="legacy", timeout=asked["timeout_s"])
        else:
            said = getattr(helm, asked["action"])(
                asked["chart"], asked["release"], asked["values"], namespace=asked["namespace"], wait="legacy",
                timeout=asked["timeout_s"],
            )  # fmt: skip
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main(json.load(sys.stdin))
