"""The block chain, beside hashlib over the very same messages and beside block hashes as usually made in Python."""

from __future__ import annotations

import hashlib
import time

import blake3
import pytest

from mmkey.study.bench import peers, workloads
from mmkey.study.bench.workloads import Load

pytestmark = pytest.mark.benchmark(timer=time.thread_time, min_time=1e-4, max_time=0.5, min_rounds=5)

HASH = {"sha256": hashlib.sha256, "blake3": blake3.blake3}
TOKENS = (8_192, 131_072)


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("algorithm", HASH)
@pytest.mark.parametrize("way", ["mmkey", "ready messages", "pickle", "cbor2"])
def test_block_keys_of_text(benchmark, algorithm, tokens, way):
    benchmark.group = f"block keys of text, {algorithm}, {tokens} tokens"
    prompt, engine, hasher = workloads.prompt(Load(tokens)), workloads.engine("A", algorithm), HASH[algorithm]
    if way == "mmkey":
        assert benchmark(engine.block_keys, engine.prepare(prompt.request())).shape == (tokens // 16, 32)
    elif way == "ready messages":
        assert len(benchmark(peers.hash_each, peers.ready_messages(prompt.token_ids, engine.root), hasher)) == 32
    else:
        encode = peers.pickled() if way == "pickle" else peers.canonical_cbor()
        assert len(benchmark(peers.chain_of_tuples, prompt.token_list, hasher, encode)) == tokens // 16


@pytest.mark.parametrize("algorithm", HASH)
@pytest.mark.parametrize("strategy", ["B", "C"])
def test_block_keys_with_a_quarter_of_the_tokens_in_pictures(benchmark, algorithm, strategy):
    benchmark.group = f"block keys, a quarter in pictures, {algorithm}, 10,764 tokens"
    engine = workloads.engine(strategy, algorithm)
    prepared = engine.prepare(workloads.prompt(Load(4 * 2_691, 1, "1920x1080")).request())
    assert benchmark(engine.block_keys, prepared).shape == (672, 32)


@pytest.mark.parametrize("fed", [1_000, 10_000, 100_000])
def test_one_more_block_of_a_growing_chain(benchmark, fed):
    benchmark.group = "one more block of a growing chain"
    engine = workloads.engine("C")
    chain = engine.chain(workloads.prompt(Load(fed, 1)).request())
    assert benchmark(chain.extend, list(range(16))).shape == (1, 32)
