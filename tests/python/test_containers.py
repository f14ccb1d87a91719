"""One logical input has one key, whatever holds it."""

from __future__ import annotations

import array
import enum
import importlib.util
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holders
import logical
import mmkey
import reference
from logical import Plain


def test_token_ids_of_the_vectors_give_their_keys_from_every_holder(vector):
    plain = vector.plain
    items = [i.made() for i in plain.items]
    engines = {s: plain.engine(s) for s in reference.STRATEGIES}
    full = len(plain.token_ids) // plain.block_size
    for name, held in holders.id_holders(plain.token_ids).items():
        request = mmkey.Request(held, items, plain.layout, plain.order)
        for strategy, engine in engines.items():
            expected = vector.keys(strategy)
            assert engine.key(request) == expected.request, name
            assert logical.blocks_of(engine, request) == expected.blocks[:full], name


@pytest.mark.parametrize("ids", [[], [0], [127], list(range(0, 120, 7)), [255] * 33, [32767, 0, 5], [2**31, 2**32 - 1]])
def test_token_ids_of_every_width_give_one_key_from_every_holder(ids, algorithm):
    plain = Plain(ids, algorithm=algorithm, block_size=4)
    engine, expected = plain.engine("A"), plain.twin("A")
    for name, held in holders.id_holders(ids).items():
        prepared = engine.prepare(mmkey.Request(held))
        assert engine.key(prepared) == expected.request, name
        assert logical.blocks_of(engine, prepared, partial=True) == expected.blocks, name
        assert mmkey.text_only_cache_key(held, algorithm=algorithm) == expected.request, name


def test_a_chain_takes_token_ids_from_every_holder():
    plain = Plain(list(range(100, 121)), block_size=4)
    for name, held in holders.id_holders(plain.token_ids).items():
        chain = plain.engine("A").chain(mmkey.Request([]))
        chain.extend(held)
        assert logical.rows(chain.keys) == plain.twin("A").blocks[:5], name


@given(st.lists(st.integers(0, 2**32 - 1), max_size=70), st.data())
def test_any_token_ids_from_any_holder_are_one_request(ids, data):
    plain = Plain(ids, block_size=8)
    held = holders.id_holders(ids)
    name = data.draw(st.sampled_from(sorted(held)))
    assert plain.engine("A").key(mmkey.Request(held[name])) == plain.twin("A").request


class Role(enum.IntEnum):
    IMAGE = 151655


class Liar(int):
    """An integer whose conversions lie; what it is stays what it was made of."""

    def __int__(self):
        return 1

    def __index__(self):
        return 1

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_integers_of_other_types_count_as_the_integers_they_are():
    expected = reference.keys("A", "sha256", [151655, 7, 300, 2**32 - 1], 16).request
    odd = [Role.IMAGE, Liar(7), np.uint16(300), np.uint64(2**32 - 1)]
    for held in (odd, tuple(odd), type("Ids", (list,), {})(odd), type("Ids", (tuple,), {})(odd)):
        assert mmkey.text_only_cache_key(held) == expected


def test_memory_maps_and_subclasses_of_ndarray_hold_ids(tmp_path):
    ids = np.arange(50, dtype=np.uint32)
    mapped = np.memmap(tmp_path / "ids", np.uint32, "w+", shape=(50,))
    mapped[:] = ids
    expected = reference.keys("A", "sha256", ids.tolist(), 16).request
    assert mmkey.text_only_cache_key(mapped) == expected
    assert mmkey.text_only_cache_key(ids.view(type("Ids", (np.ndarray,), {}))) == expected


def test_one_value_spread_over_an_axis_counts_as_often_as_it_is_seen():
    spread = np.broadcast_to(np.int64(7), 20)
    assert mmkey.text_only_cache_key(spread) == reference.keys("A", "sha256", [7] * 20, 16).request
    expected = reference.of_array("sha256", "i8", [2, 20], np.full((2, 20), 7).tobytes())[2]
    assert mmkey.Content.from_array(np.broadcast_to(np.int64(7), (2, 20))).digest("sha256") == expected


def test_a_typed_memoryview_holds_ids():
    expected = reference.keys("A", "sha256", [1, 2, 3], 16).request
    for code in "hHiIlLqQ":
        assert mmkey.text_only_cache_key(memoryview(struct.pack(f"3{code}", 1, 2, 3)).cast(code)) == expected


