"""Documents: what is read is plain data, of bounded size, that JSON can write."""

from __future__ import annotations

import json

from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.document import parse_mltable
from parallelrun_core.untrusted.document import load_document
from tests.fuzz.parser import FuzzedParser, check

_MOST_CHARACTERS = 10_000_000


def _read_yaml(data: bytes) -> None:
    document = load_document(data)
    if data[:1] in (b"{", b"["):
        check(len(json.dumps(document, default=str)) < _MOST_CHARACTERS, "a small document stands for a large one")


def _read_job(data: bytes) -> None:
    document = load_document(data)
    if isinstance(document, dict):
        document.pop("code", None)  # which names a folder of this machine
        read_job(document, folder=None)


def _read_mltable(data: bytes) -> None:
    parse_mltable(load_document(data), "MLTable")


PARSERS = [
    FuzzedParser(
        "yaml",
        [
            b"a: 1\nb: [x, 1.5, null, true]\n",
            b'{"a": {"b": [1, "\\ud83d\\ude00"]}}',
            b"a: &a [1]\nb: [*a, *a]\n<<: {c: 1}\n",
            b"- 1:30\n- 0x1F\n- .inf\n- 2001-01-01\n- !!binary aGk=\n",
            b"a: |\n  x\n  y\n? [1, 2]\n: 3\n",
            b"%YAML 1.1\n---\nx\n...\n",
        ],
        _read_yaml,
        (InvalidInput,),
    ),
    FuzzedParser(
        "job",
        [
            b"entry_script: score.py\ninputs: data\nmini_batch_size: 10\n",
            b"entry_script: s.py\ninputs:\n"
            b"  a: {path: x, transformations: [{read_delimited: {delimiter: ';'}}]}\nmini_batch_size: 1mb\n"
            b"error_threshold: 5\nenvironment: {requirements: [six]}\nretries: 3\nrun_invocation_timeout: 1m\n",
            b"type: parallel\ninputs: {d: {path: x, type: uri_folder}}\n"
            b"outputs: {o: {type: uri_file}}\ninput_data: ${{inputs.d}}\n"
            b"mini_batch_size: '5'\n"
            b"task: {type: run_function, code: ., entry_script: e.py, environment: azureml:a@latest,"
            b" program_arguments: --x ${{inputs.d}}, append_row_to: '${{outputs.o}}'}\n",
            b"type: pipeline\njobs:\n"
            b"  a: {type: command, command: echo ${{inputs.x}}, inputs: {x: 3}, environment: azureml:a:1}\n",
            b"notify: [{url: 'https://example.com', when: [failed]}]\nentry_script: s.py\n"
            b"inputs: [a, b]\npartition_keys: [k]\n",
        ],
        _read_job,
        (InvalidInput,),
    ),
    FuzzedParser(
        "mltable",
        [
            b"paths:\n- folder: .\ntransformations:\n- read_delimited:\n"
            b"    delimiter: ','\n    header: all_files_same_headers\n",
            b"paths: [{pattern: '*.parquet'}]\ntransformations: [read_parquet, {take: 5}, {keep_columns: [a, b]}]\n",
            b"paths: [{file: a.jsonl}]\ntransformations:\n- read_json_lines: {invalid_lines: drop, encoding: utf8}\n"
            b'- filter: \'col("a") > 1 and feature("b") == "x"\'\n'
            b"- extract_columns_from_partition_format: {partition_format: '{y:yyyy/MM}/x'}\n",
            b"paths: [{folder: x}]\ntransformations:\n- convert_column_types:\n"
            b"  - columns: a\n    column_type: {datetime: {formats: ['%Y-%m-%d']}}\n"
            b"- read_delta_lake: {timestamp_as_of: '2024-01-01T00:00:00Z'}\n",
        ],
        _read_mltable,
        (InvalidInput,),
    ),
]
