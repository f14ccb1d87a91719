"""Hashing overhead per request: from ids and pictures that nobody has hashed to the request key and the block keys."""

from __future__ import annotations

import time

import pytest

import mmkey
from mmkey.study.bench import peers, workloads
from mmkey.study.bench.workloads import ALGORITHMS, STRATEGIES, Load

pytestmark = pytest.mark.benchmark(timer=time.thread_time, min_time=1e-4, max_time=0.2, min_rounds=5)

LOADS = {load.name: load for load in workloads.every_load()}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("way", [*STRATEGIES, "usual"])
def test_overhead_per_request(benchmark, load, algorithm, way):
    benchmark.group = f"request, {algorithm}, {load}"
    prompt = workloads.prompt(LOADS[load])
    if way == "usual":
        keys = benchmark(peers.usual, prompt, peers.hash_of(algorithm))
    else:
        _, keys = benchmark(workloads.serve, workloads.engine(way, algorithm), prompt)
    assert len(keys) == LOADS[load].tokens // workloads.BLOCK_SIZE


# ---------------------------------------------------------------- where the time of a request goes


@pytest.mark.parametrize("tokens", workloads.TOKENS)
@pytest.mark.parametrize("holder", ["array", "list"])
def test_making_a_request(benchmark, tokens, holder):
    benchmark.group = f"stage: Request of {tokens} ids"
    prompt = workloads.prompt(Load(tokens))
    assert len(benchmark(mmkey.Request, prompt.token_ids if holder == "array" else prompt.token_list)) == tokens


@pytest.mark.parametrize("form", workloads.FORMS)
def test_making_an_item(benchmark, form):
    benchmark.group = "stage: Content and Item of a picture"
    prompt = workloads.prompt(Load(8_192, 1, "336x336", form))
    (picture,) = prompt.media
    assert benchmark(lambda: mmkey.Image(mmkey.Content.of(picture), **prompt.metadata)).num_visual_tokens == 144


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("stage", ["prepare", "key", "block_keys"])
def test_stages_once_the_pictures_are_hashed(benchmark, strategy, stage):
    benchmark.group = f"stage: {stage}, 8192 tokens, 8 pictures hashed before"
    engine = workloads.engine(strategy)
    request = workloads.prompt(Load(8_192, 8)).request()
    prepared = engine.prepare(request)
    benchmark(getattr(engine, stage), request if stage == "prepare" else prepared)
