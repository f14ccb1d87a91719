"""What a request is made of travels between processes and comes out equal."""

from __future__ import annotations

import io
import multiprocessing
import pickle

import numpy as np
import pytest
from hypothesis import given

import mmkey
import reference
import strategies
from logical import made_content, rows

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def travelled(thing, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(thing, protocol))


@given(strategies.requests())
def test_requests_and_their_items_come_out_equal_and_with_equal_keys(plain):
    request = plain.request()
    expected = plain.twin()
    for made in (request, travelled(request)):
        again = travelled(made)
        assert again == made
        assert hash(again) == hash(made)
        assert again.items == made.items
        engine = plain.engine()
        assert engine.key(again) == expected.request
        assert rows(engine.block_keys(again, partial=True)) == expected.blocks


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_contents_of_every_kind_come_out_equal(protocol, tmp_path, algorithm):
    (tmp_path / "file").write_bytes(b"data")
    pixels = np.arange(24, dtype=">u2").reshape(4, 6)
    makers = {
        "bytes": lambda: mmkey.Content.from_bytes(b"data"),
        "a bytearray": lambda: mmkey.Content.from_bytes(bytearray(b"data")),
        "a memoryview": lambda: mmkey.Content.from_bytes(memoryview(b"data")),
        "a file": lambda: mmkey.Content.from_file(tmp_path / "file"),
        "a stream": lambda: mmkey.Content.of(io.BytesIO(b"data")),
        "an array": lambda: mmkey.Content.from_array(pixels, {"mode": "L"}),
        "a strided array": lambda: mmkey.Content.from_array(pixels[::2]),
        "an identifier": lambda: mmkey.Content.opaque("id", namespace="n"),
        "a digest": lambda: mmkey.Content.from_digest("array", algorithm, b"d" * 32),
        "frames": lambda: mmkey.Content.from_frames([mmkey.Content.from_bytes(b"a"), mmkey.Content.from_array(pixels)]),
    }
    for name, make in makers.items():
        expected = make().digest(algorithm)
        for hashed in (False, True):
            content = make()
            if hashed:
                content.digest(algorithm)
            again = travelled(content, protocol)
            assert again.kind == content.kind, name
            assert again.digest(algorithm) == expected, name
            assert again == content, name
            assert content.digest(algorithm) == expected, name


def test_a_content_that_was_hashed_travels_as_its_digest():
    big = mmkey.Content.from_bytes(bytes(10_000_000))
    big.digest("sha256")
    array = mmkey.Content.from_array(np.zeros(10_000_000, np.uint8))
    array.digest("sha256")
    assert len(pickle.dumps(array)) < 1000
    assert travelled(array).digest("sha256") == reference.of_array("sha256", "u1", [10_000_000], bytes(10_000_000))[2]
    assert travelled(big).digest("sha256") == reference.digest("sha256", bytes(10_000_000))


def test_the_digests_of_both_algorithms_travel():
    content = mmkey.Content.opaque("x")
    digests = [content.digest(a) for a in reference.ALGORITHMS]
    again = travelled(content)
    assert [again.digest(a) for a in reference.ALGORITHMS] == digests


def test_a_forged_pickle_makes_no_content():
    """What __setstate__ or __reduce__ take is checked like anything else a caller gives."""
    function, arguments, *_ = mmkey.Content.from_digest("bytes", "sha256", b"d" * 32).__reduce_ex__(4)
    assert callable(function)
    assert isinstance(arguments, tuple)
    with pytest.raises((mmkey.errors.MmkeyError, TypeError, ValueError, AttributeError)):
        mmkey.Content.from_digest("bytes", "sha256", b"short")


def engine_and_prepared():
    item = mmkey.Image(
        made_content(("bytes", b"x")),
        original_size=(56, 56),
        resized_size=(28, 56),
        patch_grid=(2, 4),
        num_visual_tokens=2,
    )
    engine = mmkey.KeyEngine("C", model_id="m", config={"a": 1}, adapter=("x", "r"), salt=b"s", block_size=2)
    return engine, mmkey.Request([1, 7, 7, 2], [item], [(1, 2)])


def test_engines_travel_or_say_that_they_do_not():
    engine, request = engine_and_prepared()
    try:
        again = travelled(engine)
    except TypeError as error:
        assert "pickle" in str(error)
        return
    assert again.root == engine.root
    assert again.key(request) == engine.key(request)
    assert again.scope_text == engine.scope_text


def test_prepared_requests_travel_or_say_that_they_do_not():
    engine, request = engine_and_prepared()
    prepared = engine.prepare(request)
    try:
        again = travelled(prepared)
    except TypeError as error:
        assert "pickle" in str(error)
        return
    assert engine.key(again) == engine.key(prepared)
    assert again.item_texts == prepared.item_texts


def key_elsewhere(plain_bytes):
    engine, request = pickle.loads(plain_bytes)
    return mmkey.KeyEngine(**engine).key(request)


def test_a_request_sent_to_another_process_has_its_key_there():
    settings = {"strategy": "C", "model_id": "m", "config": {"a": 1}, "salt": b"s"}
    _, request = engine_and_prepared()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(key_elsewhere, (pickle.dumps((settings, request)),))
    assert found == mmkey.KeyEngine(**settings).key(request)