DATA = bytes(range(256)) * 12 + b"tail"


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1023, 1024, 1025, 3076])
def test_an_encoded_file_has_one_digest_from_every_holder(size, tmp_path, algorithm):
    expected = reference.digest(algorithm, DATA[:size])
    for name in holders.byte_holders(DATA[:size], tmp_path):
        content = mmkey.Content.of(holders.byte_holders(DATA[:size], tmp_path)[name])
        assert content.kind == "bytes", name
        assert content.digest(algorithm) == expected, name
        assert content.text(algorithm) == f"mmkey1:content:bytes:{algorithm}:{expected.hex()}"


def test_a_large_file_has_one_digest_from_every_holder(tmp_path, algorithm):
    data = np.random.default_rng(5).bytes(3_000_001)
    expected = reference.digest(algorithm, data)
    for name, held in holders.byte_holders(data, tmp_path).items():
        assert mmkey.Content.of(held).digest(algorithm) == expected, name


def test_from_bytes_and_from_file_take_what_their_names_say(tmp_path, algorithm):
    held = holders.byte_holders(DATA, tmp_path)
    expected = reference.digest(algorithm, DATA)
    for name in ("bytes", "bytearray", "memoryview", "memoryview, strided", "mmap"):
        assert mmkey.Content.from_bytes(held[name]).digest(algorithm) == expected, name
    for path in (held["path"], str(held["path"])):
        assert mmkey.Content.from_file(path).digest(algorithm) == expected


def test_the_vectors_item_bytes_are_one_content_from_every_holder(tmp_path):
    done = 0
    for vector in logical.load_vectors():
        for item, expected in zip(vector.plain.items, vector.expect["content_digests"], strict=True):
            if item.content[0] != "bytes":
                continue
            for name, held in holders.byte_holders(item.content[1], tmp_path).items():
                assert mmkey.Content.of(held).digest(vector.plain.algorithm).hex() == expected, name
            done += 1
    assert done > 10


def test_the_vectors_item_arrays_are_one_content_from_every_holder():
    done = 0
    for vector in logical.load_vectors():
        for item, expected in zip(vector.plain.items, vector.expect["content_digests"], strict=True):
            if item.content[0] != "array":
                continue
            _, dtype, shape, attrs, data = item.content
            for name, held in holders.array_holders(logical.ndarray(dtype, shape, data)).items():
                content = mmkey.Content.from_array(held, attrs)
                assert content.digest(vector.plain.algorithm).hex() == expected, name
            done += 1
    assert done > 10


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 4), (1, 1), (3, 1, 2)])
@pytest.mark.parametrize("dtype", logical.DTYPES)
def test_an_array_has_one_digest_from_every_holder(dtype, shape, algorithm):
    raw = np.random.default_rng(7).bytes(8 * int(np.prod(shape)))
    count = int(np.prod(shape))
    size = np.dtype(logical.DTYPES[dtype]).itemsize
    data = bytes(b & 1 for b in raw[:count]) if dtype == "b1" else raw[: count * size]
    expected = reference.of_array(algorithm, dtype, shape, data)[2]
    for name, held in holders.array_holders(logical.ndarray(dtype, shape, data)).items():
        content = mmkey.Content.from_array(held)
        assert content.kind == "array"
        assert content.digest(algorithm) == expected, name


@pytest.mark.parametrize("dtype", logical.DTYPES)
def test_an_array_without_axes_has_the_empty_shape(dtype):
    one = np.array(1, logical.DTYPES[dtype])
    expected = reference.of_array("sha256", dtype, [], one.tobytes())[2]
    assert mmkey.Content.from_array(one).digest("sha256") == expected


