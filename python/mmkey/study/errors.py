"""The study's own error: input or output that it cannot work with, said in one line."""

from __future__ import annotations


class StudyError(Exception):
    """What ends a study early; the message names the file and what is wanted of it."""
