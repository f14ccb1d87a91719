"""Text from outside, made fit for a page."""

from __future__ import annotations


def printable(text: str) -> str:
    """One line: control characters, marks of direction and halves of surrogate pairs are written out."""
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)
