"""The steps of an MLTable (reference §4.2) and their options, in one plain form for all ways to write them.

A step becomes a record with its name and all of its options, so that the worker that applies it checks nothing. Those
that read are in `formats`, the others here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

import msgspec

from parallelrun_core.mltable.conversions import Conversion, Selection, parse_conversions, parse_selection, selected
from parallelrun_core.mltable.filters import parse_filter
from parallelrun_core.mltable.formats import read_steps
from parallelrun_core.mltable.options import one_of, options_of
from parallelrun_core.mltable.partition_format import parse_partition_format
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.problems import At


class TableStep(msgspec.Struct, kw_only=True, tag_field="step"):
    """A step on columns or rows. The tag of a subclass is the step's name."""

    keeps_rows: ClassVar[bool] = False
    """Each row before it is one after it."""
    counts_rows: ClassVar[bool] = False
    """True if it keeps rows by their place; one that does neither, by their content."""

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        """The step as a user wrote it; what is wrong with its options is added to the problems."""
        raise NotImplementedError

    @classmethod
    def name(cls) -> str:
        return str(cls.__struct_config__.tag)

    def as_written(self) -> TableStep:
        """The step without what was drawn when a job began."""
        return self


class KeepColumns(TableStep, tag="keep_columns"):
    keeps_rows = True

    columns: Selection

    def left(self, names: list[str]) -> list[str]:
        """The names of the columns that are left of these, as workers decide it."""
        return selected(names, self.columns)

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        return cls(columns=parse_selection(options, at))


class DropColumns(KeepColumns, tag="drop_columns"):
    def left(self, names: list[str]) -> list[str]:
        chosen = selected(names, self.columns)
        return [name for name in names if name not in chosen]


class ConvertColumnTypes(TableStep, tag="convert_column_types"):
    keeps_rows = True

    conversions: list[Conversion]

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        return cls(conversions=parse_conversions(options, at))


class ExtractColumns(TableStep, tag="extract_columns_from_partition_format"):
    keeps_rows = True

    partition_format: str
    on_mismatch: str = "null"
    """The handling of a path that doesn't fit, if the step comes after the reading: `error`, or `null` as in Azure ML,
    where without a path column the values of all paths are null, too."""

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        checked = options if isinstance(options, dict) else {"partition_format": options}
        checked = options_of(checked, at, ("partition_format", "on_mismatch", "ignore_error"))
        partition_format: object = checked.get("partition_format")
        where = at.below("partition_format")
        if where.is_of(partition_format, str, "a format"):
            try:
                parse_partition_format(str(partition_format))
            except ValueError as error:
                where.wrong(f"{partition_format!r}: {error}")
        choice = {"on_mismatch": checked.get("on_mismatch") or "null"}  # YAML's null is no text
        on_mismatch = one_of(choice, "on_mismatch", ("error", "null"), "null", at)
        return cls(partition_format=str(partition_format), on_mismatch=on_mismatch)


class Take(TableStep, tag="take"):
    counts_rows = True

    rows: int

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        option = options
        value: Any = option.get("n", option.get("count")) if isinstance(option, dict) and len(option) == 1 else option
        if at.is_of(value, int, "a number of rows") and value < 0:
            at.wrong(f"must be a number of rows, not {value}")
        return cls(rows=value)


class Skip(Take, tag="skip"):
    pass


class TakeRandomSample(TableStep, tag="take_random_sample"):
    probability: float
    seed: int | None = None
    """Drawn when the job begins if it isn't given: every try of a mini-batch gets the same rows."""

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        checked_options = options_of(options, at, ("probability", "seed"))
        probability: Any = checked_options.get("probability")
        seed = checked_options.get("seed")
        if not isinstance(probability, int | float) or isinstance(probability, bool) or not 0 <= probability <= 1:
            at.below("probability").wrong(f"must be a number from 0 to 1, not {probability!r}")
        if seed is not None:
            at.below("seed").is_of(seed, int, "a whole number")
        return cls(probability=probability, seed=seed)

    def as_written(self) -> TableStep:
        return msgspec.structs.replace(self, seed=None)


class Filter(TableStep, tag="filter"):
    expression: list[Any]

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        expression: list[Any] = []
        if at.is_of(options, str, "an expression"):
            try:
                expression = parse_filter(str(options))
            except ValueError as error:
                at.wrong(str(error))
        return cls(expression=expression)


RowStep = KeepColumns | DropColumns | ConvertColumnTypes | ExtractColumns | Take | Skip | TakeRandomSample | Filter
AnyStep = RowStep | ReadStep
_ROW_STEPS: Final[tuple[type[TableStep], ...]] = (
    ExtractColumns, KeepColumns, DropColumns, ConvertColumnTypes, Take, Skip, TakeRandomSample, Filter,
)  # fmt: skip


def parse_steps(transformations: object, at: At) -> list[AnyStep]:
    """All steps in their plain form; what is wrong with them is added to the problems."""
    if transformations is None:
        return []
    if not isinstance(transformations, list | tuple):
        at.wrong("must be a list of steps")
        return []
    parsers: dict[str, Any] = {**read_steps(), **{step.name(): step for step in _ROW_STEPS}}
    parsed = [_step(each, parsers, at.below(number)) for number, each in enumerate(transformations)]
    steps = [step for step in parsed if step is not None]
    _check_order(steps, at)
    return steps


_PATH: Final = "Path"


def _check_order(steps: list[AnyStep], at: At) -> None:
    reads = [number for number, step in enumerate(steps) if isinstance(step, ReadStep)]
    if len(reads) > 1:
        at.wrong("only one read step is allowed")
    formats = [parse_partition_format(step.partition_format) for step in steps if isinstance(step, ExtractColumns)]
    if len(formats) > 1:
        at.wrong("only one partition format is allowed; write one with all placeholders")
    has_path = any(step.include_path_column for step in steps if isinstance(step, ReadStep))
    if has_path and any(_PATH in each.names for each in formats):
        at.wrong(f"the partition format names a column {_PATH!r}, as that of include_path_column", "rename it")
    first = reads[0] if reads else len(steps)
    for number, step in enumerate(steps[:first]):
        if not isinstance(step, ExtractColumns):
            hint = "put it after the read step" if reads else "a list of files has no rows: add a read step"
            at.below(number).wrong(f"{step.name()} applies to the rows of a table", hint)


def _step(entry: object, parsers: dict[str, Any], at: At) -> AnyStep | None:
    if isinstance(entry, str):
        name, options = entry, None
    elif isinstance(entry, dict) and len(entry) == 1:
        name, options = next(iter(entry.items()))
    else:
        at.wrong("a step is a name, or a mapping with one key: its name")
        return None
    parser = parsers.get(name)
    if parser is None:
        at.known_keys({name: options}, tuple(parsers))
        return None
    before = len(at.problems)
    step: AnyStep = parser.parse(options, at.below(name))
    return step if len(at.problems) == before else None
