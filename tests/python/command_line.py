"""Runs the command line as a user does: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mmkey.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-W", "error", "-m", "mmkey"]


def mmkey(
    *args: object, cwd: Path, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The finished process; its output as text."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)], cwd=cwd, input=stdin, capture_output=True, env={**os.environ, **(env or {})}
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    )


def mmkey_json(*args: object, cwd: Path, stdin: bytes = b"") -> Any:
    """What a successful command prints with --json: JSON and nothing else."""
    done = mmkey(*args, "--json", cwd=cwd, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def complaint(*args: object, cwd: Path, stdin: bytes = b"") -> str:
    """The one line on stderr of a command that fails with exit code 2 and prints nothing."""
    done = mmkey(*args, cwd=cwd, stdin=stdin)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("mmkey: ")
    return line


class Within:
    """The same commands run in this process, which is quicker, for what a process of its own would show no better."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.chdir(folder)
        self._capsys = capsys

    def run(self, *args: object) -> subprocess.CompletedProcess[str]:
        """The exit code and what was printed."""
        self._capsys.readouterr()
        code = main([str(arg) for arg in args])
        captured = self._capsys.readouterr()
        return subprocess.CompletedProcess([str(arg) for arg in args], code, captured.out, captured.err)

    def json(self, *args: object) -> Any:
        """What a successful command prints with --json."""
        done = self.run(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def complaint(self, *args: object) -> str:
        """The one line on stderr of a command that fails with exit code 2 and prints nothing."""
        done = self.run(*args)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith("mmkey: ")
        return line
