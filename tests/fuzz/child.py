"""`python tests/fuzz/child.py NAME FOLDER ARGUMENT…`: one parser in a process with Atheris, whose arguments follow.

It has the packages of this checkout's own environment beside those of the environment that it runs in. The folder keeps
what has been reached, from one run to the next.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("parallelrun_core", "parallelrun_master", "parallelrun_worker", "parallelrun_api", "parallelrun_agent")
THEIRS = ("packaging", "python_multipart")


def main(name: str, folder: str, *arguments: str) -> None:
    """Fuzz; ends the process."""
    import atheris

    with atheris.instrument_imports(include=[*OURS, *THEIRS], enable_loader_override=False):
        from tests.fuzz.parsers import PARSERS
    parser = PARSERS[name]
    for number, seed in enumerate(parser.seeds):
        Path(folder, f"seed-{number}").write_bytes(seed)
    found = next(each.partition("=")[2] for each in arguments if each.startswith("-artifact_prefix="))

    def try_input(data: bytes) -> None:
        try:
            parser.try_input(data)
        except BaseException:  # of those that Python raises, Atheris has lost some
            Path(f"{found}input-{sha256(data).hexdigest()[:16]}").write_bytes(data)
            raise

    atheris.Setup([sys.argv[0], *arguments, folder], try_input)
    atheris.Fuzz()


if __name__ == "__main__":
    paths = (ROOT / ".venv" / "lib").glob("python3*/site-packages")
    sys.path[1:1] = [str(ROOT), *map(str, paths), *(str(ROOT / part) for part in ("client", "shared"))]
    sys.path[1:1] = [str(path) for path in (ROOT / "services").iterdir() if path.is_dir()]
    main(*sys.argv[1:])
