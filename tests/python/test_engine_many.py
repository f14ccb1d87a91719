"""Many requests at once: what each gives alone, with their contents in one batch and their chains side by side."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logical
import mmkey
import strategies


def ragged(seed: int, sizes: list[int]) -> list[logical.Plain]:
    """Requests of one engine; every other one with a picture across its middle."""
    draw = random.Random(seed)
    made = []
    for n, size in enumerate(sizes):
        plain = logical.Plain([draw.randrange(150_000) for _ in range(size)], block_size=4)
        if n % 2 and size >= 12:
            fields = {"original_size": (8, 8), "resized_size": (8, 8), "patch_grid": (1, 2, 4), "num_visual_tokens": 8}
            picture = logical.PlainItem(("bytes", bytes([n])), {"modality": "image", "processing": {}} | fields)
            plain = plain.but(items=[picture], layout=((size // 2 - 4, 8),))
        made.append(plain)
    return made


@pytest.mark.parametrize("strategy", ["A", "B", "C"])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("sizes", [[], [0], [3], [40], [40, 0, 7, 600, 13], [1000, 5000, 20, 64, 4096, 12, 0, 900, 31]])
def test_requests_together_have_the_block_keys_of_each_alone(algorithm, strategy, partial, sizes):
    seed = 20261130
    print(f"seed {seed}")
    plains = [plain.but(algorithm=algorithm) for plain in ragged(seed, sizes)]
    engine = (plains or [logical.Plain([], algorithm=algorithm)])[0].engine(strategy)
    together = engine.block_keys_many([plain.request() for plain in plains], partial=partial)
    assert len(together) == len(plains)
    for plain, keys in zip(plains, together, strict=True):
        expected = plain.twin(strategy).blocks
        full = len(plain.token_ids) // plain.block_size
        assert logical.rows(keys) == (expected if partial else expected[:full])


@settings(max_examples=30)
@given(st.lists(strategies.requests(), min_size=1, max_size=6))
def test_prepared_together_they_have_the_keys_of_each_alone(plains):
    engine = plains[0].engine("C")
    prepared = engine.prepare_many([plain.request() for plain in plains])
    for plain, one in zip(plains, prepared, strict=True):
        same_engine = plain.but(
            **{name: getattr(plains[0], name) for name in ("model_id", "config", "revision", "adapter", "salt")},
            algorithm=plains[0].algorithm,
            block_size=plains[0].block_size,
        )
        assert engine.key(one) == same_engine.twin("C").request


def test_one_wrong_request_among_many_is_told_before_any_content_is_hashed():
    data = bytearray(b"a picture")
    content = mmkey.Content.from_bytes(data)
    engine = mmkey.KeyEngine("B")
    good = mmkey.Request([1, 2], [mmkey.Item(content)], [(0, 1)])
    wrong = mmkey.Request([1, 2], [mmkey.Item(b"x")], [(0, 3)])
    with pytest.raises(mmkey.InvalidRequest) as error:
        engine.prepare_many([good, wrong])
    assert error.value.field == "requests[1].layout[0]"
    data[:] = b"changed!!"
    assert content.digest("sha256") == mmkey.digest(b"changed!!")


def test_block_keys_of_many_refuse_a_request_that_another_engine_prepared():
    engine, other = mmkey.KeyEngine("A"), mmkey.KeyEngine("A", salt=b"another tenant")
    request = mmkey.Request(range(64))
    with pytest.raises(mmkey.InvalidRequest) as error:
        engine.block_keys_many([engine.prepare(request), other.prepare(request)])
    assert error.value.field == "request"
