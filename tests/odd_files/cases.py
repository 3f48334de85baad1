"""The cases of the generator: for each kind of oddity some, drawn from a seed, and ordinary files beside them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.odd_files import making
from tests.odd_files.values import ODD, ORDINARY, Value

SIZES: Final = {"one": 1, "few": 9, "hundreds": 330, "thousands": 2500}
CUTS: Final = ("1mb", "3kb", "rows:90")
CODE_PAGES: Final = ("iso8859-2", "cp1250", "cp1251", "koi8-r", "cp437", "cp850", "mac-roman", "cp874")
PACKED: Final = ("gz", "zip", "bz2", "xz", "zst")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Files of an input, and what is in them."""

    kind: str
    """The oddity; `ordinary`: there is none."""
    label: str
    files: dict[str, bytes]
    names: list[str]
    """Of the columns."""
    rows: dict[str, list[list[Value]]]
    """Of each file with rows, in the order of the files."""
    step: dict[str, Any]
    """The read step."""
    size: str
    litter: frozenset[str] = frozenset()
    """Names of files that are no data, of which a job must say that it leaves them out."""

    @property
    def is_ordinary(self) -> bool:
        """Whether a job must read it to the letter, and warn of nothing."""
        return self.kind == "ordinary"


@dataclass(frozen=True, kw_only=True)
class Text:
    """How files of text are written."""

    encoding: str = "utf-8"
    line_end: str = "\n"
    packed: str = ""
    ending: bool = True
    """The name has the ending of the compression."""
    delimiter: str = ","
    first: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    size: str = "few"
    cut: str = "1mb"
    files: int = 2
    columns: tuple[str, ...] = ("ints", "texts")
    is_json: bool = False


def text_case(kind: str, chance: random.Random, how: Text, label: str = "") -> Case:
    """A case of delimited text or JSON lines."""
    columns = {**ORDINARY, **ODD}
    usable = [name for name in how.columns if how.encoding != "cp1252" or name != "texts"]
    names = ["id", *(f"c{at}" for at in range(len(usable)))]
    files, rows, number = {}, {}, 0
    for at in range(how.files):
        count = SIZES[how.size]
        made = [columns[name](chance, count) for name in usable]
        body = [[_id(number + n, how), *(_typed(column[n], how) for column in made)] for n in range(count)]
        number += count
        if how.is_json:
            text = making.json_lines(names, body, line_end=how.line_end)
        else:
            text = making.delimited(names, body, delimiter=how.delimiter, line_end=how.line_end, first=how.first)
        suffix = f".{how.packed}" if how.packed and how.ending else ""
        name = f"{'abc'[at]}.{'jsonl' if how.is_json else 'csv'}{suffix}"
        files[name] = making.compressed(making.encoded(text, how.encoding), how.packed)
        rows[name] = body
    options = {**({"delimiter": how.delimiter} if how.delimiter != "," else {}), **how.options}
    step = {"read_json_lines" if how.is_json else "read_delimited": options}
    label = label or " ".join(
        filter(
            None,
            (how.encoding, repr(how.line_end), how.packed, how.size, how.cut, "+".join(usable), "json" * how.is_json),
        )
    )
    return Case(kind=kind, label=label, files=files, names=names, rows=rows, step=step, size=how.cut)


def _id(number: int, how: Text) -> Value:
    return number + 10 if how.is_json else str(number + 10)


def _typed(value: Value, how: Text) -> Value:
    """In JSON, numbers are numbers."""
    if how.is_json and isinstance(value, str) and value.isdigit() and value[0] != "0":
        return int(value)
    return value


def _drawn(chance: random.Random, **fixed: Any) -> Text:
    """Ordinary text, with whatever isn't given drawn."""
    fields: dict[str, Any] = {
        "line_end": chance.choice(("\n", "\r\n")),
        "size": chance.choice(("few", "hundreds")),
        "cut": chance.choice(CUTS),
        "is_json": chance.random() < 0.3,
        "columns": tuple(chance.sample(sorted(ORDINARY), chance.randrange(2, 5))),
    }
    return Text(**{**fields, **fixed})


def ordinary(chance: random.Random) -> Iterator[Case]:
    """Files as everybody expects them."""
    while True:
        yield text_case("ordinary", chance, _drawn(chance))


def ordinary_delimiters(chance: random.Random) -> Iterator[Case]:
    """Files whose delimiter the job names."""
    while True:
        how = _drawn(chance, delimiter=chance.choice((";", "\t", "|")), is_json=False, columns=("ints", "words"))
        yield text_case("ordinary", chance, how)


