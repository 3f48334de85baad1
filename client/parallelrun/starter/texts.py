"""The texts that a first job is made of."""

from __future__ import annotations

import json
import re
from typing import Final

JOB: Final = """\
# Run it here:        parallelrun run job.yml --output out
# Or on a server:     parallelrun job create -f job.yml --stream
# Check it first:     parallelrun doctor job.yml
# Change one field:   parallelrun run job.yml --set mini_batch_size=5
name: {name}

code: src                       # this folder is sent along
entry_script: process.py        # has run(mini_batch)
{arguments}
{inputs}
{size}

{output}
# What may go wrong before the job does:
run_max_try: 3                  # tries of a mini-batch before it counts as failed
run_invocation_timeout: 60      # seconds that one call of run() may take
error_threshold: 0              # failed items that are still fine; -1: any number

# Packages that the script needs; each node installs them once.
# environment: {{pip: ["numpy>=2"]}}
"""

TABLE_INPUT: Final = """\
inputs:
  data:
    path: {where}
    transformations:            # how the table is read; more in docs/tables.md
      - {step}"""

ROWS_OUTPUT: Final = """\
append_row_file_name: results.txt   # one line for each row that run() returns, each exactly once
"""
ROWS_OUTPUT_OF_TABLE: Final = """\
append_row_file_name: results.csv   # one line for each row that run() returns, each exactly once
append_row_separator: ","
append_row_dataframe_header: true
"""
OWN_FILES_OUTPUT: Final = """\
output_action: summary_only     # what run() returns is only counted; the script writes its own files
outputs:
  results: {}                   # a folder
"""
OWN_FILES_ARGUMENT: Final = """\
program_arguments: --results ${{outputs.results}}
"""

FILES_TO_ROWS: Final = '''\
"""What is done with the files."""

from pathlib import Path


def init():
    """Called once in each worker, before its first mini-batch: load models here, not in run()."""


def run(mini_batch):
    """Called for each mini-batch, a list of paths; a path for which no row is returned counts as failed. It may be
    called again with the same paths, in another process."""
    return [row_of(Path(path)) for path in mini_batch]


def row_of(path):
    text = path.read_text(errors="replace")
    return f"{path.name}: {len(text.split())} words"
'''

FILES_TO_FILES: Final = '''\
"""What is done with the files."""

import argparse
from pathlib import Path


def init():
    """Called once in each worker, before its first mini-batch: load models here, not in run()."""
    global results
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    results = parser.parse_known_args()[0].results


def run(mini_batch):
    """Called for each mini-batch, a list of paths; a path for which nothing is returned counts as failed. It may be
    called again with the same paths, in another process."""
    return [write_result_of(Path(path)) for path in mini_batch]


def write_result_of(path):
    text = path.read_text(errors="replace")
    (results / path.name).write_text(text.upper())  # always the same name: if it is made again, it is replaced
    return path.name
'''

TABLE_TO_ROWS: Final = '''\
"""What is done with the rows of the table."""


def init():
    """Called once in each worker, before its first mini-batch: load models here, not in run()."""


def run(mini_batch):
    """Called for each mini-batch, a pandas DataFrame; rows that are missing in what is returned count as failed. It may
    be called again with the same rows, in another process."""
    return mini_batch.assign(columns_filled=mini_batch.notna().sum(axis=1))
'''

TABLE_TO_FILES: Final = '''\
"""What is done with the rows of the table."""

import argparse
from pathlib import Path


def init():
    """Called once in each worker, before its first mini-batch: load models here, not in run()."""
    global results
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    results = parser.parse_known_args()[0].results


def run(mini_batch, context):
    """Called for each mini-batch, a pandas DataFrame; rows that are missing in what is returned count as failed. It may
    be called again with the same rows, in another process."""
    table = mini_batch.assign(columns_filled=mini_batch.notna().sum(axis=1))
    # Always the same name: if it is made again, it is replaced.
    table.to_csv(results / f"part-{context.minibatch_index}.csv", index=False)
    return table
'''

SAMPLE_TEXTS: Final = {
    "ants": "An ant carries many times its own weight, and never asks how far it is.\n",
    "bees": "A bee that has found flowers dances, and the others know where to fly.\n",
    "cranes": "Cranes take turns at the head of the flock.\nNone of them leads all the way.\n",
    "dolphins": "Dolphins sleep with one half of the brain at a time.\n",
    "elephants": "Elephants hear each other through the ground.\n",
}
_PLAIN: Final = re.compile(r"(?:[A-Za-z_/]|\.{1,2}/)[\w./-]*")
_WORDS: Final = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def quoted(text: str) -> str:
    """A text as a job file has it: with quotes, unless it can't be taken for anything else without them."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def reading_step(where: str) -> str:
    """The step that reads a table with this name."""
    from parallelrun_core.mltable.formats import step_for  # most commands need none of it

    if where.lower().endswith(".tsv"):
        return 'read_delimited: {delimiter: "\\t"}'
    usual = "read_json_lines" if where.lower().endswith(".json") else "read_delimited"
    return f"{step_for(where) or usual}: {{}}"
