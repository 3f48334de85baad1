"""How agent and worker communicate. The agent imports this module, and nothing else of the worker.

The worker is started with the path of a JSON file, which holds a `WorkerConfig`.

Agent → worker: a SOCK_SEQPACKET socket, one packet for each frame, so that the agent can take back packets which
the worker has not read yet. End of file asks for an orderly end: `shutdown()`, then exit.

    delivery     kind (1 byte), mini-batch (8), payload: the paths, NUL between them (PATHS),
                 or the path of a file that holds them (PATHS_IN_FILE) when they don't fit in a packet;
                 JSON (DESCRIBED, DESCRIBED_IN_FILE) for anything but a list of files: see mini_batch.py

Worker → agent: a pipe of frames `kind (1 byte), length (4), payload`, each written at once and unbuffered.

    READY        payload: seconds that import and init() took (8 bytes, double)
    INIT_FAILED  payload: JSON {category, message, traceback}
    DONE         payload: the struct below
    FAILED       payload: the struct below, then JSON {category, message, traceback}
    STOPPED      payload: JSON {category, message, traceback} when shutdown() raised, else empty
    NOT_KEPT     payload: mini-batch (8 bytes), then the error: its rows, or its data, did not fit on the disk
    LOADED       payload: the struct below; only for DESCRIBED ones, before run() is called

All numbers are little-endian.
"""

from __future__ import annotations

import signal
import struct
from typing import Any, NamedTuple

PATHS = 1
PATHS_IN_FILE = 2
DESCRIBED = 3
DESCRIBED_IN_FILE = 4
OF_PATHS = (PATHS, PATHS_IN_FILE)
IN_FILE = (PATHS_IN_FILE, DESCRIBED_IN_FILE)
DELIVERY = struct.Struct("<BQ")
MAX_PACKET = 65_000
"""Larger packets would need a larger buffer for every read, and some kernels refuse them."""
IDLE_S = 1
"""After so long without a packet, a read of the socket fails, so that the worker writes what its log has gathered."""

READY = 1
INIT_FAILED = 2
DONE = 3
FAILED = 4
STOPPED = 5
NOT_KEPT = 6
LOADED = 7
HEAD = struct.Struct("<BI")
RESULT = struct.Struct("<QQQIIIIIdd")
"""mini-batch, offset and length of its rows in the part file, crc32, items, rows returned, line breaks inside
rows of text, rows whose text leaves out values, seconds in run(), CPU seconds.

`items`: how many the worker found; for a list of files the agent knows it as well."""
LOAD = struct.Struct("<QId")
"""mini-batch, items, seconds that reading or copying them took."""
SECONDS = struct.Struct("<d")
MINI_BATCH = struct.Struct("<Q")
MAX_PAYLOAD = 1 << 20
"""More than any frame of ours holds: a longer one was written by something else in the process."""

DUMP_STACKS = signal.SIGRTMAX - 1
"""At this signal a worker writes the stacks of all its threads to its stderr. No library is known to use it."""


class WorkerConfig(NamedTuple):
    """The configuration of one worker; docs/protocol.md has the same list."""

    job_id: str
    node: str
    process: str
    workers: int
    """How many workers the job may have on this node."""
    code: str
    """The folder of the job's code."""
    entry_script: str
    argv: list[str]
    inputs: str
    """Path of the file that describes the inputs."""
    output: dict[str, Any]
    """How rows are written: `format`, `separator`, `safe`."""
    logs: str
    output_dir: str
    working_dir: str
    log: str
    """The worker's own log; a profile is written beside it."""
    logging_level: str
    nice: int | None
    profiling_module: str
    exit_s: float
    """How long something that hangs at the end of the process is waited for."""
    stdout: int = -1
    stderr: int = -1
    """File descriptors for what the script prints; known when the worker is started."""
