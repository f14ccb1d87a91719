"""digest_file: constant memory, and a file that changes while it is read."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import blake3 as pypi
import pytest

from mmkey import Content, hashing
from mmkey.errors import InvalidRequest, UnsupportedType

DATA = bytes(i % 251 for i in range(3_000_001))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "media"
    path.write_bytes(DATA)
    return path


def test_a_path_or_a_file_has_the_digest_of_its_bytes(path: Path) -> None:
    sha256, blake3 = hashlib.sha256(DATA).digest(), pypi.blake3(DATA).digest()
    for given in (path, str(path), os.fsencode(path)):
        assert hashing.digest_file(given) == sha256
        assert hashing.digest_file(given, "blake3", threads=2) == blake3
    with path.open("rb") as file:
        assert hashing.digest_file(file) == sha256
        assert file.read() == b""
    with path.open("rb", buffering=0) as file:
        assert hashing.digest_file(file, "blake3") == blake3
    empty = path.with_name("empty")
    empty.touch()
    assert hashing.digest_file(empty) == hashlib.sha256().digest()


def test_a_file_object_is_read_from_where_it_stands(path: Path) -> None:
    with path.open("rb") as file:
        file.seek(1000)
        assert hashing.digest_file(file) == hashlib.sha256(DATA[1000:]).digest()
    memory = io.BytesIO(DATA)
    memory.seek(1000)
    assert hashing.digest_file(memory) == hashlib.sha256(DATA[1000:]).digest()
    assert memory.read() == b""


def test_a_pipe_is_read_to_its_end() -> None:
    read, write = os.pipe()

    def feed() -> None:
        with os.fdopen(write, "wb") as out:
            out.write(DATA)

    thread = threading.Thread(target=feed)
    thread.start()
    with os.fdopen(read, "rb") as file:
        assert hashing.digest_file(file) == hashlib.sha256(DATA).digest()
    thread.join()


class Reader(io.RawIOBase):
    """A file that does something in the midst of being read."""

    def __init__(self, path: Path, act: object) -> None:
        self._file = path.open("rb", buffering=0)
        self._act = act

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: bytearray) -> int | None:
        got = self._file.readinto(buffer)
        if self._act is not None:
            self._act()
            self._act = None
        return got


def test_a_file_that_changes_while_it_is_read_is_an_error(path: Path) -> None:
    def append() -> None:
        with path.open("ab") as file:
            file.write(b"more")

    def touch() -> None:
        os.utime(path, ns=(1, 1))

    for act in (append, touch, lambda: os.truncate(path, 5)):
        with Reader(path, act) as file, pytest.raises(InvalidRequest, match="changed") as error:
            hashing.digest_file(file)
        assert error.value.field == "path_or_file"


def test_a_path_that_is_replaced_while_it_is_read_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = path.with_name("other")
    other.write_bytes(DATA)
    real = hashing.sha256

    def replace() -> object:
        os.replace(other, path)
        return real()

    monkeypatch.setattr(hashing, "sha256", replace)
    with pytest.raises(InvalidRequest, match="changed"):
        hashing.digest_file(path)


def test_what_is_no_binary_file_is_refused(path: Path) -> None:
    for wrong in (12, None, io.StringIO("text"), [path]):
        with pytest.raises(UnsupportedType) as error:
            hashing.digest_file(wrong)
        assert error.value.field == "path_or_file"
    with path.open(encoding="latin-1") as file, pytest.raises(UnsupportedType):
        hashing.digest_file(file)
    with pytest.raises(FileNotFoundError):
        hashing.digest_file(path.with_name("nowhere"))
    with pytest.raises(IsADirectoryError):
        hashing.digest_file(path.parent)


def test_a_file_whose_size_is_not_told_is_read_to_its_end() -> None:
    path = "/proc/version"
    assert os.stat(path).st_size == 0
    data = Path(path).read_bytes()
    assert hashing.digest_file(path) == hashlib.sha256(data).digest()
    content = Content.from_file(path)
    assert content.digest("sha256") == hashlib.sha256(data).digest()
    assert content == Content.from_bytes(data)
    assert hash(content) == hash(Content.from_bytes(data))


def test_a_file_that_gives_less_than_its_size_is_refused_for_that_reason() -> None:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not path.exists() or path.stat().st_size == len(path.read_bytes()):
        path = Path("/sys/devices/system/cpu/online")
    size, told = len(path.read_bytes()), path.stat().st_size
    assert size != told
    for work in (hashing.digest_file, lambda p: Content.from_file(p).digest("sha256")):
        with pytest.raises(InvalidRequest, match=f"gave {size} bytes where its size is {told}: .*does not know sizes"):
            work(path)
    with path.open("rb") as file:
        assert hashing.digest_file(file) == hashlib.sha256(path.read_bytes()).digest()


@pytest.mark.parametrize("size", [3, (8 << 20) + 1])
def test_a_path_that_has_become_a_pipe_is_refused_at_once(tmp_path: Path, size: int) -> None:
    path = tmp_path / "media"
    path.write_bytes(b"x" * size)
    content = Content.from_file(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UnsupportedType, match="no regular file") as error:
        content.digest("sha256")
    assert error.value.field == "content"


@pytest.mark.parametrize("path", ["nul\0here", b"nul\0here", "lone\ud800surrogate"])
def test_what_no_path_can_hold_is_told(path: str | bytes) -> None:
    with pytest.raises(InvalidRequest) as error:
        hashing.digest_file(path)
    assert error.value.field == "path_or_file"
    if isinstance(path, str):
        with pytest.raises(InvalidRequest) as error:
            Content.from_file(path)
        assert error.value.field == "content"


def test_a_path_object_that_gives_no_path_is_refused() -> None:
    class Pathless(os.PathLike):  # type: ignore[type-arg]
        def __fspath__(self) -> str:
            return 5  # type: ignore[return-value]

    for work, field in ((hashing.digest_file, "path_or_file"), (Content.from_file, "content")):
        with pytest.raises(UnsupportedType) as error:
            work(Pathless())
        assert error.value.field == field


class Bare:
    """A file with nothing but what reading needs."""

    def __init__(self, file: io.IOBase) -> None:
        self.read = file.read
        self.closed = file.closed


def test_a_closed_file_is_told(path: Path) -> None:
    files = [path.open("rb"), path.open("rb", buffering=0), io.BytesIO(DATA)]
    contents = [Content.from_file(file) for file in files]
    for file in files:
        file.close()
    for file in [*files, Bare(files[0])]:
        for work, field in ((hashing.digest_file, "path_or_file"), (Content.from_file, "content")):
            with pytest.raises(InvalidRequest, match="is a closed") as error:
                work(file)
            assert error.value.field == field
    for content in contents:
        with pytest.raises(InvalidRequest, match="is a closed") as error:
            content.digest("sha256")
        assert error.value.field == "content"


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 28)
    script = (
        "import resource, sys\n"
        "from mmkey import hashing\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "hashing.digest_file(sys.argv[1], 'blake3', threads=2)\n"
        "hashing.digest_file(sys.argv[1])\n"
        "assert peak() - before < 32 * 1024, (before, peak())\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=120)