def value_types(chance: random.Random) -> Iterator[Case]:
    """Kinds 1, 2 and 2a."""
    while True:
        for name in ODD:
            is_late = name.startswith("late")
            size = "hundreds" if is_late else chance.choice(("few", "hundreds"))
            how = _drawn(chance, columns=(name, "words"), size=size)
            yield text_case(_kind_of(name), chance, how)


def _kind_of(column: str) -> str:
    if column in ("big_beside_null", "beyond_int64", "unsigned", "400_digits", "late_big"):
        return "1 whole numbers"
    return "2 mismatches" if column.startswith("late") else "2a inference"


def line_ends(chance: random.Random) -> Iterator[Case]:
    """Kind 3."""
    while True:
        for end in ("\r", "mixed", "\r\r\n"):
            yield text_case("3 line ends", chance, _drawn(chance, line_end=end))


def encodings(chance: random.Random) -> Iterator[Case]:
    """Kind 4."""
    while True:
        for name in making.ENCODINGS:
            columns = ("ints", "accents") if name == "cp1252" else ("ints", "texts")
            yield text_case("4 encodings", chance, _drawn(chance, encoding=name, columns=columns, line_end="\n"))


def code_pages(chance: random.Random) -> Iterator[Case]:
    """Kind 4: text in UTF-8, of which the job says that it is in a code page."""
    while True:
        how = _drawn(chance, columns=("ints", "accents"), is_json=False, options={"encoding": "latin1"})
        yield text_case("4 encodings", chance, how, "UTF-8 as latin1")


def open_quotes(chance: random.Random) -> Iterator[Case]:
    """Kind 11: a quote that opens a field is missing its end; another field has both."""
    while True:
        for multi_line in (False, True):
            how = _drawn(chance, columns=("ints", "words"), is_json=False, line_end="\n")
            how = replace(how, options={"support_multi_line": multi_line})
            case = text_case("11 size", chance, how, f"open quote multi_line={multi_line}")
            lines, rows = case.files["b.csv"].decode().split("\n"), case.rows["b.csv"]
            at = chance.randrange(len(rows) - 2)
            lines[at + 1] = f'{rows[at][0]},{rows[at][1]},"{rows[at][2]}'
            lines[at + 2] = f'{rows[at + 1][0]},{rows[at + 1][1]},"{rows[at + 1][2]}"'
            rows[at][2] = f'"{rows[at][2]}'
            yield replace(case, files={**case.files, "b.csv": "\n".join(lines).encode()})


def broken(chance: random.Random) -> Iterator[Case]:
    """Kind 5: a file among others is cut off, or one of its lines is bad."""
    while True:
        case = text_case("5 broken", chance, _drawn(chance, is_json=True, size="hundreds", files=3, line_end="\n"))
        lines = case.files["b.jsonl"].split(b"\n")
        at = chance.randrange(len(lines) - 1)
        lines[at] = lines[at][:-1]
        rows = {**case.rows, "b.jsonl": [row for number, row in enumerate(case.rows["b.jsonl"]) if number != at]}
        yield replace(case, files={**case.files, "b.jsonl": b"\n".join(lines)}, rows=rows, label=f"line {at} is bad")
        how = _drawn(chance, packed="gz", is_json=False, size="hundreds")
        case = text_case("5 broken", chance, how)
        cut = case.files["b.csv.gz"][:-20]
        yield replace(case, files={**case.files, "b.csv.gz": cut}, rows={"a.csv.gz": case.rows["a.csv.gz"]})


def litter(chance: random.Random) -> Iterator[Case]:
    """Kind 6."""
    while True:
        for name, left in making.LITTER.items():
            case = text_case("6 litter", chance, _drawn(chance, is_json=False), f"litter of {name}")
            named = {(f"{path}a.csv" if path == "._a" else path): content for path, content in left.items()}
            yield replace(case, files={**case.files, **named}, litter=frozenset(named))


def packed(chance: random.Random) -> Iterator[Case]:
    """Kind 7."""
    while True:
        for name in PACKED:
            how = _drawn(chance, packed=name, ending=chance.random() < 0.7, cut=chance.choice(("500", "1kb", "1mb")))
            yield text_case("7 compression", chance, how)


def headers(chance: random.Random) -> Iterator[Case]:
    """Kind 8."""
    while True:
        case = text_case("8 headers", chance, _drawn(chance, is_json=False, columns=("words", "texts", "ints")))
        yield _with_columns_turned(case)
        how = _drawn(chance, is_json=False, columns=("ints", "words"), first=("sep=;",), delimiter=";")
        case = text_case("8 headers", chance, how, "sep=; line")
        yield replace(case, step={"read_delimited": {}})
        how = _drawn(chance, is_json=False, encoding="utf-8-mark", columns=("ints", "words"))
        case = text_case("8 headers", chance, how, "a mark in each file")
        yield case
        mark = making.ENCODINGS["utf-8-mark"][1]
        yield replace(case, files={name: mark + text for name, text in case.files.items()}, label="two marks")


