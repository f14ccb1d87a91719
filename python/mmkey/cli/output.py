"""What all commands share: one-line errors, JSON on stdout, text made fit to print."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer


class CliError(Exception):
    """Ends a command with one line on stderr."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def printable(text: object) -> str:
    """One line, valid in any encoding of Unicode: control characters and undecodable bytes of a file name escaped."""
    escaped = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in escaped)


def shown(value: object, limit: int = 60) -> str:
    """A value as an error message names it: its repr, on one line and cut to ``limit`` characters."""
    text = printable(repr(value))
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def complain(message: str) -> None:
    """Writes one line to stderr."""
    if sys.stderr is not None:  # closed: print would take stdout instead
        print(f"mmkey: {printable(message)}", file=sys.stderr)


def print_json(value: object) -> None:
    """Writes one JSON document to stdout; NaN has no JSON form and is an error here."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def choose(option: str, value: str, allowed: Sequence[str]) -> str:
    """The value, or a CliError that lists what is allowed."""
    if value not in allowed:
        raise CliError(f"{option}: {shown(value)} is none of {', '.join(allowed)}")
    return value


def at_least(option: str, value: int, least: int) -> int:
    """The value, or a CliError that gives the bound."""
    if value < least:
        raise CliError(f"{option}: {value} is less than {least}")
    return value


def command_line(context: typer.Context, *without: str) -> str:
    """The command that is running as one would type it, its options in their own order but for those ``without``."""
    words = ["mmkey", str(context.info_name)]
    for option in context.command.params:
        given = context.get_parameter_source(str(option.name))
        if given is None or given.name != "COMMANDLINE" or option.opts[0] in without:
            continue
        value = context.params[str(option.name)]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [option.opts[0]] if one is True else [option.opts[0], str(one)]
    return printable(shlex.join(words))
