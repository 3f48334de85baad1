"""The steps of an MLTable (reference §4.2): which there are, their options, and one plain form for all spellings.

A step becomes a mapping with `step`, its name, and its options in full, so that the worker that applies it checks
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from parallelrun_core.mltable.complaints import Complaints
from parallelrun_core.mltable.filters import parse_filter
from parallelrun_core.mltable.partition_format import parse_partition_format

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


def parse_steps(given: object, pointer: str, complaints: Complaints) -> list[Step]:
    """All steps in their plain form; what is wrong with them goes to `complaints`."""
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        complaints.wrong(pointer, "a list of steps is needed")
        return []
    found = [_step(each, f"{pointer}/{number}", complaints) for number, each in enumerate(given)]
    steps = [step for step in found if step is not None]
    _check_order(steps, pointer, complaints)
    return steps


def _check_order(steps: list[Step], pointer: str, complaints: Complaints) -> None:
    names = [step["step"] for step in steps]
    reads = [number for number, name in enumerate(names) if name in READ_STEPS]
    if len(reads) > 1:
        complaints.wrong(pointer, "a table is read once, and there are several steps that read")
    if names.count("extract_columns_from_partition_format") > 1:
        complaints.wrong(pointer, "there are several partition formats; write one with all placeholders")
    first = reads[0] if reads else len(names)
    for number, name in enumerate(names[:first]):
        if name != "extract_columns_from_partition_format":
            hint = (
                "put it behind the step that reads" if reads else "a list of files has no rows: add a step that reads"
            )
            complaints.wrong(f"{pointer}/{number}", f"{name} is for the rows of a table", hint)


def _step(given: object, pointer: str, complaints: Complaints) -> Step | None:
    if isinstance(given, str):
        name, options = given, None
    elif isinstance(given, dict) and len(given) == 1:
        name, options = next(iter(given.items()))
    else:
        complaints.wrong(pointer, "a step is a name, or a mapping with one key: its name")
        return None
    parser = _PARSERS.get(name)
    if parser is None:
        complaints.known_keys(pointer, {name: options}, tuple(_PARSERS))
        return None
    before = len(complaints.problems)
    step = parser(options, f"{pointer}/{name}", complaints)
    return {"step": name, **step} if len(complaints.problems) == before else None


# Steps that read


def _options(given: object, pointer: str, complaints: Complaints, known: tuple[str, ...]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        complaints.wrong(pointer, f"a mapping of options is needed, not {given!r}")
        return {}
    complaints.known_keys(pointer, given, known)
    return given


def _flag(options: dict[str, Any], name: str, pointer: str, complaints: Complaints) -> bool:
    value = options.get(name, False)
    return bool(value) if complaints.is_of(f"{pointer}/{name}", value, bool, "true or false") else False


def _one_of(
    options: dict[str, Any], name: str, known: Any, default: str, *, pointer: str, complaints: Complaints
) -> str:
    value = options.get(name, default)
    text = value.lower() if isinstance(value, str) else value
    if text not in known:
        complaints.wrong(f"{pointer}/{name}", f"{value!r} is not known", f"one of {', '.join(known)}")
        return default
    return str(text)


def _read_delimited(given: object, pointer: str, complaints: Complaints) -> Step:
    known = ("delimiter", "header", "support_multi_line", "empty_as_string", "encoding", "include_path_column")
    options = _options(given, pointer, complaints, (*known, "infer_column_types", *_IGNORED))
    delimiter = options.get("delimiter", ",")
    if not isinstance(delimiter, str) or not 1 <= len(delimiter) <= 2 or set(delimiter) & set('"\r\n\0'):
        complaints.wrong(f"{pointer}/delimiter", f"one or two characters are needed, not {delimiter!r}")
    header = _one_of(options, "header", HEADERS, HEADERS[0], pointer=pointer, complaints=complaints)
    encoding = _one_of(options, "encoding", ENCODINGS, "utf8", pointer=pointer, complaints=complaints)
    return {
        "delimiter": delimiter,
        "header": header,
        "support_multi_line": _flag(options, "support_multi_line", pointer, complaints),
        "empty_as_string": _flag(options, "empty_as_string", pointer, complaints),
        "include_path_column": _flag(options, "include_path_column", pointer, complaints),
        "encoding": ENCODINGS[encoding],
        **_inference(options.get("infer_column_types", True), f"{pointer}/infer_column_types", complaints),
    }


def _inference(given: object, pointer: str, complaints: Complaints) -> Step:
    if isinstance(given, bool):
        return {"infer": given, "sample_size": 200, "overrides": {}}
    options = _options(given, pointer, complaints, ("sample_size", "column_type_overrides"))
    size = options.get("sample_size", 100)
    if complaints.is_of(f"{pointer}/sample_size", size, int, "a number of rows") and not 1 <= size <= 100_000:
        complaints.wrong(f"{pointer}/sample_size", f"1 to 100,000 rows, not {size}")
    overrides: dict[str, Any] = {}
    entries = options.get("column_type_overrides", [])
    where = f"{pointer}/column_type_overrides"
    for conversion in _conversions(entries, where, complaints):
        if isinstance(conversion["columns"], dict):
            complaints.wrong(where, "an override names its columns")
            continue
        overrides |= dict.fromkeys(conversion["columns"], conversion["type"])
    return {"infer": True, "sample_size": size, "overrides": overrides}


def _read_parquet(given: object, pointer: str, complaints: Complaints) -> Step:
    options = _options(given, pointer, complaints, ("include_path_column", *_IGNORED))
    return {"include_path_column": _flag(options, "include_path_column", pointer, complaints)}


def _read_json_lines(given: object, pointer: str, complaints: Complaints) -> Step:
    options = _options(given, pointer, complaints, ("invalid_lines", "encoding", "include_path_column", *_IGNORED))
    encoding = _one_of(options, "encoding", ENCODINGS, "utf8", pointer=pointer, complaints=complaints)
    return {
        "invalid_lines": _one_of(
            options, "invalid_lines", ("error", "drop"), "error", pointer=pointer, complaints=complaints
        ),
        "encoding": ENCODINGS[encoding],
        "include_path_column": _flag(options, "include_path_column", pointer, complaints),
    }


def _read_delta_lake(given: object, pointer: str, complaints: Complaints) -> Step:
    options = _options(given, pointer, complaints, ("timestamp_as_of", "version_as_of", "include_path_column"))
    version, timestamp = options.get("version_as_of"), options.get("timestamp_as_of")
    if (version is None) == (timestamp is None):
        complaints.wrong(pointer, "either version_as_of or timestamp_as_of is needed")
    if version is not None:
        complaints.is_of(f"{pointer}/version_as_of", version, int, "a version's number")
    include_path_column = _flag(options, "include_path_column", pointer, complaints)
    return {
        "version": version,
        "timestamp": str(timestamp) if timestamp is not None else None,
        "include_path_column": include_path_column,
    }


# Steps on columns and rows


def _columns(given: object, pointer: str, complaints: Complaints) -> Step:
    return {"columns": _selection(given, pointer, complaints)}


def _selection(given: object, pointer: str, complaints: Complaints) -> list[str] | dict[str, Any]:
    """Names, or a pattern for names."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given and all(isinstance(name, str) for name in given):
        return given
    if not isinstance(given, dict) or not isinstance(given.get("pattern"), str):
        complaints.wrong(pointer, f"a column's name, a list of names or {{pattern: …}} is needed, not {given!r}")
        return []
    complaints.known_keys(pointer, given, _SELECTOR)
    try:
        re.compile(given["pattern"])
    except re.error as error:
        complaints.wrong(f"{pointer}/pattern", f"not a regular expression: {error}")
    flags = {name: _flag(given, name, pointer, complaints) for name in ("ignore_case", "invert")}
    return {"pattern": given["pattern"], **flags}


