"""What agent and worker say to each other. The agent imports this module, and nothing else of the worker.

Agent → worker: a SOCK_SEQPACKET socket, one packet for each frame, so that the agent can take packets back which
the worker has not read yet. End of file asks for an orderly end: `shutdown()`, then exit.

    delivery     kind (1 byte), mini-batch (8), payload: the paths, NUL between them (PATHS),
                 or the path of a file that holds them (PATHS_IN_FILE) when they don't fit in a packet;
                 JSON (DESCRIBED, DESCRIBED_IN_FILE) for what is more than a list of files: see mini_batch.py

Worker → agent: a pipe of frames `kind (1 byte), length (4), payload`, each written at once and unbuffered.

    READY        payload: seconds that import and init() took (8 bytes, double)
    INIT_FAILED  payload: JSON {category, message, traceback}
    DONE         payload: the struct below
    FAILED       payload: the struct below, then JSON {category, message, traceback}
    STOPPED      payload: JSON {category, message, traceback} when shutdown() raised, else empty
    NOT_KEPT     payload: mini-batch (8 bytes), then the system's words: its rows, or its data, did not fit on the disk
    LOADED       payload: the struct below; only for DESCRIBED ones, before run() is called

All numbers are little-endian.
"""

import signal
import struct

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
"""When nothing has come for so long, the socket lets the worker do what it had put off: writing its log."""

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

`items` is what the worker found; for a list of files the agent knows it as well."""
LOAD = struct.Struct("<QId")
"""mini-batch, items, seconds that reading or copying them took."""
SECONDS = struct.Struct("<d")
MINI_BATCH = struct.Struct("<Q")
MAX_PAYLOAD = 1 << 20
"""More than any frame of ours holds: a longer one was written by somebody else."""

DUMP_STACKS = signal.SIGRTMAX - 1
"""At this signal a worker writes the stacks of all its threads to its stderr. No library is known to use it."""
