"""The figures that the library promises, each measured beside its peer in one run: demanded, measured, verdict.

    python benchmarks/figures.py [--install] [--json FILE]

What is compared runs in turns; a figure is a median. Times are CPU times of a thread, so that a busy machine blurs them
less. Exits with 1 if a figure falls short.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import processes
from rich.console import Console
from rich.table import Table

import mmkey
from mmkey.study.bench import peers, workloads
from mmkey.study.bench.timing import take_turns
from mmkey.study.bench.workloads import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 101
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One promise. `at_most` or `at_least` is given, both in `unit`."""

    name: str
    measured: float
    unit: str = "x"
    at_most: float | None = None
    at_least: float | None = None

    @property
    def demanded(self) -> str:
        if self.at_most is not None:
            return f"at most {self.at_most:g} {self.unit}"
        return f"at least {self.at_least:g} {self.unit}"

    @property
    def passed(self) -> bool:
        return self.measured <= self.at_most if self.at_most is not None else self.measured >= (self.at_least or 0)


# ---------------------------------------------------------------- times, all in turns


def pictures_by_digest(count: int) -> tuple[list[mmkey.Item], list[tuple[int, int]]]:
    """Pictures of 144 tokens that were hashed elsewhere, 200 tokens apart."""
    contents = [mmkey.Content.from_digest("bytes", "sha256", bytes([number]) * 32) for number in range(count)]
    metadata = workloads.prompt(Load(8_192, 1)).metadata
    items = [mmkey.Image(content, **metadata) for content in contents]
    return items, [(100 + 200 * number, metadata["num_visual_tokens"]) for number in range(count)]


def timed_cases() -> dict[str, Callable[[], object]]:
    short, kibibyte, half_a_page, pixels = (np.random.default_rng(n).bytes(n) for n in (96, 1_024, 32_768, 6_220_800))
    engine_a, engine_c = mmkey.KeyEngine("A"), workloads.engine("C")
    long = engine_a.prepare(mmkey.Request(workloads.prompt(Load(131_072)).token_ids))
    messages = peers.ready_messages(workloads.prompt(Load(131_072)).token_ids, engine_a.root)
    if peers.hash_each(messages, hashlib.sha256) != engine_a.block_keys(long)[-1].tobytes():
        raise AssertionError("the loop of hashlib does not hash the messages of the block keys")
    token_ids = workloads.prompt(Load(8_192)).token_ids
    items, layout = pictures_by_digest(4)

    def stream(make: Callable[[], mmkey.sha256 | mmkey.blake3]) -> bytes:
        hasher = make()
        hasher.update(kibibyte)
        return hasher.digest()

    return {
        "96 B": lambda: mmkey.digest(short),
        "96 B, hashlib": lambda: hashlib.sha256(short).digest(),
        "6.2 MB": lambda: mmkey.digest(pixels),
        "6.2 MB, hashlib": lambda: hashlib.sha256(pixels).digest(),
        "block keys": lambda: engine_a.block_keys(long),
        "block keys, hashlib": lambda: peers.hash_each(messages, hashlib.sha256),
        "key C": lambda: engine_c.key(engine_c.prepare(mmkey.Request(token_ids, items, layout))),
        "32 KiB, hashlib": lambda: hashlib.sha256(half_a_page).digest(),
        "1 KiB, sha256": lambda: mmkey.digest(kibibyte),
        "1 KiB, sha256 object": lambda: stream(mmkey.sha256),
        "1 KiB, blake3": lambda: mmkey.digest(kibibyte, "blake3"),
        "1 KiB, blake3 object": lambda: stream(mmkey.blake3),
    }


def timed() -> Iterator[Figure]:
    timing = take_turns(timed_cases(), rounds=ROUNDS)
    yield Figure("digest of 96 bytes: time, of hashlib's", timing.ratio("96 B", to="96 B, hashlib"), at_most=0.5)
    yield Figure("SHA-256 of 6.2 MB: speed, of hashlib's", timing.ratio("6.2 MB, hashlib", to="6.2 MB"), at_least=0.95)
    yield Figure(
        "block keys of 131,072 tokens: speed, of a hashlib loop's over the same messages",
        timing.ratio("block keys, hashlib", to="block keys"),
        at_least=4,
    )
    yield Figure(
        "request, prepare and key C of 8,192 tokens, 4 pictures by digest: time, of hashlib's for 32 KiB",
        timing.ratio("key C", to="32 KiB, hashlib"),
        at_most=3,
    )
    for algorithm in workloads.ALGORITHMS:
        ratio = timing.ratio(f"1 KiB, {algorithm} object", to=f"1 KiB, {algorithm}")
        yield Figure(f"{algorithm} object on 1 KiB: time, of the one-shot call's", ratio, at_most=1.3)


# ---------------------------------------------------------------- the rest


def chained() -> Iterator[Figure]:
    early, late = processes.growing_chain(10_000, pictures=8)
    yield Figure("a new block at 10,000 tokens with media: time, of one's at the start", late / early, at_most=1.2)


def threaded() -> Iterator[Figure]:
    for algorithm in workloads.ALGORITHMS:
        kept = processes.counter_speed_kept(algorithm, 8 * MEBIBYTE)
        yield Figure(f"a counting thread's speed while {algorithm} hashes 8 MB", 100 * kept, "%", at_least=80)
    for algorithm in workloads.ALGORITHMS:
        agrees = processes.updates_from_threads(algorithm, threads=1_000, updates=100)
        yield Figure(f"{algorithm} object under 1,000 threads x 100 updates: agrees with one", agrees, "", at_least=1)


def in_processes() -> Iterator[Figure]:
    for algorithm in workloads.ALGORITHMS:
        growth = processes.file_digest_growth(algorithm, 1 << 30) / MEBIBYTE
        yield Figure(f"digest_file of 1 GiB, {algorithm}: memory on top", growth, "MiB", at_most=32)
    yield Figure("import mmkey on top of NumPy", 1e3 * processes.import_time(), "ms", at_most=30)


def installed() -> Iterator[Figure]:
    wall, cpu = processes.install_time()
    yield Figure("pip install . from nothing", wall, "s", at_most=120)
    yield Figure("pip install . from nothing: CPU time", cpu, "s", at_most=240)


def print_table(figures: list[Figure], console: Console) -> None:
    table = Table(pad_edge=False)
    table.add_column("figure")
    for name in ("demanded", "measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    for figure in figures:
        verdict = "[green]holds" if figure.passed else "[bold red]FALLS SHORT"
        table.add_row(figure.name, figure.demanded, f"{figure.measured:.3g} {figure.unit}", verdict)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="also build and install from nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    for measure in (timed, chained, threaded, in_processes, *([installed] if arguments.install else [])):
        sys.stderr.write(f"measuring: {measure.__name__.replace('_', ' ')} ...\n")
        figures += measure()
    print_table(figures, Console(width=max(100, Console().width)))
    if arguments.json:
        found = [asdict(figure) | {"passed": figure.passed} for figure in figures]
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"kernels": mmkey.kernels(), "figures": found}, file, indent=2)
    return 0 if all(figure.passed for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