def _convert(given: object, pointer: str, complaints: Complaints) -> Step:
    return {"conversions": _conversions(given, pointer, complaints)}


def _conversions(given: object, pointer: str, complaints: Complaints) -> list[Step]:
    entries = [given] if isinstance(given, dict) else given
    if not isinstance(entries, list):
        complaints.wrong(pointer, "a list of {columns, column_type} is needed")
        return []
    found = []
    for number, entry in enumerate(entries):
        where = f"{pointer}/{number}"
        if not isinstance(entry, dict) or not {"columns", "column_type"} <= entry.keys():
            complaints.wrong(where, "{columns, column_type} is needed")
            continue
        complaints.known_keys(where, entry, ("columns", "column_type"))
        columns = _selection(entry["columns"], f"{where}/columns", complaints)
        kind = _column_type(entry["column_type"], f"{where}/column_type", complaints)
        found.append({"columns": columns, "type": kind})
    return found


def _column_type(given: object, pointer: str, complaints: Complaints) -> Step:
    if isinstance(given, str) and given.lower() in _PLAIN_TYPES:
        return {"kind": _PLAIN_TYPES[given.lower()]}
    if isinstance(given, dict) and len(given) == 1:
        name, options = next(iter(given.items()))
        where = f"{pointer}/{name}"
        if name in ("datetime", "to_datetime"):
            options = _options(options, where, complaints, ("formats", "date_constant"))
            formats = _texts(options.get("formats", []), f"{where}/formats", complaints)
            constant = options.get("date_constant")
            return {
                "kind": "datetime",
                "formats": formats,
                "date_constant": None if constant is None else str(constant),
            }
        if name in ("boolean", "to_bool"):
            return _boolean(_options(options, where, complaints, ("true_values", "false_values", "mismatch_as")),
                            where, complaints)  # fmt: skip
        if name == "stream_info":
            return {"kind": "stream_info"}
    complaints.wrong(pointer, f"{given!r} is no column type", "int, float, string, boolean, stream_info, {datetime: …}")
    return {"kind": "string"}


