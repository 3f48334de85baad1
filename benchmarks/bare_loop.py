"""The least that one mini-batch in flight costs: the hops of `one_by_one`, and nothing else.

A loop over two workers and Redis, started as an embedded cluster starts it. Whenever both workers have answered, one
call of a script ends their leases, reports what they did, and leases the next two. Each writes its rows to a file
before it answers. There is no journal, no sync, no leader and no output.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import tempfile
import time
import zlib
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hiredis import Reader, pack_command

from benchmarks.measure import Figures, cpu_seconds
from benchmarks.rivals.work import EACH, WORKERS, echo, lines, mini_batches_of
from parallelrun.embedded.redis_server import RedisServer, find_binary

_TURN = """
if #ARGV > 2 then
  local ids = {unpack(ARGV, 3)}
  redis.call('HDEL', 'leases', unpack(ids))
  redis.call('XADD', 'outcomes', '*', 'r', ARGV[2])
  redis.call('HDEL', 'messages', unpack(ids))
end
local ids = redis.call('LPOP', 'ready', ARGV[1])
if not ids then return {} end
local leases = {}
for i = 1, #ids do leases[2 * i - 1], leases[2 * i] = ids[i], 'session' end
redis.call('HSET', 'leases', unpack(leases))
return {ids, redis.call('HMGET', 'messages', unpack(ids))}
"""
_ANSWER = struct.Struct("<QQII")


def run_bare_loop(folder: Path, mini_batches: int) -> Figures:
    """One round. The clock runs from the first lease to the last report."""
    with tempfile.TemporaryDirectory(prefix="parallelrun-bare-") as name:
        server = RedisServer(binary=find_binary(), socket=Path(name, "redis.sock"), data=Path(name))
        with subprocess.Popen(server.command(), stdout=subprocess.DEVNULL) as process:
            try:
                server.wait(10.0)
                return _measured(server.socket, folder, mini_batches, Path(name, "part"))
            finally:
                process.terminate()


def _measured(server: Path, folder: Path, mini_batches: int, part: Path) -> Figures:
    with socket.socket(socket.AF_UNIX) as redis:
        redis.connect(str(server))
        messages = ["\0".join(paths) for paths in mini_batches_of(folder, mini_batches * EACH)]
        _ask(redis, "RPUSH", "ready", *range(mini_batches))
        _ask(redis, "HSET", "messages", *(word for each in enumerate(messages) for word in each))
        pipes = [Pipe() for _ in range(WORKERS)]
        workers = [get_context("fork").Process(target=_work, args=(end, part)) for _, end in pipes]
        for worker in workers:
            worker.start()
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        _loop(redis, [end.fileno() for end, _ in pipes])
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
        for worker in workers:
            worker.terminate()
            worker.join()
    if part.read_bytes().count(b"\n") != mini_batches * EACH:
        raise RuntimeError("the bare loop has lost rows")
    return {"per_s": mini_batches / wall, "cpu_us": used / mini_batches * 1e6}


def _loop(redis: socket.socket, workers: list[int]) -> None:
    script, records = _ask(redis, "SCRIPT", "LOAD", _TURN), b""
    ids: list[bytes] = []
    while answer := _ask(redis, "EVALSHA", script, 0, len(workers), records, *ids):
        ids, busy = answer[0], workers[: len(answer[0])]
        for worker, mini_batch, message in zip(busy, *answer, strict=True):
            os.write(worker, int(mini_batch).to_bytes(8, "little") + message)
        records = b",".join([b"[%d,%d,%d,%d]" % _ANSWER.unpack(os.read(worker, _ANSWER.size)) for worker in busy])


def _ask(redis: socket.socket, *words: Any) -> Any:
    redis.sendall(pack_command(words))
    reader = Reader()
    while (answer := reader.gets()) is False:
        reader.feed(redis.recv(1 << 16))
    return answer


def _work(pipe: Connection, part: Path) -> None:
    fd, end = pipe.fileno(), 0
    rows_file = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while ticket := os.read(fd, 1 << 16):
        rows = "".join(lines([echo(ticket[8:].decode().split("\0"))])).encode()
        os.write(rows_file, rows)
        os.write(fd, _ANSWER.pack(int.from_bytes(ticket[:8], "little"), end, len(rows), zlib.crc32(rows)))
        end += len(rows)
