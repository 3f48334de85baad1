"""The parsers, by what they read.

- `requirements.py`: lines of requirements files, conda environments
- `documents.py`: YAML and JSON, job specs, MLTable files
- `tables.py`: delimited text, JSON lines, Parquet, Avro, each cut in two ways
- `archives.py`: zips of code
- `web.py`: URLs, forms, cookies
- `frames.py`: answers of worker processes
"""

from __future__ import annotations

from typing import Final

from tests.fuzz.parser import FuzzedParser
from tests.fuzz.parsers import archives, documents, frames, requirements, tables, web

PARSERS: Final[dict[str, FuzzedParser]] = {
    parser.name: parser
    for module in (requirements, documents, tables, archives, web, frames)
    for parser in module.PARSERS
}
