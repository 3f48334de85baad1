"""The expressions of the step `filter`: parsed with Python's grammar, kept as data, never evaluated as code.

`col("a") > 1 and col("b") == "x"` becomes `["and", [">", ["col", "a"], 1], ["==", ["col", "b"], "x"]]`.
"""

from __future__ import annotations

import ast
from datetime import datetime
from typing import Any, Final

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_LOGIC: Final[dict[type[ast.AST], str]] = {ast.And: "and", ast.Or: "or", ast.BitAnd: "and", ast.BitOr: "or"}
_ARITHMETIC: Final[dict[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_FORM: Final = 'a filter compares columns, as in: col("a") > 1 and col("b") == "x"'
_TESTS: Final = frozenset({*_COMPARISONS.values(), *_LOGIC.values(), "not", "null"})
_MAX_LENGTH: Final = 10_000


def parse_filter(text: str) -> list[Any]:
    """The expression as nested lists.

    Raises:
        ValueError: it is not an expression of columns, values, comparisons, and, or, not; or one of these is where it
            makes no sense, as in `col("b") == "x" or "y"`.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a filter must have at most {_MAX_LENGTH:,} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        expression: list[Any] = _expression(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(_FORM) from error
    if not _is_test(expression):
        raise ValueError(_FORM)
    return expression


def _expression(node: ast.expr) -> Any:  # noqa: PLR0911 - one for each form
    match node:
        case ast.BoolOp(op=op, values=values):
            return [_LOGIC[type(op)], *map(_condition, values)]
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _LOGIC:
            return [_LOGIC[type(op)], _condition(left), _condition(right)]
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
            return [_ARITHMETIC[type(op)], _quantity(left), _quantity(right)]
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return ["not", _condition(operand)]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(op) in _COMPARISONS for op in ops):
            sides = [_quantity(side) for side in (left, *comparators)]
            steps = [[_COMPARISONS[type(op)], sides[at], sides[at + 1]] for at, op in enumerate(ops)]
            return steps[0] if len(steps) == 1 else ["and", *steps]
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_quantity(arg) for arg in args])
    raise ValueError(_FORM)


def _condition(node: ast.expr) -> Any:
    """Return what `and`, `or` and `not` take. A column may hold true and false."""
    condition = _expression(node)
    if not _is_test(condition) and not _is_column(condition):
        raise ValueError(
            f"{ast.unparse(node)} is not a comparison: and, or, not join whole comparisons; & and | need parentheses "
            'around each, as in: (col("a") > 1) & (col("b") == "x")'
        )
    return condition


def _quantity(node: ast.expr) -> Any:
    """Return what is compared or calculated with."""
    quantity = _expression(node)
    if quantity is None:
        raise ValueError('nothing equals None: use is_null(col("a")), or not is_null(col("a"))')
    if isinstance(quantity, list) and quantity[0] in ("and", "or", "not"):
        raise ValueError(f"{ast.unparse(node)} is compared with something: put parentheses around each comparison")
    return quantity


def _is_test(expression: Any) -> bool:
    return isinstance(expression, list) and expression[0] in _TESTS


def _is_column(expression: Any) -> bool:
    return isinstance(expression, list) and expression[0] == "col"


def _call(name: str, args: list[Any]) -> list[Any]:
    if name == "col" and len(args) == 1 and isinstance(args[0], str):
        return ["col", args[0]]
    if name == "datetime" and 3 <= len(args) <= 7 and all(isinstance(arg, int) for arg in args):
        return ["datetime", datetime(*args).isoformat()]  # noqa: DTZ001 - tables hold times without a zone
    if name in ("is_null", "isnull") and len(args) == 1 and columns_of(args[0]):
        return ["null", args[0]]
    raise ValueError(f"{name}() with such arguments is unknown; {_FORM}")


def columns_of(expression: Any) -> set[str]:
    if not isinstance(expression, list):
        return set()
    if expression[0] == "col":
        return {expression[1]}
    return set().union(*map(columns_of, expression[1:])) if len(expression) > 1 else set()
