"""The steps of an MLTable (reference §4.2) and their options, in one plain form for all ways to write them.

A step becomes a mapping with `step`, its name, and all of its options, so that the worker that applies it checks
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from parallelrun_core.mltable.filters import parse_filter
from parallelrun_core.mltable.partition_format import parse_partition_format
from parallelrun_core.problems import At

Step = dict[str, Any]

READ_STEPS: Final = ("read_delimited", "read_parquet", "read_json_lines", "read_delta_lake")
HEADERS: Final = ("all_files_same_headers", "all_files_different_headers", "from_first_file", "no_header")
ENCODINGS: Final = {
    "utf8": "utf-8", "utf-8": "utf-8", "utf8 bom": "utf-8", "utf-8 bom": "utf-8",
    # The original reads Latin 1 as Windows does, too.
    "iso88591": "cp1252", "iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252",
    "windows1252": "cp1252", "windows-1252": "cp1252",
    "ascii": "ascii", "utf16": "utf-16", "utf-16": "utf-16",
}  # fmt: skip
_PLAIN_TYPES: Final = {
    "int": "int", "long": "int", "integer": "int", "float": "float", "double": "float", "string": "string",
    "boolean": "bool", "bool": "bool", "datetime": "datetime", "stream_info": "stream_info",
}  # fmt: skip
_SELECTOR: Final = ("pattern", "ignore_case", "invert")
_IGNORED: Final = ("path_column", "partition_size")


def parse_steps(given: object, at: At) -> list[Step]:
    """All steps in their plain form; what is wrong with them is added to the problems."""
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        at.wrong("must be a list of steps")
        return []
    found = [_step(each, at.below(number)) for number, each in enumerate(given)]
    steps = [step for step in found if step is not None]
    _check_order(steps, at)
    return steps


def _check_order(steps: list[Step], at: At) -> None:
    names = [step["step"] for step in steps]
    reads = [number for number, name in enumerate(names) if name in READ_STEPS]
    if len(reads) > 1:
        at.wrong("only one read step is allowed")
    if names.count("extract_columns_from_partition_format") > 1:
        at.wrong("only one partition format is allowed; write one with all placeholders")
    first = reads[0] if reads else len(names)
    for number, name in enumerate(names[:first]):
        if name != "extract_columns_from_partition_format":
            hint = "put it after the read step" if reads else "a list of files has no rows: add a read step"
            at.below(number).wrong(f"{name} applies to the rows of a table", hint)


def _step(given: object, at: At) -> Step | None:
    if isinstance(given, str):
        name, options = given, None
    elif isinstance(given, dict) and len(given) == 1:
        name, options = next(iter(given.items()))
    else:
        at.wrong("a step is a name, or a mapping with one key: its name")
        return None
    parser = _PARSERS.get(name)
    if parser is None:
        at.known_keys({name: options}, tuple(_PARSERS))
        return None
    before = len(at.problems)
    step = parser(options, at.below(name))
    return {"step": name, **step} if len(at.problems) == before else None


# Steps that read


def _options(given: object, at: At, known: tuple[str, ...]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        at.wrong(f"must be a mapping of options, not {given!r}")
        return {}
    at.known_keys(given, known)
    return given


def _flag(options: dict[str, Any], name: str, at: At) -> bool:
    value = options.get(name, False)
    return bool(value) if at.below(name).is_of(value, bool, "true or false") else False


def _one_of(options: dict[str, Any], name: str, known: Any, default: str, at: At) -> str:
    value = options.get(name, default)
    text = value.lower() if isinstance(value, str) else value
    if text not in known:
        at.below(name).wrong(f"{value!r} is not known", f"one of {', '.join(known)}")
        return default
    return str(text)


def _read_delimited(given: object, at: At) -> Step:
    known = ("delimiter", "header", "support_multi_line", "empty_as_string", "encoding", "include_path_column")
    options = _options(given, at, (*known, "infer_column_types", *_IGNORED))
    delimiter = options.get("delimiter", ",")
    if not isinstance(delimiter, str) or not 1 <= len(delimiter) <= 2 or set(delimiter) & set('"\r\n\0'):
        at.below("delimiter").wrong(f"must be one or two characters, not {delimiter!r}")
    header = _one_of(options, "header", HEADERS, HEADERS[0], at)
    encoding = _one_of(options, "encoding", ENCODINGS, "utf8", at)
    return {
        "delimiter": delimiter,
        "header": header,
        "support_multi_line": _flag(options, "support_multi_line", at),
        "empty_as_string": _flag(options, "empty_as_string", at),
        "include_path_column": _flag(options, "include_path_column", at),
        "encoding": ENCODINGS[encoding],
        **_inference(options.get("infer_column_types", True), at.below("infer_column_types")),
    }


def _inference(given: object, at: At) -> Step:
    if isinstance(given, bool):
        return {"infer": given, "sample_size": 200, "overrides": {}}
    options = _options(given, at, ("sample_size", "column_type_overrides"))
    size = options.get("sample_size", 100)
    if at.below("sample_size").is_of(size, int, "a number of rows") and not 1 <= size <= 100_000:
        at.below("sample_size").wrong(f"must be 1 to 100,000 rows, not {size}")
    overrides: dict[str, Any] = {}
    entries = options.get("column_type_overrides", [])
    where = at.below("column_type_overrides")
    for conversion in _conversions(entries, where):
        if isinstance(conversion["columns"], dict):
            where.wrong("an override must name its columns")
            continue
        overrides |= dict.fromkeys(conversion["columns"], conversion["type"])
    return {"infer": True, "sample_size": size, "overrides": overrides}


def _read_parquet(given: object, at: At) -> Step:
    options = _options(given, at, ("include_path_column", *_IGNORED))
    return {"include_path_column": _flag(options, "include_path_column", at)}


def _read_json_lines(given: object, at: At) -> Step:
    options = _options(given, at, ("invalid_lines", "encoding", "include_path_column", *_IGNORED))
    encoding = _one_of(options, "encoding", ENCODINGS, "utf8", at)
    return {
        "invalid_lines": _one_of(options, "invalid_lines", ("error", "drop"), "error", at),
        "encoding": ENCODINGS[encoding],
        "include_path_column": _flag(options, "include_path_column", at),
    }


def _read_delta_lake(given: object, at: At) -> Step:
    options = _options(given, at, ("timestamp_as_of", "version_as_of", "include_path_column"))
    version, timestamp = options.get("version_as_of"), options.get("timestamp_as_of")
    if (version is None) == (timestamp is None):
        at.wrong("must have either version_as_of or timestamp_as_of")
    if version is not None:
        at.below("version_as_of").is_of(version, int, "a version's number")
    include_path_column = _flag(options, "include_path_column", at)
    return {
        "version": version,
        "timestamp": str(timestamp) if timestamp is not None else None,
        "include_path_column": include_path_column,
    }


# Steps on columns and rows


def _columns(given: object, at: At) -> Step:
    return {"columns": _selection(given, at)}


def _selection(given: object, at: At) -> list[str] | dict[str, Any]:
    """Names, or a pattern for names."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given and all(isinstance(name, str) for name in given):
        return given
    if not isinstance(given, dict) or not isinstance(given.get("pattern"), str):
        at.wrong(f"must be a column's name, a list of names or {{pattern: …}}, not {given!r}")
        return []
    at.known_keys(given, _SELECTOR)
    try:
        re.compile(given["pattern"])
    except re.error as error:
        at.below("pattern").wrong(f"not a regular expression: {error}")
    flags = {name: _flag(given, name, at) for name in ("ignore_case", "invert")}
    return {"pattern": given["pattern"], **flags}


