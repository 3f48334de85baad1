"""`python -m parallelrun_api.openapi [FILE]` writes the contract with clients to `docs/openapi.json`.

The page's types of answers, `studio/src/api/types.ts`, are made from it, so they are written, too, if Node is there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from parallelrun_api.app import create_app
from parallelrun_api.context import build_context
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings

_COMMITTED: Final = Path("docs/openapi.json")


def main() -> None:
    """Write the document to the named file, or to docs/openapi.json."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else _COMMITTED
    app = create_app(build_context(ApiSettings()), Token())
    target.write_text(json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n")
    if target == _COMMITTED and (node := shutil.which("node")):
        subprocess.run([node, "generate.mjs"], cwd="studio", check=True)


if __name__ == "__main__":
    main()
