"""Frames between agent and worker. The agent imports this module, and nothing else of the worker.

The worker is started with the path of a JSON file, which holds a `WorkerConfig`.

Agent → worker: a pipe of tickets, one for each delivery, and memory that both have mapped: the ring, which holds
their payloads. A ticket is written and read as a whole, so the agent can take back those that the worker has not read
yet, by reading them itself. End of file asks for an orderly end: `shutdown()`, then exit.

    ticket       kind (1 byte), mini-batch (8), position (8) and length (4) of the payload in the ring
    payload      the paths, NUL between them (PATHS), or the path of a file that holds them (PATHS_IN_FILE) when they
                 are long; JSON (DESCRIBED, DESCRIBED_IN_FILE) for anything but a list of files: see mini_batch.py
                 To run the items apart (APART, APART_IN_FILE), a line of JSON comes before it: see isolation.py
    FLUSH        a ticket without a payload, when nothing has come for a while: the worker writes what its log has
                 gathered
    WIDTH        a ticket without a payload: in place of a mini-batch, how many of them to run at once from now on

A position counts all bytes that were ever put into the ring; a payload lies at `ring_place(position)`, in one piece.
The ring begins with the position up to which the worker needs no payload any more (8 bytes), and the cost that its
script has reported in all, in billionths of a US dollar (8 bytes): what was written there is known even if the worker
is killed a moment later.

Worker → agent: a pipe of frames `kind (1 byte), length (4), payload`, each written at once and unbuffered.

    READY        payload: seconds that import and init() took (8 bytes, double)
    INIT_FAILED  payload: JSON {category, message, traceback}
    DONE         payload: RESULT, USE
    FAILED       payload: RESULT, USE, then JSON {category, message, traceback}
    STOPPED      payload: JSON {category, message, traceback} when shutdown() raised, else empty
    NOT_STORED   payload: mini-batch (8 bytes), then the error: its rows, or its data, did not fit on the disk
    LOADED       payload: LOAD; only for DESCRIBED ones, before run() is called
    SET_ASIDE    payload: SET_ASIDE_FILES; only before DONE, and if there are any
    ITEMS_FAILED payload: mini-batch (8 bytes), then JSON [[first, items, message], …]: items for which run() has
                 returned an ItemError; only before DONE, and if there are any
    WAITED       payload: mini-batch (8 bytes), then JSON {"waited_s": S, "limits": {NAME: S}}: the seconds for which it
                 has waited for permits of limits, all together without the times that overlap, and those of each; only
                 before DONE or FAILED, and if it has asked for any
    ALIVE        no payload: the event loop of a worker with several mini-batches in flight isn't blocked
    WARNED       payload: mini-batch (8 bytes), then JSON [[…], …] (data_warnings.py); only before DONE or FAILED, and
                 if there are any
    PART         payload: PART_EVENT, then, of a PART_FAILED, JSON {category, message, traceback}: before and after each
                 call of run() for a part of a mini-batch whose items are run apart

All numbers are little-endian.
"""

from __future__ import annotations

import signal
import struct
from typing import Any, NamedTuple, get_type_hints

PATHS = 1
PATHS_IN_FILE = 2
DESCRIBED = 3
DESCRIBED_IN_FILE = 4
FLUSH = 5
APART = 6
APART_IN_FILE = 7
WIDTH = 8
WITHOUT_PAYLOAD = (FLUSH, WIDTH)
OF_PATHS = (PATHS, PATHS_IN_FILE)
IN_FILE = (PATHS_IN_FILE, DESCRIBED_IN_FILE, APART_IN_FILE)
BY_FILE = {PATHS: PATHS_IN_FILE, DESCRIBED: DESCRIBED_IN_FILE, APART: APART_IN_FILE}
"""The kinds of tickets for payloads that are too long for the ring."""
OF_APART = (APART, APART_IN_FILE)
TICKET = struct.Struct("<BQQI")
POSITION = struct.Struct("<Q")
RING_BYTES = 1 << 18
"""For payloads; a power of two."""
COST = struct.Struct("<q")
COST_AT = POSITION.size
_RING_HEAD = POSITION.size + COST.size
RING_SIZE = _RING_HEAD + RING_BYTES
MAX_PAYLOAD = RING_BYTES // 4
"""A longer payload of a delivery goes by way of a file."""

