"""The canonical encoder, seen through the digests that it feeds, against the PyPI package cbor2."""

from __future__ import annotations

import collections
import enum
import hashlib
import math
import struct
import types

import cbor2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mmkey
import reference
import strategies


def canonical(value):
    return cbor2.dumps(value, canonical=True)


def scope_of(config, **more) -> str:
    """The hex digest that the library makes of a scope with this config."""
    text = mmkey.KeyEngine("C", model_id="m", config=config, **more).scope_text
    prefix, _, digest = text.rpartition(":")
    assert prefix == "mmkey1:scope:sha256"
    return digest


def scope_by_cbor2(config, revision=None, adapter=None, salt=None, model_id="m") -> str:
    message = canonical(["mmkey/scope/1", model_id, revision, config, adapter, salt])
    return hashlib.sha256(message).hexdigest()


@given(strategies.MAPS)
@example({})
@example({"": None, "a": {}, "aa": [], "b": {"": {}}})
def test_maps_of_any_values_are_encoded_as_cbor2_encodes_them(config):
    assert scope_of(config) == scope_by_cbor2(config)


@given(strategies.INTEGERS)
def test_integers_are_encoded_as_cbor2_encodes_them(n):
    assert scope_of({"n": n}) == scope_by_cbor2({"n": n})


@pytest.mark.parametrize("edge", [0, 23, 24, 255, 256, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
def test_integers_at_the_edges_of_each_head_keep_their_value(edge):
    for n in (edge, -edge, -edge - 1):
        if -(2**64) <= n < 2**64:
            assert scope_of({"n": n}) == scope_by_cbor2({"n": n}), n


@given(strategies.FLOATS)
def test_floats_are_encoded_as_cbor2_encodes_them(x):
    assert scope_of({"x": x}) == scope_by_cbor2({"x": x})


def test_every_half_is_kept_in_three_bytes():
    halves = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(0, 1 << 16, 7)]
    assert scope_of({"x": halves}) == scope_by_cbor2({"x": halves})


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_floats_of_any_bits_take_their_shortest_form(bits32, bits64):
    values = [struct.unpack("<f", struct.pack("<I", bits32))[0], struct.unpack("<d", struct.pack("<Q", bits64))[0]]
    for x in values:  # the neighbours have the longer forms
        nearby = [x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf)]
        assert scope_of({"x": nearby}) == scope_by_cbor2({"x": nearby})


def test_every_nan_is_one_nan():
    patterns = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF)
    nans = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in patterns]
    message = canonical(["mmkey/scope/1", "m", None, {}, None, None]).replace(b"\xa0", b"\xa1\x61x\xf9\x7e\x00")
    for x in [*nans, np.float32("nan"), np.float16("nan")]:
        assert scope_of({"x": x}) == hashlib.sha256(message).hexdigest()


@given(strategies.TEXTS)
@example("")
@example("\0")
@example("é")
@example("e\N{COMBINING ACUTE ACCENT}")
@example("\U0010ffff\ud7ff\ue000")
def test_text_is_encoded_as_cbor2_encodes_it(text):
    config = {text: text}
    assert scope_of(config) == scope_by_cbor2(config)
    if text:
        engine = mmkey.KeyEngine("C", model_id=text, config={}, revision=text, adapter=(text, text))
        expected = scope_by_cbor2({}, model_id=text, revision=text, adapter=[text, text])
        assert engine.scope_text == f"mmkey1:scope:sha256:{expected}"


@pytest.mark.parametrize("length", [0, 1, 23, 24, 255, 256, 65535, 65536])
def test_lengths_at_the_edges_of_each_head_are_kept(length):
    for value in ("x" * length, b"x" * length, [0] * length, {f"{n:05}": n for n in range(length)}):
        assert scope_of({"v": value}) == scope_by_cbor2({"v": value})


@given(st.dictionaries(st.text("aAzé\U0001f600", max_size=30), st.integers(0, 3), max_size=20), st.randoms())
def test_the_order_in_which_a_map_was_filled_means_nothing(config, random):
    entries = list(config.items())
    random.shuffle(entries)
    assert scope_of(dict(entries)) == scope_by_cbor2(config)


def test_keys_are_sorted_by_their_encoded_form_and_not_by_their_text():
    config = {"b": 1, "aa": 2, "": 3, "é": 4, "z" * 24: 5, "z" * 23: 6, "~": 7}
    keys = b"".join(canonical(k) + canonical(config[k]) for k in ["", "b", "~", "aa", "é", "z" * 23, "z" * 24])
    empty = canonical(["mmkey/scope/1", "m", None, {}, None, None])
    assert scope_of(config) == hashlib.sha256(empty.replace(b"\xa0", b"\xa7" + keys)).hexdigest()