def _convert(given: object, at: At) -> Step:
    return {"conversions": _conversions(given, at)}


def _conversions(given: object, at: At) -> list[Step]:
    entries = [given] if isinstance(given, dict) else given
    if not isinstance(entries, list):
        at.wrong("must be a list of {columns, column_type}")
        return []
    found = []
    for number, entry in enumerate(entries):
        where = at.below(number)
        if not isinstance(entry, dict) or not {"columns", "column_type"} <= entry.keys():
            where.wrong("must be {columns, column_type}")
            continue
        where.known_keys(entry, ("columns", "column_type"))
        columns = _selection(entry["columns"], where.below("columns"))
        kind = _column_type(entry["column_type"], where.below("column_type"))
        found.append({"columns": columns, "type": kind})
    return found


def _column_type(given: object, at: At) -> Step:
    if isinstance(given, str) and given.lower() in _PLAIN_TYPES:
        return {"kind": _PLAIN_TYPES[given.lower()]}
    if isinstance(given, dict) and len(given) == 1:
        name, options = next(iter(given.items()))
        where = at.below(name)
        if name in ("datetime", "to_datetime"):
            options = _options(options, where, ("formats", "date_constant"))
            formats = _texts(options.get("formats", []), where.below("formats"))
            constant = options.get("date_constant")
            return {
                "kind": "datetime",
                "formats": formats,
                "date_constant": None if constant is None else str(constant),
            }
        if name in ("boolean", "to_bool"):
            return _boolean(_options(options, where, ("true_values", "false_values", "mismatch_as")),
                            where)  # fmt: skip
        if name == "stream_info":
            return {"kind": "stream_info"}
    at.wrong(f"{given!r} is not a column type", "int, float, string, boolean, stream_info, {datetime: …}")
    return {"kind": "string"}


