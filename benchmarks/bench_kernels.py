"""Digests against hashlib and PyPI blake3, in one run: `python benchmarks/bench_kernels.py [--rounds N] [--json FILE]`.

Every row times its sides in turn, round by round, so that what else the machine does meets them alike, and
gives the median of each side and the ratio of the medians. Rows on one thread count that thread's CPU time,
which a busy machine stretches less than the wall clock's; rows on two threads count the wall clock's. Buffers
are made before; a side's result is compared with its peer's once.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import blake3 as pypi
import numpy as np
from PIL import Image

import mmkey
from mmkey import hashing

PICTURE = 336 * 336 * 3
LARGE = 1920 * 1080 * 3


@dataclass
class Row:
    name: str
    peer: str
    at_least: float | None
    aim: float | None
    peer_ns: float
    ours_ns: float

    @property
    def ratio(self) -> float:
        return self.peer_ns / self.ours_ns


Clock = Callable[[], int]


def measure(peer: Callable[[], object], ours: Callable[[], object], rounds: int, clock: Clock) -> tuple[float, float]:
    """Median nanoseconds a call of each, from interleaved rounds of about five milliseconds."""
    sides = (peer, ours)
    calls = []
    for side in sides:
        side()
        begin = clock()
        side()
        calls.append(max(1, int(5e6 / max(1, clock() - begin))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for side, count, record in zip(sides, calls, times, strict=True):
            repeat = range(count)
            begin = clock()
            for _ in repeat:
                side()
            record.append((clock() - begin) / count)
    return statistics.median(times[0]), statistics.median(times[1])


def sha256_loop(messages: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    return [sha256(message).digest() for message in messages]


def blake3_loop(messages: list[bytes]) -> list[bytes]:
    blake3 = pypi.blake3
    return [blake3(message).digest() for message in messages]


def rows(rounds: int) -> list[Row]:
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, 200 << 20, dtype=np.uint8).tobytes()
    found: list[Row] = []

    def batch(size: int, count: int) -> list[bytes]:
        return [noise[i * size : (i + 1) * size] for i in range(count)]

    def add(
        name: str,
        peer_name: str,
        at_least: float | None,
        aim: float | None,
        peer: Callable[[], object],
        ours: Callable[[], object],
        *,
        same: bool = True,
        clock: Clock = time.thread_time_ns,
    ) -> None:
        if same:
            left, right = peer(), ours()
            left = left if isinstance(left, bytes) else b"".join(left)
            right = right if isinstance(right, bytes) else bytes(right.data)
            assert left == right, name
        row = Row(name, peer_name, at_least, aim, *measure(peer, ours, rounds, clock))
        found.append(row)
        show(row)

    def many(messages: list[bytes], algorithm: str, threads: int = 1) -> Callable[[], object]:
        return lambda: hashing.digest_many(messages, algorithm, threads=threads)

    for count, at_least, aim in ((1, 0.97, 1.0), (2, 1.1, 1.2), (5, 1.1, 1.2), (8, 1.4, 1.7), (16, 2.1, 2.4)):
        pictures = batch(PICTURE, count)
        add(
            f"SHA-256, {count} x {PICTURE:,} B",
            "hashlib loop",
            at_least,
            aim,
            lambda p=pictures: sha256_loop(p),
            many(pictures, "sha256"),
        )
    sizes = [int(5_000 * math.exp(math.log(1600) * (i + 0.5) / 64)) for i in range(64)]
    random.Random(1).shuffle(sizes)
    ragged = [noise[i * 100_000 : i * 100_000 + size] for i, size in enumerate(sizes)]
    add(
        "SHA-256, 64 files of 5 KB to 8 MB",
        "hashlib loop",
        1.6,
        1.85,
        lambda: sha256_loop(ragged),
        many(ragged, "sha256"),
    )
    pictures = batch(PICTURE, 32)
    add(
        "SHA-256, 32 pictures, 2 threads",
        "hashlib loop",
        3.4,
        3.9,
        lambda: sha256_loop(pictures),
        many(pictures, "sha256", 2),
        clock=time.perf_counter_ns,
    )
    for size, at_least, aim in (
        (1024, 1.1, 1.4),
        (4096, 0.95, 1.2),
        (PICTURE, 1.0, 1.08),
        (LARGE, 1.05, 1.12),
        (64 << 20, 1.05, 1.12),
    ):
        data = noise[:size]
        add(
            f"BLAKE3, {size:,} B",
            "PyPI blake3",
            at_least,
            aim,
            lambda d=data: pypi.blake3(d).digest(),
            lambda d=data: hashing.digest(d, "blake3"),
        )
    data = noise[:LARGE]
    add(
        f"BLAKE3, {LARGE:,} B, 2 threads",
        "PyPI blake3 AUTO",
        1.0,
        1.1,
        lambda: pypi.blake3(data, max_threads=pypi.blake3.AUTO).digest(),
        lambda: hashing.digest(data, "blake3", threads=2),
        clock=time.perf_counter_ns,
    )
    small = batch(96, 8192)
    add("SHA-256, 8,192 x 96 B", "hashlib loop", 8, 10, lambda: sha256_loop(small), many(small, "sha256"))
    add("BLAKE3, 8,192 x 96 B", "PyPI blake3 loop", 12, 16, lambda: blake3_loop(small), many(small, "blake3"))
    one = noise[:96]
    add("SHA-256, 96 B, one call", "hashlib", 2.5, 3, lambda: hashlib.sha256(one).digest(), lambda: hashing.digest(one))
    add(
        "BLAKE3, 96 B, one call",
        "PyPI blake3",
        None,
        None,
        lambda: pypi.blake3(one).digest(),
        lambda: hashing.digest(one, "blake3"),
    )
    kilo = noise[:1024]
    for algorithm in ("sha256", "blake3"):
        make = getattr(hashing, algorithm)

        def stream(make=make) -> bytes:
            hasher = make()
            hasher.update(kilo)
            return hasher.digest()

        add(
            f"{algorithm} object, 1,024 B",
            "mmkey one-shot",
            1 / 1.3,
            1.0,
            lambda a=algorithm: hashing.digest(kilo, a),
            stream,
        )
    chain_rows(add, noise)
    picture = Image.frombytes("RGB", (1920, 1080), noise[:LARGE])
    add(
        "BLAKE3, a Pillow picture of 1920 x 1080 to its digest",
        "PyPI blake3 of numpy.asarray",
        1.5,
        2,
        lambda: pypi.blake3(np.asarray(picture)).digest(),
        lambda: mmkey.Content.from_image(picture).digest("blake3"),
        same=False,
    )
    return found


def chain_rows(add: Callable[..., None], noise: bytes) -> None:
    """Block keys of 131,072 tokens: the messages of 16 tokens each, ready-made for the peer's loop."""
    tokens = np.frombuffer(noise[: 4 * 131_072], dtype="<u4") % 150_000
    messages = [bytes(105)] * (len(tokens) // 16)
    mixed = [*[bytes(160)] * (len(messages) // 4), *[bytes(105)] * (len(messages) * 3 // 4)]
    layout = [(2304 * i, 576) for i in range(len(tokens) // 2304)]  # a quarter of the positions, whole blocks
    items = [mmkey.Item(mmkey.Content.from_digest("bytes", "sha256", bytes([i]) * 32)) for i in range(len(layout))]
    for algorithm in ("sha256", "blake3"):
        engine = mmkey.KeyEngine("A", algorithm=algorithm, block_size=16)
        request = mmkey.Request(tokens)
        listed = tokens.tolist()
        placing = mmkey.KeyEngine("B", algorithm=algorithm, block_size=16)
        prepared = placing.prepare(mmkey.Request(tokens, items, layout))
        name = f"{algorithm}, block keys of 131,072 tokens"
        add(
            name,
            "hashlib loop",
            7,
            9,
            lambda: sha256_loop(messages),
            lambda e=engine, r=request: e.block_keys(r),
            same=False,
        )
        add(
            f"{name}, a quarter of them in pictures",
            "hashlib loop",
            6,
            8,
            lambda: sha256_loop(mixed),
            lambda e=placing, r=prepared: e.block_keys(r),
            same=False,
        )
        add(
            f"{name}, from a list",
            "hashlib loop",
            6,
            7.5,
            lambda: sha256_loop(messages),
            lambda e=engine, t=listed: e.block_keys(mmkey.Request(t)),
            same=False,
        )
        parts = [mmkey.Request(part) for part in np.split(tokens, 4)]
        add(
            f"{algorithm}, block keys of 4 requests of 32,768 tokens",
            "one after the other",
            2.5 if algorithm == "blake3" else None,
            3.5 if algorithm == "blake3" else None,
            lambda e=engine, p=parts: [e.block_keys(part) for part in p],
            lambda e=engine, p=parts: e.block_keys_many(p),
            same=False,
        )


def show(row: Row) -> None:
    goal = "" if row.at_least is None else f"(at least {row.at_least:.3g}, aim {row.aim:.3g})"
    times = f"{row.peer_ns / 1e3:,.2f} us | {row.ours_ns / 1e3:,.2f} us"
    print(f"| {row.name} | {row.peer} | {times} | **{row.ratio:.2f} x** {goal} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, kernels {hashing.kernels()}\n")
    print("| what | peer | peer's time | ours | ratio |\n| --- | --- | --- | --- | --- |")
    found = rows(arguments.rounds)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump([{**asdict(row), "ratio": row.ratio} for row in found], file, indent=1)


if __name__ == "__main__":
    main()