@given(strategies.MAPS, strategies.MAPS)
def test_processing_and_sampling_are_encoded_as_cbor2_encodes_them(processing, sampling):
    for name in ("sampling_rate", "frame_indices", "source_fps", "sampled_fps", "total_frames"):
        processing.pop(name, None)
        sampling.pop(name, None)
    engine = mmkey.KeyEngine("C", model_id="m", config={})
    sizes = {"original_size": (4, 5), "resized_size": (6, 7), "patch_grid": (1, 2, 3), "num_visual_tokens": 2}
    sampling |= {"frame_indices": [0, 1, 300]}
    content = mmkey.Content.from_bytes(b"x")
    video = mmkey.Video(content, **sizes, sampling=sampling, processing=processing)
    ids = cbor2.CBORTag(70, struct.pack("<3I", 0, 1, 300))
    taken = sampling | {"frame_indices": ids, "source_fps": None, "sampled_fps": None, "total_frames": None}
    what = ["bytes", "sha256", hashlib.sha256(b"x").digest()]
    message = canonical(["mmkey/item/1", "video", what, [4, 5], [6, 7], [1, 2, 3], 2, taken, processing])
    prepared = engine.prepare(mmkey.Request([9, 9], [video], [(0, 2)]))
    assert prepared.item_texts == (f"mmkey1:item:sha256:{hashlib.sha256(message).hexdigest()}",)


@given(strategies.MAPS)
def test_attrs_are_encoded_as_cbor2_encodes_them(attrs):
    content = mmkey.Content.from_array(np.arange(6, dtype="<u2").reshape(2, 3), attrs)
    data = struct.pack("<6H", *range(6))
    message = canonical(["mmkey/array/1", "u2", [2, 3], attrs, data])
    assert content.digest("sha256") == hashlib.sha256(message).digest()


@given(strategies.TEXTS.filter(bool), strategies.TEXTS)
def test_identifiers_are_encoded_as_cbor2_encodes_them(identifier, namespace):
    content = mmkey.Content.opaque(identifier, namespace=namespace)
    message = canonical(["mmkey/opaque/1", namespace, identifier])
    assert content.digest("sha256") == hashlib.sha256(message).digest()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=80), st.binary(min_size=1, max_size=40))
def test_requests_are_encoded_as_cbor2_encodes_them(ids, salt):
    tokens = cbor2.CBORTag(70, struct.pack(f"<{len(ids)}I", *ids))
    for algorithm in reference.ALGORITHMS:
        plain = reference.digest(algorithm, canonical(["mmkey/A/1", tokens]))
        salted = reference.digest(algorithm, canonical(["mmkey/A/1", tokens, salt]))
        assert mmkey.text_only_cache_key(ids, algorithm=algorithm) == plain
        assert mmkey.text_only_cache_key(ids, algorithm=algorithm, salt=salt) == salted


@pytest.mark.parametrize("count", [0, 1, 5, 6, 63, 64, 16383, 16384, 70000])
def test_token_counts_at_the_edges_of_each_head_are_kept(count):
    ids = list(range(count))
    tokens = cbor2.CBORTag(70, struct.pack(f"<{count}I", *ids))
    expected = hashlib.sha256(canonical(["mmkey/A/1", tokens])).digest()
    assert mmkey.text_only_cache_key(ids) == expected


def test_every_block_size_puts_the_parent_where_the_specification_wants_it():
    """All residues of the message's length modulo 64, and pads whose own head is one byte and two."""
    for algorithm in reference.ALGORITHMS:
        for size in [*range(1, 70), 255, 256, 257, 1000]:
            ids = list(range(2 * size))
            expected = reference.keys("A", algorithm, ids, size).blocks
            engine = mmkey.KeyEngine("A", algorithm=algorithm, block_size=size)
            assert [bytes(k) for k in engine.block_keys(mmkey.Request(ids))] == expected, size


# What is one value in several guises


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Sly(str):
    """Text whose conversions lie."""

    __slots__ = ()

    def __str__(self):
        return "other"

    def encode(self, *arguments):
        return b"other"


class Crooked(int):
    """An integer whose operators lie."""

    def __lt__(self, other):
        return False

    def __invert__(self):
        return 9

    def __neg__(self):
        return 9


class Half(float):
    def __float__(self):
        return 9.0


Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024

