"""The command line as a whole: help, exit codes, interruption, and what it leaves on disk when it fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from command_line import COMMAND, Within, mmkey, mmkey_json
from mmkey.__main__ import main

COMMANDS = ["study", "key", "kernels", "selftest"]


def test_help_lists_every_command_and_each_has_help_with_an_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = mmkey("--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == mmkey(cwd=tmp_path).stdout, "no command at all shows the help"
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)
        assert main([command, "--help"]) == 0
        assert re.search(rf"^  Example: .*mmkey {command}", capsys.readouterr().out, re.MULTILINE)


def test_help_is_quick_since_it_imports_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['mmkey', '--help']; from mmkey.__main__ import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert "typer" in modules
    assert not modules & {"pydantic", "PIL", "av", "mmkey.study.run", "mmkey.study.simulator"}


@pytest.mark.parametrize("missing", ["typer", "rich", "pydantic", "PIL"])
def test_without_the_extra_one_line_says_how_to_get_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from mmkey.__main__ import main; sys.exit(main(['study']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "pip install 'mmkey[study]'" in line


def test_the_installed_command_is_the_module(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("mmkey")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r"mmkey \d+\.\d+\.\d+\n", done.stdout)
    assert done.stdout == mmkey("--version", cwd=tmp_path).stdout


@pytest.mark.parametrize("as_module", [True, False])
def test_a_forced_kernel_that_is_not_there_is_one_line(as_module: bool, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mmkey"] if as_module else [Path(sys.executable).with_name("mmkey")]
    env = {**os.environ, "MMKEY_FORCE_KERNEL": "avx1024"}
    done = subprocess.run([*command, "kernels"], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("mmkey: MMKEY_FORCE_KERNEL: 'avx1024' is no kernel")
    assert "portable" in line


def test_kernels_are_shown_by_algorithm_and_obey_the_forced_one(tmp_path: Path, within: Within) -> None:
    table = within.json("kernels")
    assert set(table) >= {"sha256", "blake3"}
    text = mmkey("kernels", cwd=tmp_path, env={"MMKEY_FORCE_KERNEL": "portable"})
    assert (text.returncode, text.stderr) == (0, "")
    lines = [line.split() for line in text.stdout.splitlines()]
    assert {line[0] for line in lines} == set(table)
    assert all(line[2] == "portable" for line in lines)


def test_a_forced_kernel_of_any_bytes_is_told_in_one_line(tmp_path: Path) -> None:
    env = {**os.environb, b"MMKEY_FORCE_KERNEL": b"\xff\nb"}
    for command in (["-m", "mmkey", "kernels"], ["-c", "import mmkey"]):
        done = subprocess.run([sys.executable, *command], env=env, capture_output=True, encoding="utf-8", cwd=tmp_path)
        assert done.returncode != 0
        line = done.stderr.splitlines()[-1]
        assert r"MMKEY_FORCE_KERNEL: '\xff b' is no kernel" in line


def test_selftest_passes_here_and_says_so(tmp_path: Path) -> None:
    assert mmkey("selftest", cwd=tmp_path).stdout.startswith("ok: ")
    assert mmkey_json("selftest", cwd=tmp_path)["ok"] is True


def test_a_failing_selftest_exits_with_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise RuntimeError("sha256 portable: wrong digest of 64 bytes")

    monkeypatch.setattr("mmkey.selftest", fail)
    assert main(["selftest"]) == 1
    assert capsys.readouterr().err == "mmkey: self-test failed: sha256 portable: wrong digest of 64 bytes\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("kernels >&-", "mmkey: stdout: is closed; redirect it to /dev/null to print nothing"),
        ("kernels --json >&-", "mmkey: stdout: is closed; redirect it to /dev/null to print nothing"),
        ("key - <&-", "mmkey: stdin: is closed"),
        ("key - 0>written", "mmkey: stdin: Bad file descriptor"),
    ],
)
def test_a_stream_that_is_closed_or_unfit_is_named_in_one_line(command: str, words: str, tmp_path: Path) -> None:
    done = subprocess.run(["sh", "-c", f'"$0" -m mmkey {command}', sys.executable], capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.decode().splitlines()) == (2, b"", [words])


def test_with_stderr_closed_errors_do_not_get_into_stdout(tmp_path: Path) -> None:
    for arguments in ("nonsense", "key absent.json", "study --out ''"):
        command = f'"$0" -m mmkey {arguments} 2>&-'
        done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nonsense",), "nonsense"),
        (("--nonsense",), "--nonsense"),
        (("study", "--scenario", "nonsense"), "--scenario: 'nonsense' is none of same_text_same_image, "),
        (("study", "--scenario"), "--scenario"),
        (("study", "--algorithm", "md5"), "--algorithm: 'md5' is none of sha256, blake3"),
        (("study", "--block-size", "0"), "--block-size: 0 is less than 1"),
        (("study", "--block-size", "1.5"), "--block-size"),
        (("study", "--kv-bytes", "-1"), "--kv-bytes: -1 is less than 1"),
        (("study", "--images", "absent"), "--images absent: No such file or directory"),
        (("study", "--images", "file"), "--images file: Not a directory"),
        (("study", "--video", "x", "--scenario", "same_text_same_image"), "--video x: none of the scenarios chosen"),
        (("study", "extra"), "extra"),
        (("study", "--out", "file"), "file: cannot write results there: Not a directory"),
        (("study", "--out", "file/sub"), "cannot write results there: Not a directory"),
        (("study", "--out", ""), "--out: empty"),
        (("study", "--out", "x" * 300), "File name too long"),
        (("study", "--out", "/proc/mmkey"), "/proc/mmkey: cannot write results there"),
    ],
)
def test_bad_usage_is_one_line_and_writes_nothing(
    args: tuple[str, ...], words: str, tmp_path: Path, within: Within
) -> None:
    (tmp_path / "file").write_text("x")
    assert words in within.complaint(*args)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_results_that_something_is_in_the_way_of_leave_all_as_it_was(tmp_path: Path, within: Within) -> None:
    out = tmp_path / "out"
    (out / "summary.json").mkdir(parents=True)
    assert f"{out / 'summary.json'}: in the way" in within.complaint("study", "--out", out)
    assert [p.name for p in out.iterdir()] == ["summary.json"]
    (out / "summary.json").rmdir()
    (out / "inputs").write_text("mine")
    assert f"{out / 'inputs'}: in the way" in within.complaint("study", "--out", out)
    assert [p.name for p in out.iterdir()] == ["inputs"]
    assert (out / "inputs").read_text() == "mine"


@pytest.mark.parametrize("blocks", [0, 1, 8])
@pytest.mark.parametrize("kind", ["", "--matrix", "--capacity 10 --requests 100"])
def test_without_room_for_the_results_one_line_says_where_they_were_to_go(
    kind: str, blocks: int, tmp_path: Path
) -> None:
    # A limit on a file's size fails a write as a full disk does.
    command = f'ulimit -f {blocks}; exec "$0" -B -m mmkey study {kind} --out some/where'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("mmkey: some/where")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["kernels", "kernels --json"])
def test_a_full_stdout_is_named_in_one_line(command: str, tmp_path: Path) -> None:
    run = ["sh", "-c", f'"$0" -m mmkey {command} >/dev/full', sys.executable]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=buffered)
    assert (done.returncode, done.stderr) == (2, "mmkey: stdout: No space left on device\n")


def test_a_new_study_in_an_old_folder_replaces_its_own_files_and_no_others(tmp_path: Path, within: Within) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/notes.txt").write_text("mine")
    for block_size in ("12", "16"):
        assert within.run("study", "--block-size", block_size).returncode == 0
    assert (tmp_path / "results/notes.txt").read_text() == "mine"
    assert '"block_size": 16' in (tmp_path / "results/summary.json").read_text()
    assert [p.name for p in (tmp_path / "results").iterdir() if p.name.startswith(".")] == [".mmkey-results"]


@pytest.mark.parametrize("name", ["summary.json", "evidence.txt", "inputs/same_text_same_image/first-1-harbour.png"])
def test_a_file_of_the_user_s_with_the_name_of_a_result_is_in_the_way(
    tmp_path: Path, within: Within, name: str
) -> None:
    out = tmp_path / "mine"
    mine = out / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    assert f"{mine}: in the way of the results: it is not of mmkey's" in within.complaint("study", "--out", out)
    assert [p for p in out.rglob("*") if p.is_file()] == [mine]
    assert mine.read_text(encoding="utf-8") == "mine"


def folder_of_many(folder: Path) -> Path:
    """So many pictures that a study of them does not end before it is interrupted."""
    folder.mkdir()
    Image.effect_noise((640, 480), 80).save(folder / "first.png")
    for i in range(500):
        (folder / f"{i}.png").hardlink_to(folder / "first.png")
    return folder


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a shell starts in the background ignores Ctrl-C, and so would all that a test starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_study_leaves_nothing_behind(number: int, code: int, tmp_path: Path) -> None:
    pictures = folder_of_many(tmp_path / "pictures")
    out = tmp_path / "deep" / "results"
    # Without -W error: a signal between a library's open() and its close() leaves a file to the garbage collector.
    with subprocess.Popen(
        [sys.executable, "-m", "mmkey", "study", "--images", str(pictures), "--out", str(out)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not (out.is_dir() and any(out.iterdir())):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert stdout == ""
    assert stderr == ("mmkey: interrupted\n" if number == signal.SIGINT else "")
    assert not (tmp_path / "deep").exists()


def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    """Through a pseudo-terminal: colours by default, none with NO_COLOR, the same words either way."""
    pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")

    def on_a_terminal(**env: str) -> str:
        master, slave = pty.openpty()
        with subprocess.Popen(
            [*COMMAND, "study"],
            cwd=tmp_path,
            stdout=slave,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **env},
        ) as process:
            os.close(slave)
            chunks = []
            try:
                while chunk := os.read(master, 65536):
                    chunks.append(chunk)
            except OSError:  # how Linux says that the other end has closed
                pass
        os.close(master)
        assert process.returncode == 0
        return b"".join(chunks).decode()

    coloured, plain = on_a_terminal(), on_a_terminal(NO_COLOR="1")
    assert "\x1b[" in coloured
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain)
    words = [[line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()] for text in (coloured, plain)]
    assert words[0] == words[1]
