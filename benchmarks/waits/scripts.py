"""Entry scripts that wait for the service, or for an engine that batches by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CLIENT: Final = Path(__file__).with_name("client.py").read_text()

CALLS: Final = (
    CLIENT
    + """

import os

async def init():
    global client
    client = ServiceClient(int(os.environ["PORT"]))

async def run(mini_batch):
    return [await client.call(os.path.basename(path)) for path in mini_batch]
"""
)
"""One call after another for the items of a mini-batch."""

LIMITED: Final = (
    CLIENT
    + """

import os
from parallelrun.script import limit

async def init():
    global client
    client = ServiceClient(int(os.environ["PORT"]))

async def ask(name):
    while True:
        async with limit("service") as permit:
            try:
                return await client.call(name)
            except Refused as refused:
                pause_s = permit.retry_after(refused)
        await asyncio.sleep(pause_s)

async def run(mini_batch):
    return [await ask(os.path.basename(path)) for path in mini_batch]
"""
)
"""The same, each with a permit of the limit `service`."""

ENGINE: Final = """
import asyncio, os, time

STEP_S, STEPS = 0.02, 5

class Engine:
    '''A step takes as long for 64 requests as for one, and each request needs five.'''

    def __init__(self):
        self.requests = {}
        self.is_running = False

    async def generate(self, text):
        future = asyncio.get_running_loop().create_future()
        self.requests[future] = STEPS
        if not self.is_running:
            self.is_running = True
            asyncio.ensure_future(self.go_on())
        await future
        return text

    async def go_on(self):
        while self.requests:
            await asyncio.sleep(STEP_S)
            for future, steps in list(self.requests.items()):
                if steps > 1:
                    self.requests[future] = steps - 1
                else:
                    del self.requests[future]
                    future.set_result(None)
        self.is_running = False

engine = Engine()

async def run(mini_batch):
    return [await engine.generate(os.path.basename(path)) for path in mini_batch]
"""
"""A stand-in for an engine with continuous batching."""