READY = 1
INIT_FAILED = 2
DONE = 3
FAILED = 4
STOPPED = 5
NOT_STORED = 6
LOADED = 7
SET_ASIDE = 8
WARNED = 9
PART = 10
ALIVE = 11
ITEMS_FAILED = 12
WAITED = 13
HEAD = struct.Struct("<BI")
_RESULT_LAYOUT = {
    "mini_batch": "Q",
    # Where its rows are in the part file
    "offset": "Q", "length": "Q", "crc": "I",
    # How many: items that the worker counted, rows that run() returned, line breaks inside rows of text, rows whose
    # text leaves out values
    "items": "I", "rows": "I", "line_breaks": "I", "shortened": "I",
    # How long: run(), CPU
    "run_s": "d", "process_s": "d",
}  # fmt: skip
RESULT_FIELDS = tuple(_RESULT_LAYOUT)
RESULT = struct.Struct("<" + "".join(_RESULT_LAYOUT.values()))
"""The result of a try: the values of `RESULT_FIELDS`. For a list of files, the agent knows the items as well."""
LOAD = struct.Struct("<QId")
"""mini-batch, items, seconds that reading or copying them took."""
SET_ASIDE_FILES = struct.Struct("<QI")
"""mini-batch, files that its run() has written for outputs in stores."""
PART_EVENT = struct.Struct("<QIIBd")
"""mini-batch, first item and number of items of the part, event, seconds that run() took."""
PART_BEGUN, PART_DONE, PART_FAILED = range(3)
SECONDS = struct.Struct("<d")
MINI_BATCH = struct.Struct("<Q")
MAX_FRAME = 1 << 20
"""More than the payload of any frame of ours: a longer one was written by something else in the process."""

DUMP_STACKS = signal.SIGRTMAX - 1
"""At this signal a worker writes the stacks of all its threads to its stderr. No library is known to use it."""

SHOW_STACK = signal.SIGRTMAX - 2
"""At this one it writes that of its main thread to `WorkerConfig.stacks`, and goes on."""
SHOW_THREADS = signal.SIGRTMAX - 3
"""At this one it writes those of all threads there, once its main thread runs Python, if they are wanted then."""
STACKS_BYTES = 128 << 10
"""How long they may be. The byte after them says whether they are wanted, or complete."""
STACKS_WANTED, STACKS_COMPLETE = b"w", b"c"


class Use(NamedTuple):
    """Resources that a try used: each measurement with its type, and a default for when it is unknown.

    Those who read it have the same fields: `Use` in `core/wire/outcome.py`.
    """

    peak_bytes: int = 0
    """The most memory that the process had; 0: unknown."""
    read_bytes: int = -1
    """Bytes that it read by system calls; -1: unknown."""
    minor_faults: int = -1
    """Pages of memory that it was given without reading a disk; -1: unknown, as in the next three."""
    major_faults: int = -1
    """Pages that had to be read from a disk first."""
    voluntary_switches: int = -1
    """Times that a thread of it waited: for a disk, a lock, another process."""
    involuntary_switches: int = -1
    """Times that a thread of it had to leave its CPU to others."""


USE = struct.Struct("<" + "".join({int: "q", float: "d"}[kind] for kind in get_type_hints(Use).values()))
_HEAD_AND_RESULT = struct.Struct(HEAD.format + RESULT.format[1:])
_RESULT_SIZE = RESULT.size


