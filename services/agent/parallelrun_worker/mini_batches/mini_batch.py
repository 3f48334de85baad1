"""Mini-batches in a worker: from a delivery to the argument of run(), a list of paths, a table, a list of dicts,
or nothing but a rank.

A described delivery is JSON: `input` (index of the input, -1: none), `keys` (values of the partition keys), `paths`, or
`pieces` of a table, each `[path, start, end, is_aligned, first_row, left_out, rows, has_sound_quotes]`; where their
files are staged, `places` has what is here of each (`tables/elsewhere.py`). What an input is, and how its table is
read, is in the file `inputs.json` of the job folder; it is read when it is first needed, and so are pandas and pyarrow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from parallelrun_worker.mini_batches.copies import Copies
from parallelrun_worker.tables.data_warnings import DataWarnings

_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class Dataset:
    """The input that a mini-batch is a part of: `context.dataset`."""

    def __init__(self, name: str, paths: list[str]) -> None:
        self.name = name
        """Of the input."""
        self.paths = paths
        """Of the files that this mini-batch comes from."""

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, paths={self.paths!r})"


class MiniBatch:
    """The argument of run(), and what its context shows."""

    dataset: Dataset | None = None
    first_row: int | None = None
    copies: Copies | None = None
    """Has the files of its paths, until it has been run."""

    def __init__(self, value: object, items: int) -> None:
        self.value = value
        self.items = items
        """Number of files or rows; run() is not called for none at all."""
        self.partition_key_value: dict[str, Any] = {}


def of_paths(payload: bytes) -> MiniBatch:
    """A list of files: paths, NUL between them."""
    paths = payload.decode(_ENCODING, _ERRORS).split("\0")
    return MiniBatch(paths, len(paths))


class Loader:
    """Loads the mini-batches of described deliveries.

    Args:
        inputs: path of the file that describes the inputs; it need not exist.
        schemas: path of the file with the columns of each input, if it is a text table.
        workers: how many workers the job may have on this node.
        warnings: gets those about the data of a mini-batch.
        copies: name of the folder, below the working folder, for the files of one mini-batch that are copied.
    """

    def __init__(
        self,
        inputs: str,
        schemas: Sequence[str] = (),
        workers: int = 1,
        warnings: DataWarnings | None = None,
        copies: str = ".downloaded",
    ) -> None:
        self._inputs = inputs
        self._schemas = schemas
        self._warnings = DataWarnings() if warnings is None else warnings
        self._copies = Copies(os.path.join(os.getcwd(), copies), workers)
        self._plans: list[dict[str, Any]] | None = None
        self._tables: dict[int, Any] = {}
        self._readers: dict[int, Any] = {}

    def prepare(self) -> None:
        """Check that the libraries for reading tables can be imported.

        Raises:
            ModuleNotFoundError: one can't; the message says what to do.
        """
        libraries = self.libraries()
        for name in libraries:
            try:
                __import__(name)
            except ImportError as error:
                raise ModuleNotFoundError(
                    f"The input is a table, which is read with {name}, and the environment of the entry script has "
                    f"none ({error}). Add {name} to the job's environment."
                ) from error
        if libraries:  # other jobs start sooner without, and may run on Pythons that tables don't support
            self.import_readers()

    def import_readers(self) -> None:
        """Import what reads the tables among the inputs; `libraries` must be there."""
        import parallelrun_worker.tables.table  # noqa: F401 - now, so that no mini-batch is charged for it
        from parallelrun_worker.tables.formats import prepare

        for kind in {plan["kind"] for plan in self._read_plans()} - {"files"}:
            prepare(kind)

    def libraries(self) -> list[str]:
        """Return the names of the libraries that read the inputs; none if no input is a table."""
        return list(dict.fromkeys(name for plan in self._read_plans() for name in plan.get("libraries", ())))

    def _read_plans(self) -> list[dict[str, Any]]:
        if self._plans is None:
            from parallelrun_worker.tables.plan_records import read

            try:
                self._plans = read(self._inputs) or []
            except FileNotFoundError:
                return []
            if any(plan["kind"] != "files" for plan in self._plans):
                from parallelrun_worker.tables.plan_records import completed

                self._plans = [completed(plan) for plan in self._plans]
        return self._plans

    def load(self, payload: bytes) -> MiniBatch:
        """Read what is described.

        Raises:
            OSError, ValueError, ImportError: it can't be read.
        """
        import json

        described: dict[str, Any] = json.loads(payload)
        number, pieces = described["input"], described["pieces"]
        if number < 0:
            return MiniBatch([], 1)  # a rank is one item (reference §3.5)
        plan = self._read_plans()[number]
        if pieces:
            table = self._reader(number, plan)
            rows = table(pieces, described.get("places"))
            mini_batch = MiniBatch(rows, len(rows))
            mini_batch.first_row = pieces[0][4] if pieces[0][4] >= 0 else None
            mini_batch.partition_key_value = self._tables[number].path_keys.typed(described["keys"])
        else:
            paths = described["paths"]
            mini_batch = MiniBatch(self._copies.take(paths, plan["root"]) if plan["is_copied"] else paths, len(paths))
            mini_batch.copies = self._copies if plan["is_copied"] else None
            mini_batch.partition_key_value = dict(zip(plan["keys"], described["keys"]))  # noqa: B905 - see rows/formats/jsonl
        paths = described["paths"] or list(dict.fromkeys(piece[0] for piece in pieces))
        if plan.get("is_shuffled"):
            paths = [os.path.join(os.path.dirname(self._inputs), path) for path in paths]
        mini_batch.dataset = Dataset(plan["name"], paths)
        return mini_batch

    def _reader(self, number: int, plan: dict[str, Any]) -> Any:
        """Return the reader of pieces of an input, in the form that the job wants."""
        if number not in self._readers:
            from parallelrun_worker.tables.table import Table

            table = self._tables[number] = Table(plan, self._schemas[number], self._warnings)
            form = plan.get("mini_batch_format", "pandas")
            if form == "pandas":
                self._readers[number] = table.objects if table.has_dict_rows else table.read
            else:
                from parallelrun_worker.tables.arrow_rows import ArrowRows

                self._readers[number] = ArrowRows(table, form).read
        return self._readers[number]


class Context:
    """Describes a mini-batch to the user's run()."""

    def __init__(self, mini_batch: int, batch: MiniBatch, job_id: str, part: tuple[int, int] | None) -> None:
        self.minibatch_index = mini_batch
        """Its id; of a mini-batch without data, its rank."""
        self.partition_key_value = batch.partition_key_value
        """The values of the job's partition_keys, in their order; empty without keys."""
        self.dataset = batch.dataset
        """Where its rows or files come from; None for a plain list of files."""
        self.global_row_index_lower_bound = batch.first_row
        """Index of its first row in the whole input; None when rows were not counted."""
        self.idempotency_key = f"{job_id}:{mini_batch}" + (f":{part[0]}+{part[1]}" if part else "")
        """The same for every try of this mini-batch: for scripts that write to other places themselves. Of a part of
        one whose items are run apart, it ends in the index of the part's first item, and its number of items."""
