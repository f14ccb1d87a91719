"""Shared by all tests: how Hypothesis runs here, and the fixtures that several test files use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import browser
import logical
from command_line import Within

# A failure prints the seed and a blob that repeat it; MMKEY_EXAMPLES=2000 searches longer than a test run should.
settings.register_profile(
    "mmkey",
    max_examples=int(os.environ.get("MMKEY_EXAMPLES", "60")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("mmkey")

VECTORS = logical.load_vectors()
WITHOUT_BROWSER = pytest.StashKey[str]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of one `vector` runs for each of the published ones."""
    if "vector" in metafunc.fixturenames:
        metafunc.parametrize("vector", VECTORS, ids=str)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a browser its tests are deselected, aloud; asked for with `-m browser` they run or fail."""
    reason = browser.why_not()
    if reason is None or "browser" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("browser")]
        config.hook.pytest_deselected(items=left_out)
        config.stash[WITHOUT_BROWSER] = f"{len(left_out)} tests of the pages in a browser were left out: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what was left out."""
    if WITHOUT_BROWSER in config.stash:
        terminalreporter.write_line(config.stash[WITHOUT_BROWSER], yellow=True)


@pytest.fixture(params=["sha256", "blake3"])
def algorithm(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[1, 16, 256])
def block_size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Within:
    """The command line run in this process, with a folder of its own as the working directory."""
    return Within(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the seven scenarios and of the matrix."""
    from mmkey.__main__ import main

    folder = tmp_path_factory.mktemp("results")
    assert main(["study", "--out", str(folder)]) == 0
    assert main(["study", "--out", str(folder), "--matrix"]) == 0
    return folder


@pytest.fixture
def copy(out: Path, tmp_path: Path) -> Path:
    """The JSON files and the evidence alone, free to be spoilt."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in [*out.glob("*.json"), out / "evidence.txt", out / ".mmkey-results"]:
        shutil.copy(path, folder)
    return folder
