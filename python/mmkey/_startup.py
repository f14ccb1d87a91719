"""What the command line says where the package itself cannot be imported: a line, as of any other bad input."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path


def _is_command() -> bool:
    """Whether this process is ``mmkey`` or ``python -m mmkey``, and no program that imports the library."""
    return Path(sys.argv[0]).stem == "mmkey" or ("-m", "mmkey") in itertools.pairwise(sys.orig_argv)


def end_command(problem: ImportError) -> None:
    """Ends the command line with code 2 where MMKEY_FORCE_KERNEL is what keeps the core from being loaded."""
    if str(problem).startswith("MMKEY_FORCE_KERNEL") and _is_command():
        if sys.stderr is not None:
            sys.stderr.write(f"mmkey: {problem}\n")
        sys.exit(2)