def pack_use(use: Use) -> bytes:
    """For `pack_result`. What many tries have in common is packed once."""
    return USE.pack(*use)


def pack_result(
    kind: int, rest: bytes, *, mini_batch: int, offset: int = 0, length: int = 0, crc: int = 0,
    items: int, rows: int = 0, line_breaks: int = 0, shortened: int = 0, run_s: float, process_s: float,
) -> bytes:  # fmt: skip
    """A whole frame, DONE or FAILED. By name, because two numbers the wrong way round would be a result as well.

    Args:
        rest: what was used, from `pack_use`; then, in a FAILED one, the error.
    """
    return _HEAD_AND_RESULT.pack(
        kind, _RESULT_SIZE + len(rest), mini_batch, offset, length, crc, items, rows, line_breaks, shortened,
        run_s, process_s,
    ) + rest  # fmt: skip


def ring_place(position: int) -> int:
    """Return where in the ring this position is."""
    return _RING_HEAD + position % RING_BYTES


class WorkerConfig(NamedTuple):
    """The configuration of one worker; docs/protocol.md has the same list."""

    job_id: str
    node: str
    process: str
    workers: int
    """Number of workers the job may have on this node."""
    code: str
    """The folder of the job's code."""
    entry_script: str
    argv: list[str]
    inputs: str
    """Path of the file that describes the inputs."""
    schemas: list[str]
    """Path of the file with the columns of each of them, if it is a text table."""
    output: dict[str, Any]
    """The form in which rows are written: `format`, `separator`, `safe`."""
    logs: str
    output_dir: str
    uploaded: list[str]
    """Folders of its own that stand for outputs in stores; none if there are no such outputs."""
    aside: str
    """The folder where what a mini-batch has written there is put, for the agent."""
    working_dir: str
    log: str
    """The worker's own log; a profile is written beside it."""
    errors: str
    """Gets a copy of the warnings and errors in it."""
    logging_level: str
    nice: int | None
    profiling_module: str
    exit_s: float
    """Seconds that something that hangs at the end of the process is waited for."""
    masked: list[str]
    """The texts that are replaced by `***` in reports of errors, the longest first."""
    job: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    """The properties of its job that a script may ask for: `name`, `tags`, `parent`, `inputs` and `models`, with their
    paths here."""
    command: str = ""
    """The shell command that runs in place of an entry script; empty: there is one."""
    in_flight: int = 1
    """The most mini-batches that its run() may have at once."""
    in_flight_by: str = "async"
    """The way in which it has several: `async`, `threads` or `streaming`."""
    run_s: float = 0.0
    """Seconds after which the worker itself cancels a run(); 0: it doesn't, the agent ends the worker."""
    permits: int = -1
    """Descriptor of the socket for permits (permits.py); -1: its job has no limits."""
    stdout: int = -1
    stderr: int = -1
    """File descriptors for what the script prints; known when the worker is started."""
    stacks: int = -1
    """Descriptor for the stacks of all threads, when they are asked for; -1: they won't be."""


TEMPLATE = "template"
"""The first argument of a process that is no worker, but forks them (templates/template.py)."""
FORKS = b"ready"
"""Template → agent: it can be forked; anything else says why it can't."""
OUTDATED = b"packages have changed"
"""Template → agent: it ends, and another one would have what is installed now."""
GO = b"go"
"""A forked worker → agent: it is the agent's child. Agent → worker: it may begin."""
MAX_ORDER = 1 << 16
MOST_DESCRIPTORS = 16


class ForkOrder(NamedTuple):
    """The order for a worker, which comes with its descriptors: its socket, stdout, stderr, and others."""

    arguments: list[str]
    """The arguments of a worker that is started by itself (`__main__.py`)."""
    descriptors: list[int]
    """The numbers that the other descriptors are to have."""
    folder: str
    """The working folder of the worker."""
    variables: dict[str, str]
    """Environment variables that the template lacks."""
