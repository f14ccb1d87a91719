"""Results come into their folder whole or not at all, and what a report did not write stays as it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mmkey.study.interrupts import ends_by_unwinding, uninterrupted
from mmkey.study.staging import OutputError, Staging

if TYPE_CHECKING:
    from command_line import Within

PAGE = '<meta name="generator" content="mmkey 0.1.0">\n<meta name="mmkey-page" content="{}">\n{}'


def page(name: str, text: str = "") -> str:
    return PAGE.format(name, text)


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


def put(folder: Path, pages: dict[str, str], last: str = "index.html") -> None:
    with Staging(folder) as staging:
        staging.replace_pages(pages)
        staging.commit(last=last)


def test_pages_that_are_not_made_any_more_go_and_every_other_file_stays(tmp_path: Path) -> None:
    put(tmp_path, {name: page(name) for name in ("index.html", "old.html", "empty.html")})
    kept = {
        "backup.html": page("old.html"),  # a copy
        "mine.html": "<p>mine</p>",
        "quoting.html": 'It says <meta name="generator" content="mmkey 0.1.0"> there.',
        "old.txt": page("old.txt"),
    }
    for name, text in kept.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("huge.html", "empty_of_mine.html"):
        (tmp_path / name).touch()
    os.truncate(tmp_path / "huge.html", 1 << 40)  # a hole: only its head is looked at
    put(tmp_path, {"index.html": page("index.html", "new")})
    os.truncate(tmp_path / "huge.html", 0)
    kept |= {"huge.html": "", "empty_of_mine.html": ""}
    assert contents(tmp_path) == kept | {"index.html": page("index.html", "new")}


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("nothing"), lambda path: path.symlink_to("a")]
)
def test_what_is_no_regular_file_is_in_the_way_of_a_page(tmp_path: Path, make: Any) -> None:
    (tmp_path / "a").write_text(page("index.html"), encoding="utf-8")
    make(tmp_path / "index.html")
    with pytest.raises(OutputError, match=r"index\.html: in the way of the results"):
        put(tmp_path, {"index.html": page("index.html")})
    assert not (tmp_path / "index.html").is_file() or (tmp_path / "index.html").is_symlink()


@pytest.mark.parametrize("text", ["<h1>mine</h1>", page("another.html")])
def test_a_file_of_the_user_s_with_a_page_s_name_is_in_the_way(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match=r"index\.html: in the way of the results: it is no page that mmkey wrote"):
        put(tmp_path, {"index.html": page("index.html"), "a.html": page("a.html")})
    assert contents(tmp_path) == {"index.html": text}


def test_a_page_that_was_left_empty_by_a_full_disk_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    put(tmp_path, {"index.html": page("index.html")})
    assert contents(tmp_path) == {"index.html": page("index.html")}


@pytest.mark.parametrize("fails_at", range(6))
def test_after_an_error_in_the_middle_the_folder_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    put(tmp_path, {name: page(name, "old") for name in ("index.html", "a.html", "stale.html")})
    before = contents(tmp_path)
    real, calls = Path.replace, 0

    def replace(source: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == fails_at + 1:
            raise PermissionError(1, "Operation not permitted", str(source))
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(OutputError, match=r"\.html: cannot write: Operation not permitted") as error:
        put(tmp_path, {name: page(name, "new") for name in ("index.html", "a.html", "b.html")})
    assert str(tmp_path) in str(error.value)
    assert ".mmkey-study-" not in str(error.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM])
def test_a_signal_waits_until_all_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    put(tmp_path, {name: page(name, "old") for name in ("index.html", "a.html")})
    real = Path.replace

    def replace(source: Path, target: Path) -> Path:
        signal.raise_signal(number)
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path, {name: page(name, "new") for name in ("index.html", "a.html")})
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert contents(tmp_path) == {name: page(name, "new") for name in ("index.html", "a.html")}


def test_a_signal_while_it_is_cleaned_up_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.rmtree

    def rmtree(*args: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        real(*args, **options)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path, {"index.html": page("index.html")})
    finally:
        signal.signal(signal.SIGINT, before)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ends_by_unwinding(), uninterrupted():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_study_that_is_asked_to_end_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "mmkey", "study", "--matrix", "--out", "results"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not list(tmp_path.glob("results/.mmkey-study-*/*")):
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in said
    assert not (tmp_path / "results").exists()


def test_a_report_beside_a_page_of_the_user_s_says_so(tmp_path: Path, within: Within) -> None:
    assert within.run("study", "--scenario", "same_text_same_image", "--no-html").returncode == 0
    (tmp_path / "results/index.html").write_text("mine", encoding="utf-8")
    assert "index.html: in the way of the results" in within.complaint("report", "results")
    assert (tmp_path / "results/index.html").read_text(encoding="utf-8") == "mine"
