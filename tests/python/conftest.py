"""Fixtures that several test files use."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Within


@pytest.fixture
def within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Within:
    """The command line run in this process, with a folder of its own as the working directory."""
    return Within(tmp_path, monkeypatch, capsys)
