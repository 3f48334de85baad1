"""What a delivery becomes before run() gets it: a list of paths, a DataFrame, or nothing but a rank.

A described delivery is JSON: `input` (index of the input, -1: none), `keys` (values of the partition keys), `paths`, or
`pieces` of a table, each `[path, start, end, is_aligned, first_row]`. What an input is, and how its table is read,
stands in the file `inputs.json` of the job folder; it is read when it is first needed, and so are pandas and pyarrow.
"""

import sys
from typing import Any


class Dataset:
    """What a mini-batch is a part of: `context.dataset`."""

    def __init__(self, name: str, paths: list[str]) -> None:
        self.name = name
        """Of the input."""
        self.paths = paths
        """Of the files that this mini-batch comes from."""

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, paths={self.paths!r})"


class MiniBatch:
    """What run() gets, and what its context says of it."""

    def __init__(self, value: object, items: int) -> None:
        self.value = value
        self.items = items
        """Files or rows; none at all are not worth a call of run()."""
        self.partition_key_value: dict[str, str | None] = {}
        self.dataset: Dataset | None = None
        self.first_row: int | None = None

    def release(self) -> None:
        """It has been run: remove what was made for it."""


def of_paths(payload: bytes) -> MiniBatch:
    """A list of files: paths, NUL between them."""
    paths = payload.decode(sys.getfilesystemencoding(), "surrogateescape").split("\0")
    return MiniBatch(paths, len(paths))


class Loader:
    """Makes mini-batches of described deliveries.

    Args:
        inputs: path of the file that says what the inputs are.
    """

    def __init__(self, inputs: str) -> None:
        self._inputs = inputs

    def load(self, payload: bytes) -> MiniBatch:
        """Read what is described.

        Raises:
            OSError, ValueError, ImportError: it can't be read.
        """
        import json

        described: dict[str, Any] = json.loads(payload)
        if described["input"] < 0:
            return MiniBatch([], 1)  # a rank is one item (reference §3.5)
        paths: list[str] = described["paths"]
        return MiniBatch(paths, len(paths))