@pytest.mark.parametrize(
    ("code", "dtype"),
    list(zip("bBhHiIqQfd", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"], strict=True)),
)
def test_an_array_of_the_standard_library_is_an_array(code, dtype):
    values = array.array(code, [1, 2, 3])
    expected = reference.of_array("sha256", dtype, [3], values.tobytes())[2]
    assert mmkey.Content.from_array(values).digest("sha256") == expected


def test_c_longs_are_the_integers_of_their_width():
    for code in "lqLQ":
        values = np.arange(5).astype(code)
        dtype = f"{'u' if code.isupper() else 'i'}{values.itemsize}"
        expected = reference.of_array("sha256", dtype, [5], values.tobytes())[2]
        assert mmkey.Content.from_array(values).digest("sha256") == expected


def test_a_large_array_in_any_order_has_one_digest(algorithm):
    values = np.random.default_rng(3).integers(0, 256, (301, 257, 3), dtype=np.uint8)
    expected = reference.of_array(algorithm, "u1", values.shape, values.tobytes())[2]
    for name, held in holders.array_holders(values).items():
        assert mmkey.Content.from_array(held).digest(algorithm) == expected, name


def test_no_attrs_are_the_empty_map():
    values = np.arange(6, dtype=np.uint8)
    expected = reference.of_array("sha256", "u1", [6], values.tobytes())[2]
    assert mmkey.Content.from_array(values, None).digest("sha256") == expected
    assert mmkey.Content.from_array(values, {}).digest("sha256") == expected
    assert mmkey.Content.of(values).digest("sha256") == expected


def test_true_held_as_another_byte_is_true_or_refused():
    held = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    expected = reference.of_array("sha256", "b1", [4], bytes([0, 1, 1, 1]))[2]
    try:
        found = mmkey.Content.from_array(held).digest("sha256")
    except mmkey.errors.InvalidRequest:
        return
    assert found == expected


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_tensors_hold_ids_and_arrays():
    import torch

    ids = torch.arange(40)
    expected = reference.keys("A", "sha256", list(range(40)), 16).request
    for held in (ids, ids.int(), torch.arange(80)[::2] // 2, ids.to(torch.int16)):
        assert mmkey.text_only_cache_key(held) == expected
    pixels = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    data = pixels.view(torch.int16).numpy().tobytes()
    expected = reference.of_array("sha256", "bf2", [4, 6], data)[2]
    assert mmkey.Content.of(pixels).digest("sha256") == expected
    assert mmkey.Content.of(pixels.T.contiguous().T).digest("sha256") == expected
    assert mmkey.Content.of(pixels.clone().requires_grad_()).digest("sha256") == expected


def test_numbers_from_numpy_and_tuples_are_the_same_item():
    content = mmkey.Content.from_bytes(b"x")
    plain = {
        "original_size": [124, 29],
        "resized_size": [112, 28],
        "patch_grid": [1, 4, 1],
        "num_visual_tokens": 4,
        "sampling": {"frame_indices": [0, 15], "source_fps": 29.5, "sampled_fps": 2, "total_frames": 300, "n": 3},
        "processing": {"scale": 0.5, "flags": [1, True], "sampling_rate": 16000},
    }
    odd = {
        "original_size": (np.int64(124), np.uint8(29)),
        "resized_size": np.array([112, 28]),
        "patch_grid": (1, 4, 1),
        "num_visual_tokens": np.int32(4),
        "sampling": {
            "total_frames": np.uint16(300),
            "n": np.int8(3),
            "frame_indices": np.array([0, 15], ">u2"),
            "sampled_fps": 2.0,
            "source_fps": np.float32(29.5),
        },
        "processing": {"sampling_rate": np.float64(16000), "flags": (np.int64(1), np.True_), "scale": np.float16(0.5)},
    }
    engine = mmkey.KeyEngine("C", model_id="m", config={})
    expected = reference.item(reference.of_bytes("sha256", b"x"), modality="video", **plain)
    text = f"mmkey1:item:sha256:{reference.item_digest('sha256', expected).hex()}"
    for fields in (plain, odd):
        request = mmkey.Request([7] * 4, [mmkey.Video(content, **fields)], [(0, 4)])
        assert engine.prepare(request).item_texts == (text,)


def test_layouts_and_orders_from_any_sequence_are_one_request():
    plain = Plain(
        list(range(12)),
        [logical.PlainItem(("bytes", bytes([n])), FULL) for n in (1, 2)],
        [(1, 2), (4, 1), (5, 2), (8, 1)],
        [1, 0, 1, 0],
        block_size=4,
    )
    plain = plain.but(items=[plain.items[0].but(num_visual_tokens=2), plain.items[1].but(num_visual_tokens=4)])
    expected = plain.twin()
    for layout in (plain.layout, tuple(map(list, plain.layout)), [(np.int64(o), np.uint8(n)) for o, n in plain.layout]):
        for order in (plain.order, tuple(plain.order), [np.int32(n) for n in plain.order]):
            assert plain.but(layout=layout, order=order).keys() == expected


FULL = {"original_size": (56, 56), "resized_size": (28, 56), "patch_grid": (2, 4)}