def garbage(chance: random.Random) -> Iterator[Case]:
    """Kind 11: beside a good file one of bytes that are no text, though an encoding has a character for each."""
    while True:
        for label, encoding in (
            ("control characters of UTF-8", "utf8"),
            ("bytes from 128 to 255", "latin1"),
            ("NUL behind the rows", "utf8"),
            ("an archive in a gz", "utf8"),
            ("Japanese UTF-8 as latin1", "latin1"),
            ("any bytes", chance.choice(CODE_PAGES)),
            ("bytes from 128 to 255", chance.choice(CODE_PAGES)),
        ):
            how = _drawn(chance, is_json=False, columns=("ints", "words"), size="few", options={"encoding": encoding})
            case = text_case("11 size", chance, how, label)
            rows = case.rows["b.csv"]
            if label == "Japanese UTF-8 as latin1":
                rows[2][2] = "こんにちは 😁"
            text = making.delimited(case.names, rows).encode()
            content = {
                "control characters of UTF-8": bytes(
                    chance.choice([*range(1, 9), *range(14, 127)]) for _ in range(3000)
                ),
                "bytes from 128 to 255": bytes(chance.choices(range(128, 256), k=3000)),
                "any bytes": chance.randbytes(3000),
                "NUL behind the rows": text + bytes(4096),
                "an archive in a gz": making.archived("b.csv", text),
            }.get(label, text)
            yield replace(case, files={**case.files, "b.csv": content})


def joined(chance: random.Random) -> Iterator[Case]:
    """Kind 8: files that were put together with `cat` or `copy`, with what each begins and ends with."""
    while True:
        for label, between in (("header", ""), ("mark and header", "\ufeff"), ("end mark and header", "\x1a")):
            how = _drawn(chance, is_json=False, columns=chance.choice((("ints", "words"), ("texts", "words"))))
            case = text_case("8 headers", chance, how, f"a {label} between rows")
            yield _put_together(case, between.encode())
        how = _drawn(chance, is_json=True, encoding="utf-8-mark")
        yield _put_together(text_case("8 headers", chance, how, "a mark between objects"), b"")


def _put_together(case: Case, between: bytes) -> Case:
    """Its files as one."""
    (name, first), *others = case.files.items()
    content = between.join([first, *(text for _, text in others)])
    return replace(case, files={name: content}, rows={name: [row for rows in case.rows.values() for row in rows]})


def end_marks(chance: random.Random) -> Iterator[Case]:
    """Kind 3: the last line is the character Z with Control, once or as a whole block of it."""
    while True:
        for count in (1, 128):
            case = text_case("3 line ends", chance, _drawn(chance), f"{count} end marks")
            yield replace(case, files={name: text + b"\x1a" * count for name, text in case.files.items()})


def other_delimiters(chance: random.Random) -> Iterator[Case]:
    """Kind 8: a delimiter that the job doesn't name."""
    while True:
        for delimiter in (";", "\t", "|"):
            how = _drawn(chance, delimiter=delimiter, is_json=False, columns=("ints", "words"))
            case = text_case("8 headers", chance, how, f"an undeclared {delimiter!r}")
            yield replace(case, step={"read_delimited": {}})


def framed(chance: random.Random) -> Iterator[Case]:
    """Kind 7: compressed text with frames and streams that hold nothing, padding, or another file behind it."""
    while True:
        for label, (kind, before, behind) in making.FRAMES.items():
            case = text_case("7 compression", chance, _drawn(chance, packed=kind), label)
            yield replace(case, files={name: before + content + behind for name, content in case.files.items()})


def other_ends(chance: random.Random) -> Iterator[Case]:
    """Kind 3: records end with characters that are no line ends, as of a mainframe."""
    while True:
        for end in ("\x85", "\u2028", "\x1e", "\x0c"):
            how = _drawn(chance, is_json=False, columns=("words", "ints"), size="few")
            case = text_case("3 line ends", chance, how, repr(end))
            content = case.files["b.csv"].replace(b"\r\n", b"\n").replace(b"\n", end.encode())
            yield replace(case, files={**case.files, "b.csv": content})


def two_encodings(chance: random.Random) -> Iterator[Case]:
    """Kind 4: a file that changes its encoding, and one with escape sequences."""
    while True:
        case = text_case("4 encodings", chance, _drawn(chance, is_json=False, columns=("accents", "ints")))
        first, _, rest = case.files["b.csv"].partition(b"\n")
        middle = len(rest) // 2
        content = first + b"\n" + rest[:middle] + rest[middle:].decode(errors="ignore").encode("latin1")
        yield replace(case, files={**case.files, "b.csv": content}, label="latin1 after UTF-8")
        case = text_case("4 encodings", chance, _drawn(chance, columns=("words", "ints")))
        name = next(each for each in case.files if each.startswith("b"))
        content = case.files[name].decode().replace("red", "赤").replace("blue", "青").encode("iso2022_jp")
        rows = [[{"red": "赤", "blue": "青"}.get(value, value) for value in row] for row in case.rows[name]]
        yield replace(
            case, files={**case.files, name: content}, rows={**case.rows, name: rows}, label="escape sequences"
        )


