"""Digests: one call, a streaming object and batches, beside hashlib and PyPI's blake3."""

from __future__ import annotations

import hashlib
import time

import blake3
import numpy as np
import pytest

import mmkey
from mmkey.study.bench.peers import hash_each
from mmkey.study.bench.run import BATCHES, MESSAGES

pytestmark = pytest.mark.benchmark(timer=time.thread_time, min_time=1e-4, max_time=0.3, min_rounds=5)

ONE_SHOT = {
    "sha256": {"mmkey": mmkey.digest, "hashlib": lambda data: hashlib.sha256(data).digest()},
    "blake3": {
        "mmkey": lambda data: mmkey.digest(data, "blake3"),
        "pypi-blake3": lambda data: blake3.blake3(data).digest(),
    },
}
STREAM = {
    "sha256": {"mmkey": mmkey.sha256, "hashlib": hashlib.sha256},
    "blake3": {"mmkey": mmkey.blake3, "pypi-blake3": blake3.blake3},
}
BATCH = {
    "sha256": {"mmkey": mmkey.digest_many, "hashlib": lambda many: hash_each(many, hashlib.sha256)},
    "blake3": {
        "mmkey": lambda many: mmkey.digest_many(many, "blake3"),
        "pypi-blake3": lambda many: hash_each(many, blake3.blake3),
    },
}


def each(table):
    return [pytest.param(algorithm, peer, id=f"{algorithm}-{peer}") for algorithm in table for peer in table[algorithm]]


def message(size, number=0):
    return np.random.default_rng([size, number]).bytes(size)


@pytest.mark.parametrize("size", MESSAGES)
@pytest.mark.parametrize(("algorithm", "peer"), each(ONE_SHOT))
def test_one_shot(benchmark, algorithm, peer, size):
    benchmark.group = f"one shot, {algorithm}, {size} bytes"
    data = message(size)
    digest = benchmark(ONE_SHOT[algorithm][peer], data)
    assert digest == ONE_SHOT[algorithm]["hashlib" if algorithm == "sha256" else "pypi-blake3"](data)


@pytest.mark.parametrize("size", [96, 1_024, 65_536])
@pytest.mark.parametrize(("algorithm", "peer"), each(STREAM))
def test_streaming_object(benchmark, algorithm, peer, size):
    benchmark.group = f"streaming object, {algorithm}, {size} bytes"
    make, data = STREAM[algorithm][peer], message(size)

    def run():
        hasher = make()
        hasher.update(data)
        return hasher.digest()

    assert benchmark(run) == make(data).digest()


@pytest.mark.parametrize(("count", "size"), BATCHES)
@pytest.mark.parametrize(("algorithm", "peer"), each(BATCH))
def test_batch(benchmark, algorithm, peer, count, size):
    benchmark.group = f"batch, {algorithm}, {count} of {size} bytes"
    many = [message(size, number) for number in range(count)]
    last = benchmark(BATCH[algorithm][peer], many)
    last = last[-1].tobytes() if peer == "mmkey" else last
    assert last == ONE_SHOT[algorithm]["hashlib" if algorithm == "sha256" else "pypi-blake3"](many[-1])
