"""Contents whose streams ask for each other from several threads: one of them is refused, none waits for ever."""

from __future__ import annotations

import hashlib
import io
import threading
from typing import Any

import pytest

import mmkey


class Ring:
    """Streams, each of which asks for the next one's content while it is read, once all of them are being read."""

    def __init__(self, size: int, *, passes_over: bool) -> None:
        met = threading.Barrier(size)
        self.refused: list[int] = []

        class Asking(io.BytesIO):
            def __init__(self, number: int) -> None:
                super().__init__(b"picture %d" % number)
                self.number = number
                self.asked = False

            def readinto(self, buffer: Any) -> int:
                if not self.asked:
                    self.asked = True
                    met.wait(20)
                    try:
                        contents[(self.number + 1) % size].digest("sha256")
                    except mmkey.InvalidRequest as problem:
                        refused.append(self.number)
                        assert problem.field == "content"
                        if not passes_over:
                            raise
                return super().readinto(buffer)

        refused = self.refused
        contents = self.contents = [mmkey.Content.from_file(Asking(n)) for n in range(size)]

    def run(self) -> list[bytes | mmkey.InvalidRequest]:
        """What each thread got."""
        found: dict[int, bytes | mmkey.InvalidRequest] = {}

        def work(number: int) -> None:
            try:
                found[number] = self.contents[number].digest("sha256")
            except mmkey.InvalidRequest as problem:
                found[number] = problem

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(len(self.contents))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        return [found[number] for number in range(len(threads))]


@pytest.mark.parametrize("size", [2, 3, 7])
def test_streams_that_ask_for_each_other_in_a_ring_all_end_with_an_error(size: int) -> None:
    for found in Ring(size, passes_over=False).run():
        assert isinstance(found, mmkey.InvalidRequest)
        assert found.field == "content"


@pytest.mark.parametrize("size", [2, 3, 7])
def test_where_the_one_that_is_refused_reads_on_all_are_hashed(size: int) -> None:
    ring = Ring(size, passes_over=True)
    assert ring.run() == [hashlib.sha256(b"picture %d" % n).digest() for n in range(size)]
    assert len(ring.refused) == 1


def test_threads_that_wait_for_one_that_waits_for_none_are_not_refused() -> None:
    release, reading = threading.Event(), threading.Event()

    class Slow(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            reading.set()
            assert release.wait(20)
            return super().readinto(buffer)

    content = mmkey.Content.from_file(Slow(b"a picture"))
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(content.digest("sha256")), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert reading.wait(20)
    release.set()
    for thread in threads:
        thread.join(20)
    assert found == [hashlib.sha256(b"a picture").digest()] * 4