def backslashes(chance: random.Random) -> Iterator[Case]:
    """Kind 8: quotes with backslashes before them, and a header with a quote that is never closed."""
    while True:
        case = text_case("8 headers", chance, _drawn(chance, is_json=False, columns=("ints", "words"), line_end="\n"))
        lines, rows = case.files["b.csv"].decode().split("\n"), case.rows["b.csv"]
        at = chance.randrange(len(rows))
        rows[at][2] = 'the "red" one'
        lines[at + 1] = f'{rows[at][0]},{rows[at][1]},"the \\"red\\" one"'
        yield replace(case, files={**case.files, "b.csv": "\n".join(lines).encode()}, label="backslashes")
        options = {"support_multi_line": True}
        how = _drawn(chance, is_json=False, columns=("ints", "words"), line_end="\n", options=options)
        case = text_case("8 headers", chance, how, "an open quote in a header")
        lines = case.files["b.csv"].decode().split("\n")
        lines[0] = lines[0].replace("c1", '"c1')
        lines[2] = f'{lines[2].rpartition(",")[0]},"{case.rows["b.csv"][1][2]}"'
        yield replace(case, files={**case.files, "b.csv": "\n".join(lines).encode()})


def parquet(chance: random.Random) -> Iterator[Case]:
    """Kinds 1 and 5: values of Parquet beside nulls, also in lists, objects and maps; a page with another byte."""
    while True:
        for label, (kind, values) in making.PARQUET.items():
            rows = {
                name: [[at * 10 + n + 10, value] for n, value in enumerate(chance.sample(values, len(values)))]
                for at, name in enumerate(("a.parquet", "b.parquet"))
            }
            files = {name: making.parquet(["id", "c0"], each, ["int64", kind]) for name, each in rows.items()}
            yield Case(
                kind="1 whole numbers", label=label, files=files, names=["id", "c0"], rows=rows,
                step={"read_parquet": {}}, size="1mb",
            )  # fmt: skip
            damaged = bytearray(files["b.parquet"])
            damaged[chance.randrange(40, len(damaged) // 3)] ^= 1 << chance.randrange(8)
            yield Case(
                kind="5 broken", label=f"another byte in {label}", files={**files, "b.parquet": bytes(damaged)},
                names=["id", "c0"], rows=rows, step={"read_parquet": {}}, size="1mb",
            )  # fmt: skip


def _with_columns_turned(case: Case) -> Case:
    """The second file has its columns in another order."""
    order = [*range(1, len(case.names)), 0]
    rows = [[row[at] for at in order] for row in case.rows["b.csv"]]
    text = making.delimited([case.names[at] for at in order], rows)
    return replace(case, files={**case.files, "b.csv": text.encode()}, label="columns in another order")


def sizes(chance: random.Random) -> Iterator[Case]:
    """Kind 11."""
    while True:
        yield text_case("11 size", chance, _drawn(chance, size="thousands", cut="20kb", is_json=False))
        columns = tuple(chance.choice(sorted(ORDINARY)) for _ in range(400))
        yield text_case("11 size", chance, _drawn(chance, columns=columns, size="few"), "400 columns")
        case = text_case("11 size", chance, _drawn(chance, is_json=False, columns=("ints", "words"), line_end="\n"))
        garbage = chance.randbytes(3000)
        yield replace(case, files={**case.files, "z.csv": garbage}, label="random bytes beside good files")


KINDS: Final[tuple[tuple[Callable[[random.Random], Iterator[Case]], int], ...]] = (
    (ordinary, 40), (ordinary_delimiters, 12), (value_types, 48), (line_ends, 18), (encodings, 27), (broken, 12),
    (litter, 24), (packed, 20), (headers, 20), (sizes, 9), (code_pages, 3), (open_quotes, 6),
    (garbage, 14), (joined, 12), (end_marks, 8), (other_delimiters, 12), (framed, 6), (other_ends, 4),
    (two_encodings, 4), (backslashes, 4), (parquet, 18),
)  # fmt: skip
"""How many of each there are at least."""


def cases(seed: int, times: int = 1) -> Iterator[Case]:
    """All cases of a seed."""
    for make, count in KINDS:
        made = make(random.Random(f"{seed} {make.__name__}"))
        for _ in range(count * times):
            yield next(made)