def _boolean(options: dict[str, Any], at: At) -> Step:
    return {
        "kind": "bool",
        "true_values": _texts(options.get("true_values", []), at.below("true_values")),
        "false_values": _texts(options.get("false_values", []), at.below("false_values")),
        "mismatch_as": _one_of(
            {"mismatch_as": str(options.get("mismatch_as", "error")).lower()},
            "mismatch_as", ("error", "true", "false"), "error", at,
        ),
    }  # fmt: skip


def _texts(given: object, at: At) -> list[str]:
    entries = given if isinstance(given, list) else [given]
    if not all(isinstance(entry, str | int | float | bool) for entry in entries):
        at.wrong("must be a string or a list of strings")
        return []
    return [str(entry) for entry in entries]


def _number(given: object, at: At) -> Step:
    value = given.get("n", given.get("count")) if isinstance(given, dict) and len(given) == 1 else given
    if at.is_of(value, int, "a number of rows") and isinstance(value, int) and value < 0:
        at.wrong(f"must be a number of rows, not {value}")
    return {"rows": value}


def _sample(given: object, at: At) -> Step:
    options = _options(given, at, ("probability", "seed"))
    probability, seed = options.get("probability"), options.get("seed")
    if not isinstance(probability, int | float) or isinstance(probability, bool) or not 0 <= probability <= 1:
        at.below("probability").wrong(f"must be a number from 0 to 1, not {probability!r}")
    if seed is not None:
        at.below("seed").is_of(seed, int, "a whole number")
    return {"probability": probability, "seed": seed}


def _filter(given: object, at: At) -> Step:
    if not at.is_of(given, str, "an expression"):
        return {}
    try:
        return {"expression": parse_filter(str(given))}
    except ValueError as error:
        at.wrong(str(error))
        return {}


def _partition(given: object, at: At) -> Step:
    text: object = given
    if isinstance(given, dict):
        text = _options(given, at, ("partition_format", "ignore_error")).get("partition_format")
    if not at.below("partition_format").is_of(text, str, "a format"):
        return {}
    try:
        parse_partition_format(str(text))
    except ValueError as error:
        at.below("partition_format").wrong(f"{text!r}: {error}")
    return {"partition_format": text}


_PARSERS: Final[dict[str, Callable[[object, At], Step]]] = {
    "read_delimited": _read_delimited,
    "read_parquet": _read_parquet,
    "read_json_lines": _read_json_lines,
    "read_delta_lake": _read_delta_lake,
    "extract_columns_from_partition_format": _partition,
    "keep_columns": _columns,
    "drop_columns": _columns,
    "convert_column_types": _convert,
    "take": _number,
    "skip": _number,
    "take_random_sample": _sample,
    "filter": _filter,
}
