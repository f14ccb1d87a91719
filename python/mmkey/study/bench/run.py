"""The measurements of ``mmkey bench``: plain data, fit for JSON."""

from __future__ import annotations

import functools
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import mmkey
from mmkey.study.bench import peers, workloads
from mmkey.study.bench.timing import take_turns
from mmkey.study.bench.workloads import Load

if TYPE_CHECKING:
    from collections.abc import Callable

    Case = Callable[[], object]

MESSAGES = (96, 1_024, 338_688, 6_220_800)  # bytes: a block's message, a small one, 336x336 and 1920x1080 pixels
BATCHES = ((1_000, 96), (16, 338_688))  # (messages, bytes of each)
CHAINS = (8_192, 131_072)  # tokens
LOADS = [Load(tokens) for tokens in workloads.TOKENS] + workloads.every_load((8_192,))[1:]
ROUNDS = 25
_PEER = {"sha256": "hashlib", "blake3": "blake3"}


@dataclass(frozen=True)
class Row:
    """One line of a table: cases that are measured in turns."""

    group: str
    about: dict[str, Any]
    cases: Callable[[], dict[str, Case]]

    def measure(self, seconds: float) -> dict[str, Any]:
        """The row as JSON: what it is about; seconds a call; how many times as fast as each peer mmkey is."""
        timing = take_turns(self.cases(), rounds=ROUNDS, seconds=seconds)
        times = timing.medians()
        ours = "C" if "C" in times else "mmkey"
        speedup = {name: round(timing.ratio(name, ours), 3) for name in times if name not in {"mmkey", *"ABC"}}
        return {**self.about, "seconds": times, "speedup": speedup}


def rows() -> list[Row]:
    """All that is measured, in the order of the tables."""
    return [
        *(
            Row("digests", {"algorithm": a, "bytes": n}, functools.partial(_digest, a, n))
            for a in _PEER
            for n in MESSAGES
        ),
        *(
            Row("batches", {"algorithm": a, "messages": m, "bytes": n}, functools.partial(_batch, a, m, n))
            for a in _PEER
            for m, n in BATCHES
        ),
        *(
            Row("block_keys", {"algorithm": a, "tokens": n}, functools.partial(_chain, a, n))
            for a in _PEER
            for n in CHAINS
        ),
        *(
            Row(
                "requests",
                {"algorithm": a, "tokens": load.tokens, "pictures": load.pictures}
                | ({"size": load.size, "form": load.form} if load.pictures else {"size": None, "form": None}),
                functools.partial(_request, a, load),
            )
            for a in _PEER
            for load in LOADS
        ),
    ]


def bench(seconds: float, step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Measures everything within about `seconds`, each row at least three times; calls `step` after each of `rows`."""
    end = time.perf_counter() + seconds
    todo = rows()
    found: dict[str, Any] = {"machine": _machine(), "kernels": mmkey.kernels()}
    for done, row in enumerate(todo):
        share = max(0.0, end - time.perf_counter()) / (len(todo) - done)
        found.setdefault(row.group, []).append(row.measure(share))
        step()
    return found


def _machine() -> dict[str, Any]:
    return {
        "cpu": _cpu() or platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "peers": {name: peers.installed(name) for name in ("blake3", "cbor2")},
    }


def _cpu() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), None)
    except OSError:
        return None


def _message(size: int, number: int = 0) -> bytes:
    return np.random.default_rng([size, number]).bytes(size)


def _digest(algorithm: str, size: int) -> dict[str, Case]:
    message = _message(size)
    cases: dict[str, Case] = {"mmkey": lambda: mmkey.digest(message, algorithm)}
    if (peer := peers.hash_of(algorithm)) is not None:
        cases[_PEER[algorithm]] = lambda: peer(message).digest()
    return cases


def _batch(algorithm: str, count: int, size: int) -> dict[str, Case]:
    messages = [_message(size, number) for number in range(count)]
    cases: dict[str, Case] = {"mmkey": lambda: mmkey.digest_many(messages, algorithm)}
    if (peer := peers.hash_of(algorithm)) is not None:
        cases[_PEER[algorithm]] = lambda: peers.hash_each(messages, peer)
    return cases


def _chain(algorithm: str, tokens: int) -> dict[str, Case]:
    prompt = workloads.prompt(Load(tokens))
    engine = workloads.engine("A", algorithm)
    prepared = engine.prepare(prompt.request())
    cases: dict[str, Case] = {"mmkey": lambda: engine.block_keys(prepared)}
    if (peer := peers.hash_of(algorithm)) is not None:
        pickled = peers.pickled()
        cases["pickle"] = lambda: peers.chain_of_tuples(prompt.token_list, peer, pickled)
        if (cbor := peers.canonical_cbor()) is not None:
            cases["cbor2"] = lambda: peers.chain_of_tuples(prompt.token_list, peer, cbor)
    return cases


def _request(algorithm: str, load: Load) -> dict[str, Case]:
    prompt = workloads.prompt(load)
    cases: dict[str, Case] = {
        strategy: functools.partial(workloads.serve, workloads.engine(strategy, algorithm), prompt)
        for strategy in workloads.STRATEGIES
    }
    if (peer := peers.hash_of(algorithm)) is not None:
        cases["usual"] = lambda: peers.usual(prompt, peer)
    return cases