GUISES = {
    "text from a subclass": ("red", Sly("red")),
    "text from an enumeration": ("red", Colour.RED),
    "text from NumPy": ("red", np.str_("red")),
    "bytes from NumPy": (b"red", np.bytes_(b"red")),
    "bytes from a subclass": (b"red", type("Blob", (bytes,), {})(b"red")),
    "an integer from an enumeration": (3, Level.HIGH),
    "an integer from a subclass": (3, type("Count", (int,), {"__index__": lambda _: 9, "__int__": lambda _: 9})(3)),
    "the widest unsigned integer of NumPy": (2**64 - 1, np.uint64(2**64 - 1)),
    "the lowest integer of NumPy": (-(2**63), np.int64(-(2**63))),
    "an integer of 8 bits": (-128, np.int8(-128)),
    "an integer whose operators lie": (-7, Crooked(-7)),
    "a bool of NumPy": (True, np.True_),
    "a float of 16 bits": (0.0999755859375, np.float16(0.1)),
    "a float of 32 bits, widened exactly": (0.10000000149011612, np.float32(0.1)),
    "a float of 64 bits": (0.1, np.float64(0.1)),
    "a float from a subclass": (0.5, Half(0.5)),
    "a tuple": ([1, [2]], (1, (2,))),
    "a named tuple": ([1, 2], Pair(1, 2)),
    "a list from a subclass": ([1, 2], type("Row", (list,), {})([1, 2])),
    "an ordered map": ({"a": 1, "b": 2}, collections.OrderedDict([("b", 2), ("a", 1)])),
    "a map with defaults": ({"a": 1}, collections.defaultdict(int, {"a": 1})),
    "a map that cannot be written": ({"a": 1}, types.MappingProxyType({"a": 1})),
    "keys from NumPy": ({"a": 1}, {np.str_("a"): 1}),
    "keys from an enumeration": ({"red": 1}, {Colour.RED: 1}),
}


@pytest.mark.parametrize("name", GUISES)
def test_a_value_counts_as_its_base_in_every_guise(name):
    base, guise = GUISES[name]
    expected = scope_by_cbor2({"v": base})
    assert scope_of({"v": base}) == expected
    assert scope_of({"v": guise}) == expected


def test_a_whole_config_may_be_any_mapping():
    expected = scope_by_cbor2({"a": 1})
    assert scope_of(types.MappingProxyType({"a": 1})) == expected
    assert scope_of(collections.OrderedDict(a=1)) == expected


DISTINCT = [None, False, True, 0, 1, -1, 0.0, -0.0, 1.0, "", "1", b"", b"1", [], [1], [[1]], {}, {"": 1}, [None], "é"]
DISTINCT += [
    "e\N{COMBINING ACUTE ACCENT}",
    float("nan"),
    math.inf,
    -math.inf,
    2**53,
    2.0**53,
    2**53 + 1,
    "True",
    "null",
]


def test_values_that_a_consumer_could_tell_apart_are_never_unified():
    digests = [scope_of({"v": v}) for v in DISTINCT]
    digests += [scope_of({}), scope_of({"v": None, "w": None}), scope_of({"V": None}), scope_of({"v": {"v": None}})]
    assert len(set(digests)) == len(digests)


def test_text_as_salt_counts_as_its_utf8():
    for salt in ("tenant-é", "é".encode(), bytearray(b"x"), memoryview(b"xyz")):
        raw = salt.encode() if isinstance(salt, str) else bytes(salt)
        assert scope_of({}, salt=salt) == scope_by_cbor2({}, salt=raw)
        for strategy in "AB":
            expected = reference.root("sha256", strategy, 16, raw)
            assert mmkey.KeyEngine(strategy, salt=salt).root == expected


def test_an_adapter_by_name_alone_has_no_revision():
    expected = scope_by_cbor2({}, adapter=["lora", None])
    assert scope_of({}, adapter="lora") == expected
    assert scope_of({}, adapter=("lora", None)) == expected
    assert scope_of({}, adapter=["lora", None]) == expected
    assert scope_of({}, adapter=("lora", "r")) == scope_by_cbor2({}, adapter=["lora", "r"])


def test_a_map_may_nest_32_levels():
    deep: dict = {}
    for _ in range(31):
        deep = {"k": deep}
    assert scope_of(deep) == scope_by_cbor2(deep)
    listed: list = []
    for _ in range(30):
        listed = [listed]
    assert scope_of({"k": listed}) == scope_by_cbor2({"k": listed})
