"""A Ray cluster of this machine alone, with as many CPUs as there are workers, and quiet."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from benchmarks.rivals.work import WORKERS


@contextmanager
def session(object_store_bytes: int) -> Iterator[None]:
    """While it is up."""
    ray.init(
        num_cpus=WORKERS,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        object_store_memory=object_store_bytes,
    )
    try:
        yield
    finally:
        ray.shutdown()
