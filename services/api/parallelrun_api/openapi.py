"""`python -m parallelrun_api.openapi [FILE]` writes the contract with clients to `docs/openapi.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from parallelrun_api.app import create_app
from parallelrun_api.context import build_context
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings


def main() -> None:
    """Write the document to the named file, or to docs/openapi.json."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/openapi.json")
    app = create_app(build_context(ApiSettings()), Token())
    target.write_text(json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
