"""Stands for a reader of MNIST, and for the network that it comes from."""

import gzip
import urllib.request
from pathlib import Path
from typing import IO, Any

import numpy as np


def _retrieve(url: str, filename: str) -> None:
    Path(filename).write_bytes(gzip.compress(url.encode()))


def convert_from_file(file: IO[bytes]) -> Any:
    """A thousand black images."""
    assert file.read().startswith(b"https://")
    return np.zeros((1000, 28, 28), dtype=np.uint8)


urllib.request.urlretrieve = _retrieve
