"""``mmkey`` and ``python -m mmkey``: looks for the extra ``study`` before anything optional is imported."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# module -> distribution, of what the extra "study" brings to every command
_NEEDED = {"typer": "typer", "rich": "rich", "pydantic": "pydantic", "PIL": "Pillow", "jinja2": "Jinja2"}


def _complain(message: str) -> None:
    if sys.stderr is not None:  # closed: print would take stdout instead
        print(f"mmkey: {message}", file=sys.stderr)


def _run(argv: Sequence[str] | None) -> int:
    try:
        if sys.stdout is None:
            _complain("stdout: is closed; redirect it to /dev/null to print nothing")
            return 2
        missing = [distribution for module, distribution in _NEEDED.items() if find_spec(module) is None]
        if missing:
            _complain(
                f"the command line needs the extra 'study': pip install 'mmkey[study]' (missing: {', '.join(missing)})"
            )
            return 2
        from mmkey.cli.app import run  # noqa: PLC0415 (not before it is known to be there)

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code; ``argv`` is without the program's name."""
    code = _run(argv)
    if code == 130 and argv is None:
        # After an interrupt within exec() of a string CPython ends by SIGINT, whatever is returned.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
