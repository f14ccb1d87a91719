"""JSON in which nothing is lost or guessed: what Python's reader lets pass or drops is an error that names its place.

Read are UTF-8, integers as int and numbers with a point or exponent as float, ``{"$float": "nan"}`` (nan, inf, -inf or
a number as JSON writes it) and ``{"$bytes": "00ff"}``, which JSON has no form for.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from mmkey.cli.output import CliError, shown

_MOST_DIGITS = 40  # more than an integer of 64 bits and a sign have; Python refuses to read some thousands
_FLOAT_WORDS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
_FLOAT = re.compile(r"(?:nan|-?inf|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\Z")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$-]*\Z")


@dataclass(frozen=True)
class _Refused:
    """Stands in the document where something must be refused, until its place is known."""

    problem: str


def member(place: str, name: str) -> str:
    """The place of a map's member: ``items[0].path``; a name that is no identifier is quoted, ``config["a b"]``."""
    if not _PLAIN_NAME.match(name):
        return f"{place}[{json.dumps(name)}]"
    return f"{place}.{name}" if place else name


def parse(data: bytes) -> object:
    """Reads one JSON document. CliError names line and column, or the place in the document, and what is wrong."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise CliError(f"not UTF-8 text: byte {problem.start} is 0x{data[problem.start]:02x}") from None
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_real,
            parse_constant=lambda name: _Refused(f'{name} is not JSON; write {{"$float": "{_FLOAT_WORDS[name]}"}}'),
        )
        return _resolve(document, "")
    except json.JSONDecodeError as problem:
        raise CliError(f"line {problem.lineno}, column {problem.colno}: not JSON: {problem.msg}") from None
    except RecursionError:
        raise CliError("nested too deep; maps hold at most 32 levels") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = _Refused("given twice") if name in found else value
    return found


def _integer(digits: str) -> int | _Refused:
    if len(digits) > _MOST_DIGITS:
        return _Refused(f"an integer of {len(digits.lstrip('-'))} digits is outside [-2**64, 2**64 - 1]")
    value = int(digits)
    return value if -(2**64) <= value < 2**64 else _Refused(f"{value} is outside [-2**64, 2**64 - 1]")


def _real(digits: str) -> float | _Refused:
    value = float(digits)
    return (
        value if math.isfinite(value) else _Refused(f'{shown(digits, 30)} overflows a float; write {{"$float": "inf"}}')
    )


def _resolve(value: object, place: str) -> object:
    if isinstance(value, _Refused):
        raise CliError(f"{place or 'the document'}: {value.problem}")
    if isinstance(value, list):
        return [_resolve(element, f"{place}[{i}]") for i, element in enumerate(value)]
    if not isinstance(value, dict):
        return value
    marks = [name for name in value if name in {"$float", "$bytes"}]
    if not marks:
        for name in value:
            if not _encodable(name):
                raise CliError(
                    f"{member(place, name)}: the name has a lone surrogate; allowed is text that UTF-8 encodes"
                )
        return {name: _resolve(element, member(place, name)) for name, element in value.items()}
    mark, content = marks[0], value[marks[0]]
    if len(value) > 1 or not isinstance(content, str):
        raise CliError(
            f'{place or "the document"}: {shown(value)}; {mark} stands alone, with text: {{"{mark}": "..."}}'
        )
    return _bytes(content, member(place, mark)) if mark == "$bytes" else _float(content, member(place, mark))


def _bytes(text: str, place: str) -> bytes:
    if not _HEX.match(text):
        raise CliError(f"{place}: {shown(text)} is not pairs of hexadecimal digits")
    return bytes.fromhex(text)


def _float(text: str, place: str) -> float:
    if not _FLOAT.match(text):
        raise CliError(f"{place}: {shown(text)} is not a number as JSON writes it, nan, inf or -inf")
    number = float(text)
    if math.isinf(number) and "inf" not in text:
        raise CliError(f'{place}: {shown(text, 30)} overflows a float; write {{"$float": "inf"}}')
    return number


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