def _boolean(options: dict[str, Any], pointer: str, complaints: Complaints) -> Step:
    return {
        "kind": "bool",
        "true_values": _texts(options.get("true_values", []), f"{pointer}/true_values", complaints),
        "false_values": _texts(options.get("false_values", []), f"{pointer}/false_values", complaints),
        "mismatch_as": _one_of(
            {"mismatch_as": str(options.get("mismatch_as", "error")).lower()},
            "mismatch_as", ("error", "true", "false"), "error", pointer=pointer, complaints=complaints,
        ),
    }  # fmt: skip


def _texts(given: object, pointer: str, complaints: Complaints) -> list[str]:
    entries = given if isinstance(given, list) else [given]
    if not all(isinstance(entry, str | int | float | bool) for entry in entries):
        complaints.wrong(pointer, "a text or a list of texts is needed")
        return []
    return [str(entry) for entry in entries]


def _number(given: object, pointer: str, complaints: Complaints) -> Step:
    value = given.get("n", given.get("count")) if isinstance(given, dict) and len(given) == 1 else given
    if complaints.is_of(pointer, value, int, "a number of rows") and isinstance(value, int) and value < 0:
        complaints.wrong(pointer, f"a number of rows is needed, not {value}")
    return {"rows": value}


def _sample(given: object, pointer: str, complaints: Complaints) -> Step:
    options = _options(given, pointer, complaints, ("probability", "seed"))
    probability, seed = options.get("probability"), options.get("seed")
    if not isinstance(probability, int | float) or isinstance(probability, bool) or not 0 <= probability <= 1:
        complaints.wrong(f"{pointer}/probability", f"a number from 0 to 1 is needed, not {probability!r}")
    if seed is not None:
        complaints.is_of(f"{pointer}/seed", seed, int, "a whole number")
    return {"probability": probability, "seed": seed}


def _filter(given: object, pointer: str, complaints: Complaints) -> Step:
    if not complaints.is_of(pointer, given, str, "an expression"):
        return {}
    try:
        return {"expression": parse_filter(str(given))}
    except ValueError as error:
        complaints.wrong(pointer, str(error))
        return {}


def _partition(given: object, pointer: str, complaints: Complaints) -> Step:
    text: object = given
    if isinstance(given, dict):
        text = _options(given, pointer, complaints, ("partition_format", "ignore_error")).get("partition_format")
    if not complaints.is_of(f"{pointer}/partition_format", text, str, "a format"):
        return {}
    try:
        parse_partition_format(str(text))
    except ValueError as error:
        complaints.wrong(f"{pointer}/partition_format", f"{text!r}: {error}")
    return {"partition_format": text}


_PARSERS: Final[dict[str, Callable[[object, str, Complaints], Step]]] = {
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
