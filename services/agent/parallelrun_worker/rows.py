"""From what `run()` returns to lines of the output file (reference §3.5 and §7)."""


class BadReturn(Exception):
    """run() returned something that has no rows."""


def render(returned: object) -> tuple[bytes, int]:
    """The rows as they stand in the output, and how many there are.

    Raises:
        BadReturn: it is not a list, tuple, DataFrame or array.
    """
    if isinstance(returned, (list, tuple)):
        return _lines(returned), len(returned)
    origin = type(returned).__module__.partition(".")[0]
    if origin == "pandas" and hasattr(returned, "to_csv"):
        if not hasattr(returned, "columns"):  # a Series is a column of values, not a table
            return _lines(returned), len(returned)  # type: ignore[arg-type]
        text = returned.to_csv(sep=" ", header=False, index=False, lineterminator="\n")
        return _encode(text), len(returned)  # type: ignore[arg-type]
    if origin == "numpy" and getattr(returned, "ndim", 0) > 0:
        return _lines(returned), len(returned)  # type: ignore[arg-type]
    raise BadReturn(
        f"run() returned {type(returned).__name__}; it must return a list, tuple, pandas DataFrame or numpy array "
        "with one row for each item that succeeded"
    )


def _lines(rows: "object") -> bytes:
    text = "\n".join(map(str, rows))  # type: ignore[call-overload]
    return _encode(text + "\n") if len(rows) else b""  # type: ignore[arg-type]


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")  # file names that are no UTF-8 come back as they were
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
