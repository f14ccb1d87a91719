"""The published vectors, byte for byte: the twin first, then the library, then the library on every kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import logical
import mmkey
import reference

STRATEGIES = reference.STRATEGIES


def test_the_reference_twin_gives_the_vectors(vector):
    plain, expect = vector.plain, vector.expect
    assert [logical.twin_content(plain.algorithm, i.content)[2].hex() for i in plain.items] == expect["content_digests"]
    items = [i.twin(plain.algorithm) for i in plain.items]
    assert [reference.item_digest(plain.algorithm, i).hex() for i in items] == expect["item_digests"]
    assert plain.scope().hex() == expect["scope_digest"]
    for strategy in STRATEGIES:
        assert plain.twin(strategy) == vector.keys(strategy)


def test_contents_have_the_digests_of_the_vectors(vector):
    for item, expected in zip(vector.plain.items, vector.expect["content_digests"], strict=True):
        content = logical.made_content(item.content)
        made_with = item.content[2] if item.content[0] == "digest" else vector.plain.algorithm
        assert content.digest(made_with).hex() == expected
        assert content.text(made_with) == f"mmkey1:content:{content.kind}:{made_with}:{expected}"


def test_items_have_the_digests_of_the_vectors_in_the_callers_order(vector):
    prepared = vector.plain.engine().prepare(vector.plain.request())
    algorithm = vector.plain.algorithm
    assert prepared.item_texts == tuple(f"mmkey1:item:{algorithm}:{d}" for d in vector.expect["item_digests"])


def test_scopes_have_the_digests_of_the_vectors(vector):
    text = f"mmkey1:scope:{vector.plain.algorithm}:{vector.expect['scope_digest']}"
    assert vector.plain.engine().scope_text == text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_have_the_keys_of_the_vectors(vector, strategy):
    engine = vector.plain.engine(strategy)
    prepared = engine.prepare(vector.plain.request())
    expected = vector.keys(strategy)
    full = len(vector.plain.token_ids) // vector.plain.block_size
    key = engine.key(prepared)
    assert type(key) is bytes
    assert key == expected.request
    assert logical.blocks_of(engine, prepared, partial=True) == expected.blocks
    assert logical.blocks_of(engine, prepared) == expected.blocks[:full]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_unprepared_request_gives_the_same_keys(vector, strategy):
    engine = vector.plain.engine(strategy)
    assert engine.key(vector.plain.request()) == vector.keys(strategy).request
    assert logical.blocks_of(engine, vector.plain.request(), partial=True) == vector.keys(strategy).blocks


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_roots_are_those_of_the_specification(vector, strategy):
    plain = vector.plain
    scope_or_salt = plain.scope() if strategy == "C" else plain.salt
    expected = reference.root(plain.algorithm, strategy, plain.block_size, scope_or_salt)
    assert plain.engine(strategy).root == expected


def test_the_plain_functions_give_the_keys_of_the_vectors(vector):
    plain = vector.plain
    items = [i.made() for i in plain.items]
    first = reference.normal_form(len(plain.token_ids), plain.layout, plain.order).listed
    contents = [logical.made_content(plain.items[n].content) for n in first]
    common = {"algorithm": plain.algorithm, "salt": plain.salt}
    scope = {n: getattr(plain, n) for n in ("model_id", "config", "revision", "adapter")}
    assert mmkey.text_only_cache_key(plain.token_ids, **common) == vector.keys("A").request
    assert mmkey.text_plus_image_hash_cache_key(plain.token_ids, contents, **common) == vector.keys("B").request
    key = mmkey.full_multimodal_cache_key(plain.token_ids, items, plain.layout, plain.order, **scope, **common)
    assert key == vector.keys("C").request


def test_block_keys_are_a_fresh_array_of_32_byte_rows(vector):
    keys = vector.plain.engine("A").block_keys(vector.plain.request())
    assert isinstance(keys, np.ndarray)
    assert keys.shape == (len(vector.plain.token_ids) // vector.plain.block_size, 32)
    assert keys.dtype == np.uint8


def test_keys_have_their_text_form_and_short_id(vector):
    algorithm = vector.plain.algorithm
    for strategy in STRATEGIES:
        keys = vector.keys(strategy)
        text = f"mmkey1:{strategy}:request:{algorithm}:{keys.request.hex()}"
        assert mmkey.format_key(keys.request, strategy, algorithm) == text
        assert tuple(mmkey.parse_key(text)) == (keys.request, strategy, algorithm, "request")
        assert mmkey.short_id(keys.request) == int(keys.request.hex()[-16:], 16)
        for level in ("block", "partial"):
            text = mmkey.format_key(keys.request, strategy, algorithm, level)
            assert text == f"mmkey1:{strategy}:{level}:{algorithm}:{keys.request.hex()}"
            assert tuple(mmkey.parse_key(text)) == (keys.request, strategy, algorithm, level)


@pytest.mark.parametrize(
    "spoil",
    [
        str.upper,
        lambda t: t.replace("mmkey1", "mmkey2"),
        lambda t: t.replace("mmkey1", "mmkey01"),
        lambda t: t.replace(":C:", ":D:"),
        lambda t: t.replace(":C:", ":c:"),
        lambda t: t.replace("request", "page"),
        lambda t: t.replace("sha256", "md5"),
        lambda t: t[:-1],
        lambda t: t + "0",
        lambda t: t + "\n",
        lambda t: " " + t,
        lambda t: t[:-1] + "g",
        lambda t: t[:-1] + "\N{ARABIC-INDIC DIGIT THREE}",
        lambda t: t[:-2] + "A" + t[-1],
        lambda t: t[:-64] + " " + t[-63:],
        lambda t: t + ":",
        lambda t: "",
        lambda t: t.replace(":", "::", 1),
        lambda t: t[:-64] + "0x" + t[-62:],
        lambda t: t[:-64] + t[-64:-2] + "\0\0",
    ],
)
def test_a_key_text_that_is_not_canonical_is_refused(spoil):
    text = mmkey.format_key(bytes(range(32)), "C", "sha256")
    with pytest.raises(mmkey.errors.MmkeyError):
        mmkey.parse_key(spoil(text))


@pytest.mark.parametrize("text", [None, 3, b"mmkey1:C:request:sha256:" + b"0" * 64])
def test_a_key_text_that_is_no_text_is_refused(text):
    with pytest.raises(mmkey.errors.UnsupportedType):
        mmkey.parse_key(text)


@pytest.mark.parametrize(
    "arguments",
    [
        (b"x" * 31, "C", "sha256"),
        (b"x" * 33, "C", "sha256"),
        ("x" * 32, "C", "sha256"),
        (None, "C", "sha256"),
        (b"x" * 32, "D", "sha256"),
        (b"x" * 32, "C", "md5"),
        (b"x" * 32, "C", "sha256", "page"),
    ],
)
def test_a_key_that_is_none_has_no_text_form(arguments):
    with pytest.raises(mmkey.errors.MmkeyError):
        mmkey.format_key(*arguments)


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33, "x" * 32, None, 7])
def test_only_32_bytes_have_a_short_id(key):
    with pytest.raises(mmkey.errors.MmkeyError):
        mmkey.short_id(key)


def kernel_names() -> list[str]:
    names = {"portable"}
    for operations in mmkey.kernels().values():
        for choice in operations.values():
            names.update(choice["available"])
    return sorted(names)


RECOMPUTE = """
import json, logical, mmkey
found = []
for vector in logical.load_vectors():
    for strategy in "ABC":
        keys = vector.plain.keys(strategy)
        found.append([keys.request.hex(), [k.hex() for k in keys.blocks]])
print(json.dumps({"kernels": mmkey.kernels(), "keys": found}))
"""


@pytest.mark.parametrize("kernel", kernel_names())
def test_every_kernel_gives_the_vectors(kernel):
    done = subprocess.run(
        [sys.executable, "-c", RECOMPUTE],
        env=os.environ | {"MMKEY_FORCE_KERNEL": kernel, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    used = [choice["kernel"] for operations in out["kernels"].values() for choice in operations.values()]
    assert kernel in used
    expected = []
    for vector in logical.load_vectors():
        for strategy in STRATEGIES:
            keys = vector.keys(strategy)
            expected.append([keys.request.hex(), [k.hex() for k in keys.blocks]])
    assert out["keys"] == expected


def test_forcing_a_kernel_that_is_not_there_is_an_error():
    done = subprocess.run(
        [sys.executable, "-c", "import mmkey; mmkey.digest(b'')"],
        env=os.environ | {"MMKEY_FORCE_KERNEL": "no-such-isa"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "MMKEY_FORCE_KERNEL" in done.stderr
    assert "no-such-isa" in done.stderr
