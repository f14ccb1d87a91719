"""Every error of the key specification: a typed exception that names its field, and nothing changed."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import fractions
import io
import math
import sys
import warnings
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import holders
import mmkey
import reference
from mmkey.errors import InvalidRequest, MmkeyError, UnsupportedType

IDS = [1, 7, 7, 7, 7, 2]
SIZES = {"original_size": (56, 56), "resized_size": (28, 56), "patch_grid": (2, 4)}
MOVING = SIZES | {"patch_grid": (2, 2, 4)}
FRAMES = {"frame_indices": [0, 15], "source_fps": 30, "sampled_fps": 2.0, "total_frames": 300}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 and later
    WITHOUT_UNIT = np.timedelta64(1)


def an_engine(**settings: Any) -> mmkey.KeyEngine:
    return mmkey.KeyEngine("C", **({"model_id": "m", "config": {}, "block_size": 2} | settings))


class Bench:
    """An engine with keys to keep, and a good item whose bytes are not read before they must be."""

    def __init__(self) -> None:
        self.engine = an_engine()
        self.bytes = bytearray(b"a picture that is not read yet")
        self.item = mmkey.Image(mmkey.Content.from_bytes(self.bytes), **SIZES, num_visual_tokens=2)

    def prepare(self, item: Any, ids: Any = IDS, layout: Any = ((1, 2), (3, 2)), order: Any = None) -> Any:
        """The second of two pictures is the item in question."""
        return self.engine.prepare(mmkey.Request(ids, [self.item, item], layout, order))

    def image(self, content: Any = b"y", **fields: Any) -> Any:
        if isinstance(content, bytes):
            content = mmkey.Content.from_bytes(content)
        return self.prepare(mmkey.Item(content, **(SIZES | {"num_visual_tokens": 2} | fields)))

    def video(self, sampling: Any = FRAMES, **fields: Any) -> Any:
        fields = MOVING | {"num_visual_tokens": 2, "sampling": sampling} | fields
        return self.prepare(mmkey.Item(mmkey.Content.from_bytes(b"v"), modality="video", **fields))

    def audio(self, content: Any = b"s", **fields: Any) -> Any:
        content = mmkey.Content.from_bytes(content) if isinstance(content, bytes) else content
        return self.prepare(mmkey.Item(content, modality="audio", **({"num_visual_tokens": 2} | fields)))

    def embeds(self, content: Any = None, **fields: Any) -> Any:
        content = content or mmkey.Content.from_array(np.ones((2, 8), np.float16))
        return self.prepare(mmkey.Item(content, modality="embeds", **({"num_visual_tokens": 2} | fields)))

    def check_unchanged(self) -> None:
        """The first item was not hashed along with the wrong one: it still takes the bytes that it has now."""
        self.bytes[0:1] = b"A"
        content = reference.of_bytes("sha256", bytes(self.bytes))
        item = reference.item(content, **SIZES, num_visual_tokens=2)
        scope = reference.scope_digest("sha256", "m", {})
        expected = reference.keys("C", "sha256", IDS, 2, items=[item], layout=[(1, 2)], scope=scope)
        request = mmkey.Request(IDS, [self.item], [(1, 2)])
        assert self.engine.key(request) == expected.request
        assert [bytes(k) for k in self.engine.block_keys(request)] == expected.blocks


class Case(NamedTuple):
    sentence: str
    field: str | tuple[str, ...]  # where several are as good, any of them
    attempt: Any  # takes a Bench


CASES: list[Case] = []


def refuses(sentence: str, field: str | tuple[str, ...], attempt: Any) -> None:
    CASES.append(Case(sentence, field, attempt))


def named(found: str, wanted: str | tuple[str, ...]) -> bool:
    """`items[1].patch_grid` may be called `patch_grid` by an item that does not know its place yet."""
    for one in (wanted,) if isinstance(wanted, str) else wanted:
        if one.startswith("layout") and found.startswith(f"{one}["):  # the number of the pair may be told too
            return True
        if found == one or one.endswith(f".{found}") or found.endswith(f".{one}"):
            return True
    return False


def deep(levels: int) -> dict:
    nested: dict = {}
    for _ in range(levels - 1):
        nested = {"k": nested}
    return nested


def nested_lists(levels: int) -> list:
    nested: list = []
    for _ in range(levels - 1):
        nested = [nested]
    return nested


def cycle() -> dict:
    loop: dict = {}
    loop["k"] = [loop]
    return loop


class Unhashed(str):
    """Text that a dict holds twice."""

    __slots__ = ()

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


class Unpaired(dict):
    def items(self):
        return [1, 2]


# Token ids

NOT_IDS = {
    "a bool": [True],
    "a NumPy bool": [np.True_],
    "an integral float": [1.0],
    "a NumPy float": [np.float32(1)],
    "text": ["1"],
    "None": [None],
    "a byte string": [b"1"],
    "a list": [[1]],
    "a fraction": [fractions.Fraction(1)],
    "a decimal": [decimal.Decimal(1)],
    "a complex number": [1 + 0j],
    "a NumPy time span": [np.timedelta64(1, "s")],
    "a NumPy time span in nanoseconds": [np.timedelta64(1, "ns")],
    "a NumPy date": [np.datetime64(1, "s")],
    "a negative": [-1],
    "a NumPy negative": [np.int8(-1)],
    "an integer of 33 bits": [2**32],
    "a NumPy integer of 33 bits": [np.uint64(2**32)],
    "an integer of 64 bits that is small modulo 2**32": [2**32 + 1],
    "a huge integer": [10**40],
    "a huge negative": [-(10**40)],
    "an integer of 64 bits, negative": [-(2**63)],
}
for name, wrong in NOT_IDS.items():
    for place, ids in (("first", [*wrong, 5]), ("last", [5, 6, *wrong])):
        where = f"token_ids[{ids.index(wrong[0]) if place == 'first' else 2}]"
        refuses(f"{name} that stands {place} is no token id", where, lambda b, i=ids: mmkey.text_only_cache_key(i))
    refuses(
        f"{name} in a tuple is no token id",
        "token_ids[0]",
        lambda b, i=tuple(wrong): b.engine.prepare(mmkey.Request(i)),
    )

NO_LISTS_OF_IDS = {
    "text": "123",
    "a byte string": b"\1\2\3\4",
    "a bytearray": bytearray(4),
    "None": None,
    "an integer": 5,
    "a map": {1: 2},
    "a set": {1, 2},
    "an array of floats": np.arange(3.0),
    "an empty array of floats": np.array([]),
    "an array of bools": np.array([True, False]),
    "an array of objects": np.array([1, 2], object),
    "an array of text": np.array(["1", "2"]),
    "an array of bytes": np.array([b"1", b"2"]),
    "an array of complex numbers": np.array([1j]),
    "an array of time spans": np.array([1, 2], "m8[s]"),
    "an array of dates": np.array([1, 2], "M8[s]"),
    "an array of records": np.array([(1, 2)], [("a", "i4"), ("b", "i4")]),
    "an array of bfloat16": np.array([1, 2], ml_dtypes.bfloat16),
    "an array of 4 bits": np.array([1, 2], ml_dtypes.int4),
    "a masked array": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "an array of floats from the standard library": array.array("d", [1, 2]),
    "an array of characters": array.array("w" if sys.version_info >= (3, 13) else "u", "ab"),
    "an array of two axes": np.zeros((2, 2), np.int64),
    "an array of two axes, one of length 1": np.zeros((1, 4), np.int64),
    "an array of no axes": np.array(5),
    "a NumPy integer": np.int64(5),
    "a memoryview of floats": memoryview(np.arange(3.0)),
    "a memoryview of bools": memoryview(np.array([True])),
    "a memoryview of characters": memoryview(b"abc").cast("c"),
    "a memoryview of two axes": memoryview(np.zeros((2, 2), np.int32)),
    "a DLPack tensor of floats": holders.DLPack(np.arange(3.0)),
    "a DLPack tensor of bools": holders.DLPack(np.array([True])),
    "a DLPack tensor of two axes": holders.DLPack(np.zeros((2, 2), np.int32)),
    "a DLPack tensor on a GPU": holders.DeviceTensor(np.arange(3)),
    "an array interface of floats": holders.ArrayInterface(np.arange(3.0)),
    "an array interface of time spans": holders.ArrayInterface(np.array([1, 2], "m8[s]")),
    "an object": object(),
    "a type": list,
}
for name, wrong in NO_LISTS_OF_IDS.items():
    refuses(f"{name} is no list of token ids", "token_ids", lambda b, i=wrong: mmkey.text_only_cache_key(i))
    refuses(f"{name} is no request", "token_ids", lambda b, i=wrong: b.engine.prepare(mmkey.Request(i)))

NEGATIVE_OR_WIDE = {
    "a negative in an array": np.array([1, -1], np.int64),
    "a negative in an array of bytes": np.array([1, -1], np.int8),
    "a negative in the other byte order": np.array([1, -1], ">i4"),
    "33 bits in an array": np.array([1, 2**32], np.int64),
    "33 bits in an unsigned array": np.array([1, 2**32], np.uint64),
    "the greatest of 64 bits in an array": np.array([1, 2**64 - 1], np.uint64),
    "33 bits in a strided array": np.array([1, 9, 2**32, 9], np.int64)[::2],
    "a negative in an array of the standard library": array.array("q", [1, -1]),
    "33 bits in DLPack": holders.DLPack(np.array([1, 2**32])),
    "33 bits far in": np.array([1, 2**32, *range(100)], np.int64),
}
for name, wrong in NEGATIVE_OR_WIDE.items():
    refuses(f"{name} is no token id", ("token_ids[1]", "token_ids"), lambda b, i=wrong: mmkey.text_only_cache_key(i))

# Layout and order

LAYOUTS = {
    "an empty range": ([(1, 2), (3, 0)], "layout[1]"),
    "a range of negative length": ([(1, 2), (3, -1)], "layout[1]"),
    "a negative offset": ([(-1, 2), (3, 2)], "layout[0]"),
    "ranges that overlap": ([(1, 3), (3, 2)], "layout[1]"),
    "equal ranges": ([(1, 2), (1, 2)], "layout[1]"),
    "ranges out of order": ([(3, 2), (1, 2)], "layout[1]"),
    "a range that leaves the prompt by one": ([(1, 2), (5, 2)], "layout[1]"),
    "a range that begins at the prompt's end": ([(1, 2), (6, 1)], "layout[1]"),
    "a range that begins far outside": ([(1, 2), (2**40, 2)], "layout[1]"),
    "a range whose end overflows 64 bits": ([(1, 2), (2**64 - 1, 2)], "layout[1]"),
    "a range whose length overflows 64 bits": ([(1, 2), (3, 2**64 - 1)], "layout[1]"),
    "a range whose end overflows to a place inside": ([(1, 2), (3, 2**64 - 2)], "layout[1]"),
    "an offset of 65 bits": ([(1, 2), (2**64 + 3, 2)], "layout[1]"),
    "a length of 65 bits": ([(1, 2), (3, 2**64 + 2)], "layout[1]"),
    "a huge offset": ([(1, 2), (10**40, 2)], "layout[1]"),
    "a bool as length": ([(1, 2), (3, True)], "layout[1]"),
    "a float as offset": ([(1, 2), (3.0, 2)], "layout[1]"),
    "text as offset": ([(1, 2), ("3", 2)], "layout[1]"),
    "None as length": ([(1, 2), (3, None)], "layout[1]"),
    "a time span as length": ([(1, 2), (3, np.timedelta64(2, "s"))], "layout[1]"),
    "a range of three numbers": ([(1, 2), (3, 2, 1)], "layout[1]"),
    "a range of one number": ([(1, 2), (3,)], "layout[1]"),
    "a number for a range": ([(1, 2), 3], "layout[1]"),
    "text for a range": ([(1, 2), "32"], "layout[1]"),
    "None for a range": ([(1, 2), None], "layout[1]"),
    "an array of time spans": (np.array([[1, 2], [3, 2]], "m8[ns]"), "layout"),
    "an array of floats": (np.array([[1.0, 2], [3, 2]]), "layout[0]"),
    "an array of one axis": (np.array([1, 2]), "layout[0]"),
    "a number for a layout": (3, "layout"),
    "text for a layout": ("12", "layout"),
    "too few ranges for the items": ([(1, 4)], ("items[1]", "order", "layout")),
    "more ranges than items and no order": ([(1, 2), (3, 1), (4, 1)], "layout"),
    "the empty layout with items": ((), ("items[0]", "order", "layout")),
}


def for_every_strategy(sentence: str, field: Any, layout: Any, order: Any = None) -> None:
    def attempt(bench: Bench, strategy: str) -> None:
        items = [bench.item, mmkey.Image(mmkey.Content.from_bytes(b"y"), **SIZES, num_visual_tokens=2)]
        engine = bench.engine if strategy == "C" else mmkey.KeyEngine(strategy)
        engine.prepare(mmkey.Request(IDS, items, layout, order))

    for strategy in reference.STRATEGIES:
        refuses(f"{sentence} is refused under {strategy}", field, lambda b, s=strategy: attempt(b, s))


for name, (layout, field) in LAYOUTS.items():
    for_every_strategy(name, field, layout)

ORDERS = {
    "an order that is too short": ([0], "order"),
    "an order that is too long": ([0, 1, 0], "order"),
    "an empty order": ([], "order"),
    "an order that names no item": ([0, 2], "order[1]"),
    "an order that names a negative item": ([0, -1], "order[1]"),
    "an order that counts from one": ([1, 2], "order[1]"),
    "an order of huge numbers": ([0, 10**40], "order[1]"),
    "an order of 65 bits": ([0, 2**64 + 1], "order[1]"),
    "an order that leaves an item out": ([1, 1], "items[0]"),
    "a bool in the order": ([0, True], "order[1]"),
    "a float in the order": ([0, 1.0], "order[1]"),
    "text in the order": ([0, "1"], "order[1]"),
    "None in the order": ([0, None], "order[1]"),
    "an order of time spans": (np.array([0, 1], "m8[ns]"), "order"),
    "an order of floats": (np.array([0.0, 1.0]), "order[0]"),
    "a number for an order": (1, "order"),
    "text for an order": ("01", "order"),
}
for name, (order, field) in ORDERS.items():
    for_every_strategy(name, field, ((1, 2), (3, 2)), order)

refuses("a layout without items is refused", ("order[0]", "order", "layout", "layout[0]"),
        lambda b: b.engine.prepare(mmkey.Request(IDS, [], [(1, 2)])))  # fmt: skip
refuses("no layout is refused under C", "layout", lambda b: b.prepare(b.item, layout=None))
refuses("no layout is refused under C, even without items", "layout",
        lambda b: b.engine.prepare(mmkey.Request(IDS, [], None)))  # fmt: skip
refuses("block keys of B with items and no layout are refused", "layout",
        lambda b: mmkey.KeyEngine("B").block_keys(mmkey.Request(IDS, [b.item], None)))  # fmt: skip
refuses("a chain of B with items and no layout is refused", "layout",
        lambda b: mmkey.KeyEngine("B").chain(mmkey.Request(IDS, [b.item], None)))  # fmt: skip
refuses("items that are no items are refused", "items[1]", lambda b: b.prepare("picture"))
refuses("a content in place of an item is refused", "items[1]", lambda b: b.prepare(mmkey.Content.from_bytes(b"y")))
refuses("None in place of an item is refused", "items[1]", lambda b: b.prepare(None))
refuses("None in place of the items is refused", "items", lambda b: mmkey.Request(IDS, None))
refuses("an item in place of the items is refused", "items", lambda b: mmkey.Request(IDS, b.item))
refuses("a placeholder outside every range was typed by a user", "token_ids[5]",
        lambda b: b.engine.prepare(mmkey.Request([1, 7, 7, 3, 3, 7], [b.item], [(1, 2)]),
                                   placeholder_ids=[7]))  # fmt: skip
refuses("placeholder ids that are no ids are refused", ("placeholder_ids[0]", "placeholder_ids"),
        lambda b: b.engine.prepare(mmkey.Request(IDS), placeholder_ids=[-1]))  # fmt: skip
refuses("what is no request is not prepared", "request", lambda b: b.engine.prepare(IDS))
refuses("what is no request has no key", "request", lambda b: b.engine.key(IDS))
refuses("what is no request has no block keys", "request", lambda b: b.engine.block_keys(None))
refuses("what is no request has no chain", "request", lambda b: b.engine.chain("x"))
refuses("a request that another engine prepared has no key here", "request",
        lambda b: b.engine.key(an_engine(model_id="other").prepare(mmkey.Request(IDS))))  # fmt: skip
refuses("a request that another engine prepared has no block keys here", "request",
        lambda b: b.engine.block_keys(mmkey.KeyEngine("A").prepare(mmkey.Request(IDS))))  # fmt: skip
refuses("a request that another engine prepared has no chain here", "request",
        lambda b: b.engine.chain(an_engine(block_size=4).prepare(mmkey.Request(IDS))))  # fmt: skip

# Contents

C = mmkey.Content
CONTENT = ("content", "items[1].content")


def content(sentence: str, make: Any, *fields: str) -> None:
    refuses(sentence, (*CONTENT, *fields), lambda b: b.image(make()))


for wrong in (None, 3, 1.5, object(), {}, {"path": "x"}):
    content(f"{wrong!r:.20} is no content", lambda w=wrong: w)
    content(f"{wrong!r:.20} is no content of anything", lambda w=wrong: C.of(w))
content("bare text is ambiguous", lambda: C.of("picture.png"))
content("no bytes are no content", lambda: C.from_bytes(b""), "data")
content("an empty bytearray is no content", lambda: C.from_bytes(bytearray()), "data")
content("an empty stream is no content", lambda: C.of(io.BytesIO()), "data", "file")
content("text is no bytes", lambda: C.from_bytes("abc"), "data")
content("integers are no bytes", lambda: C.from_bytes([1, 2, 3]), "data")
content("a stream of text is no content", lambda: C.of(io.StringIO("abc")), "file")
content("an integer is no path", lambda: C.from_file(0), "path", "file")
content("None is no path", lambda: C.from_file(None), "path", "file")
content("no frames are no content", lambda: C.from_frames([]), "frames", "contents")
content("a frame must be a content", lambda: C.from_frames([C.from_bytes(b"x"), None]), "contents[1]", "frames[1]")
content("None is no list of frames", lambda: C.from_frames(None), "contents", "frames")
content("an empty identifier is no content", lambda: C.opaque(""), "identifier")
content("an identifier must be text", lambda: C.opaque(b"id"), "identifier")
content("a number is no identifier", lambda: C.opaque(7), "identifier")
content("None is no identifier", lambda: C.opaque(None), "identifier")
content("a lone surrogate is no identifier", lambda: C.opaque("\ud800"), "identifier")
content("a namespace must be text", lambda: C.opaque("id", namespace=b"n"), "namespace")
content("None is no namespace", lambda: C.opaque("id", namespace=None), "namespace")
content("a lone surrogate is no namespace", lambda: C.opaque("id", namespace="\udfff"), "namespace")
for size in (0, 31, 33, 64):
    content(f"{size} bytes are no digest", lambda n=size: C.from_digest("bytes", "sha256", b"d" * n), "digest")
content("hexadecimal text is no digest", lambda: C.from_digest("bytes", "sha256", "0" * 64), "digest")
content("None is no digest", lambda: C.from_digest("bytes", "sha256", None), "digest")
for kind in ("file", "", "Bytes", None, 3, b"bytes"):
    content(f"{kind!r} is no kind", lambda k=kind: C.from_digest(k, "sha256", b"d" * 32), "kind")
for name in ("md5", "", "SHA256", "sha-256", None, 3):
    content(f"{name!r} is no algorithm", lambda a=name: C.from_digest("bytes", a, b"d" * 32), "algorithm")
    refuses(f"a content has no digest by {name!r}", "algorithm", lambda b, a=name: C.from_bytes(b"x").digest(a))
    refuses(f"a content has no text by {name!r}", "algorithm", lambda b, a=name: C.from_bytes(b"x").text(a))

NO_ARRAYS = {
    "objects": np.array([1, None], object),
    "complex numbers": np.array([1j]),
    "complex numbers of 32 bits": np.array([1j], np.complex64),
    "text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "records": np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")]),
    "raw bytes": np.zeros(3, "V4"),
    "dates": np.array([1, 2], "M8[s]"),
    "time spans": np.array([1, 2], "m8[s]"),
    "8-bit floats": np.array([1, 2], ml_dtypes.float8_e4m3fn),
    "4-bit integers": np.array([1, 2], ml_dtypes.int4),
    "no elements": np.zeros((0,), np.uint8),
    "no rows": np.zeros((0, 4, 3), np.uint8),
    "no channels": np.zeros((4, 4, 0), np.float32),
    "masked elements": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "an array interface of objects": holders.ArrayInterface(np.array([1, None], object)),
    "an array interface of dates": holders.ArrayInterface(np.array([1, 2], "M8[s]")),
    "a tensor on a GPU": holders.DeviceTensor(np.zeros(3)),
    "a tensor of complex numbers": holders.DLPack(np.array([1j])),
}
if np.dtype(np.longdouble).itemsize > 8:
    NO_ARRAYS["floats of more than 64 bits"] = np.array([1], np.longdouble)
for name, wrong in NO_ARRAYS.items():
    content(f"{name} are no array", lambda w=wrong: C.from_array(w), "array", "dtype", "shape")
    if not isinstance(wrong, holders.DLPack) or "GPU" in name:
        content(f"{name} are no content", lambda w=wrong: C.of(w), "array", "dtype", "shape")
for wrong in (None, "abc", 5, [1, 2], b"", object()):
    content(f"{wrong!r:.20} is no array", lambda w=wrong: C.from_array(w), "array", "shape")

# Items under strategy C

for name in ("original_size", "resized_size", "patch_grid"):
    refuses(f"an image without {name} is refused", f"items[1].{name}", lambda b, n=name: b.image(**{n: None}))
    refuses(f"a video without {name} is refused", f"items[1].{name}", lambda b, n=name: b.video(**{n: None}))
    refuses(f"audio with {name} is refused", f"items[1].{name}", lambda b, n=name: b.audio(**{n: MOVING[n]}))
    refuses(f"embeddings with {name} are refused", f"items[1].{name}", lambda b, n=name: b.embeds(**{n: MOVING[n]}))
    for wrong in ((0, 4), (-1, 4), (2.0, 4), (True, 4), (None, 4), ("2", 4), (2**64, 4), (10**40, 4), (4,), (), 4, "24",
                  (np.timedelta64(2, "s"), 4), (1, 2, 3, 4), {2: 4}, (np.float64(2), 4), (math.nan, 4), b"24",
                  np.array([2, 4], "m8[ns]"), np.array([2.0, 4.0]), np.array([[2, 4]]), np.array(2)):  # fmt: skip
        field = tuple(f"items[1].{name}{at}" for at in ("", "[0]"))
        refuses(f"{wrong!r:.40} is no {name}", field, lambda b, n=name, w=wrong: b.image(**{n: w}))
for name in ("original_size", "resized_size"):
    refuses(f"three numbers are no {name}", f"items[1].{name}", lambda b, n=name: b.image(**{n: (1, 2, 3)}))
refuses("a grid of two numbers on a video is refused", "items[1].patch_grid", lambda b: b.video(patch_grid=(2, 4)))
for modality in ("image", "video", "audio", "embeds"):
    make = getattr(Bench, modality)
    for wrong in (None, 1, 3, 0, -1, True, 2.0, "2", 2**64 + 2, np.timedelta64(2, "s"), (2,)):
        refuses(f"{wrong!r} is not how many tokens an item of two fills ({modality})", "items[1].num_visual_tokens",
                lambda b, m=make, w=wrong: m(b, num_visual_tokens=w))  # fmt: skip
for wrong in ("Image", "text", "", None, 3, b"image"):
    refuses(f"{wrong!r} is no modality", "items[1].modality", lambda b, w=wrong: b.image(modality=w))
for modality in ("image", "audio", "embeds"):
    make = getattr(Bench, modality)
    for wrong in (FRAMES, {}, {"frame_indices": [0]}):
        refuses(f"{len(wrong)} entries of sampling on {modality} are refused", "items[1].sampling",
                lambda b, m=make, w=wrong: m(b, sampling=w))  # fmt: skip
refuses("embeddings whose content is a file are refused", "items[1].content",
        lambda b: b.embeds(C.from_bytes(b"x")))  # fmt: skip
refuses("embeddings whose content is an identifier are refused", "items[1].content",
        lambda b: b.embeds(C.opaque("x")))  # fmt: skip
refuses("an audio array without its rate is refused", "items[1].processing.sampling_rate",
        lambda b: b.audio(C.from_array(np.zeros(8, np.float32))))  # fmt: skip
refuses("an audio array known by its digest, without its rate, is refused", "items[1].processing.sampling_rate",
        lambda b: b.audio(C.from_digest("array", "sha256", b"d" * 32)))  # fmt: skip
refuses("an audio array whose rate is null is refused", "items[1].processing.sampling_rate",
        lambda b: b.audio(C.from_array(np.zeros(8, np.float32)), processing={"sampling_rate": None}))  # fmt: skip

NO_RATES = (0, 0.0, -0.0, -1, math.nan, math.inf, -math.inf, True, "16000", b"1", [16000], {}, np.float32("nan"),
            10**400, np.timedelta64(1, "s"), fractions.Fraction(1, 2), np.True_, 1j)  # fmt: skip
for wrong in NO_RATES:
    refuses(f"{wrong!r:.30} is no sampling rate", "items[1].processing.sampling_rate",
            lambda b, w=wrong: b.audio(processing={"sampling_rate": w}))  # fmt: skip
    refuses(f"{wrong!r:.30} is no sampling rate on an image either", "items[1].processing.sampling_rate",
            lambda b, w=wrong: b.image(processing={"sampling_rate": w}))  # fmt: skip
    for name in ("source_fps", "sampled_fps"):
        refuses(f"{wrong!r:.30} is no {name}", f"items[1].sampling.{name}",
                lambda b, n=name, w=wrong: b.video(FRAMES | {n: w}))  # fmt: skip

for wrong in (None, {}, {"source_fps": 30}, FRAMES | {"frame_indices": None}, FRAMES | {"frame_indices": []},
              FRAMES | {"frame_indices": np.array([], np.int64)}):  # fmt: skip
    refuses(f"a video is refused without frame indices, as in {wrong!r:.60}",
            ("items[1].sampling.frame_indices", "items[1].sampling"), lambda b, w=wrong: b.video(w))  # fmt: skip
INDICES = "items[1].sampling.frame_indices"
for wrong in ([15, 0], [0, 15, 14], [0, 300], [300], [-1, 0], [0, 1.0], [True], [2**32], ["0"], [None], 5, "05", b"05",
              np.array([1.0]), np.array([[0, 1]]), np.array([True]), np.array([1], "m8[s]"), [np.timedelta64(1, "s")],
              np.array([3, 2], np.uint8), {0, 1}, [0, 10**40]):  # fmt: skip
    where = tuple(f"{INDICES}{at}" for at in ("", "[0]", "[1]", "[2]"))
    if isinstance(wrong, list) and type(wrong[-1]) is int and wrong[-1] == 300:
        where = (*where, "items[1].sampling.total_frames")
    refuses(
        f"{wrong!r:.40} are no frame indices of 300", where, lambda b, w=wrong: b.video(FRAMES | {"frame_indices": w})
    )
refuses("frame indices that stand twice are refused", "items[1].sampling",
        lambda b: b.video(FRAMES | {Unhashed("frame_indices"): [0, 1]}))  # fmt: skip
refuses("frames that descend in an array of bytes are refused", INDICES,
        lambda b: b.video(FRAMES | {"frame_indices": np.array([255, 1], np.uint8), "total_frames": None}))  # fmt: skip
for wrong in (15, 0, -1, 300.0, True, "300", math.nan, 2**64, 10**40, [300], np.float32(300), np.timedelta64(300, "s")):
    refuses(f"{wrong!r:.30} is no total of frames up to 15",
            ("items[1].sampling.total_frames", INDICES, f"{INDICES}[1]"),
            lambda b, w=wrong: b.video(FRAMES | {"total_frames": w}))  # fmt: skip

# Maps

NO_VALUES = {
    "a set": {1},
    "a frozen set": frozenset(),
    "an array": np.zeros(2),
    "an array of no axes": np.array(1),
    "a decimal": decimal.Decimal(1),
    "a fraction": fractions.Fraction(1),
    "a complex number": 1j,
    "a NumPy complex number": np.complex64(1),
    "a date": dt.date(2020, 1, 1),
    "a NumPy date": np.datetime64("2020-01-01"),
    "a NumPy time span": np.timedelta64(1, "s"),
    "a NumPy time span in nanoseconds": np.timedelta64(1, "ns"),
    "a NumPy time span without unit": WITHOUT_UNIT,
    "a record": np.zeros(1, [("a", "i4")])[0],
    "a range": range(3),
    "a view of wider integers": memoryview(np.arange(3)),
    "a view of two axes": memoryview(np.zeros((2, 2), np.uint8)),
    "a generator": (n for n in ()),
    "an object": object(),
    "a function": len,
    "a type": int,
    "an ellipsis": ...,
    "an integer of 65 bits": 2**64,
    "a negative of 65 bits": -(2**64) - 1,
    "a huge integer": 10**40,
    "a lone surrogate": "\ud800",
    "a lone surrogate inside text": "a\udc80b",
    "a lone surrogate in a key": {"\udfff": 1},
    "an integer as key": {1: 2},
    "None as key": {None: 2},
    "bytes as key": {b"k": 2},
    "a tuple as key": {("k",): 2},
    "a bool as key": {True: 2},
    "a key that stands twice": {Unhashed("k"): 1, Unhashed("k"): 2},
    "a map whose items are no pairs": Unpaired(a=1),
    "32 levels inside the map": deep(32),
    "lists of 32 levels inside the map": nested_lists(32),
    "a map that holds itself": cycle(),
    "a value deep inside": [{"a": [(object(),)]}],
}
if np.dtype(np.longdouble).itemsize > 8:
    NO_VALUES["a float of more than 64 bits"] = np.longdouble(1)
MAPS = {
    "config": lambda b, m: an_engine(config=m),
    "processing": lambda b, m: b.image(processing=m),
    "sampling": lambda b, m: b.video(FRAMES | m),
    "attrs": lambda b, m: b.image(C.from_array(np.zeros(2), m)),
}


class AnyPlaceIn(str):
    """A field at this place, or anywhere below it."""

    __slots__ = ()


for where, attempt in MAPS.items():
    for name, wrong in NO_VALUES.items():
        refuses(f"{name} is no value in {where}", AnyPlaceIn(where), lambda b, a=attempt, w=wrong: a(b, {"v": w}))
    twice = {Unhashed("k"): 1, Unhashed("k"): 2}
    refuses(f"a key that stands twice is refused in {where}", AnyPlaceIn(where), lambda b, a=attempt, m=twice: a(b, m))
    for key in (1, None, b"k", "\ud800", ("k",)):
        refuses(f"{key!r} is no key of {where}", AnyPlaceIn(where), lambda b, a=attempt, k=key: a(b, {k: 1}))
for where in ("config", "processing", "attrs"):
    for wrong in ([], [("a", 1)], "text", 5, b"x", {1}, np.zeros(2), object):
        refuses(f"{wrong!r:.30} is no map for {where}", where, lambda b, a=MAPS[where], w=wrong: a(b, w))
for wrong in ([("frame_indices", [0])], "text", 5):
    refuses(f"{wrong!r:.30} is no map for sampling", "sampling", lambda b, w=wrong: b.video(w))

# Engines

for wrong in (0, -1, -(2**40), 1.0, True, False, "16", None, 2**64, 10**40, np.float64(16), np.True_, math.inf,
              np.timedelta64(16, "s"), [16]):  # fmt: skip
    for strategy in reference.STRATEGIES:
        scope = {"model_id": "m", "config": {}} if strategy == "C" else {}
        refuses(f"{wrong!r:.30} is no block size under {strategy}", "block_size",
                lambda b, s=strategy, k=scope, w=wrong: mmkey.KeyEngine(s, block_size=w, **k))  # fmt: skip
for wrong in ("", "D", "a", "AB", "text_only", None, 3, b"A", ["A"]):
    refuses(f"{wrong!r} is no strategy", "strategy", lambda b, w=wrong: mmkey.KeyEngine(w, model_id="m", config={}))
for wrong in ("", "md5", "SHA256", "sha3", None, 3, b"sha256", ["sha256"]):
    refuses(f"{wrong!r} is no algorithm of an engine", "algorithm", lambda b, w=wrong: an_engine(algorithm=w))
    refuses(f"{wrong!r} is no algorithm of a key", "algorithm",
            lambda b, w=wrong: mmkey.text_only_cache_key([1], algorithm=w))  # fmt: skip
for wrong in ("", None, 3, b"m", "\ud800", ["m"]):
    refuses(f"{wrong!r} is no model", "model_id", lambda b, w=wrong: an_engine(model_id=w))
for wrong in (3, b"r", "\ud800", ["r"], 1.5):
    refuses(f"{wrong!r} is no revision", "revision", lambda b, w=wrong: an_engine(revision=w))
for wrong in (3, b"a", (), ("a",), ("a", "r", "x"), (None, "r"), (b"a", None), ("a", 3), {"name": "a"}, "\ud800",
              ("a", "\ud800"), ("a", b"r")):  # fmt: skip
    refuses(f"{wrong!r} is no adapter", ("adapter", "adapter[0]", "adapter[1]", "adapter.name", "adapter.revision"),
            lambda b, w=wrong: an_engine(adapter=w))  # fmt: skip
for wrong in (b"", "", bytearray(), 3, 1.5, ["s"], "\ud800", True, {}):
    for strategy in reference.STRATEGIES:
        scope = {"model_id": "m", "config": {}} if strategy == "C" else {}
        refuses(f"{wrong!r} is no salt under {strategy}", "salt",
                lambda b, s=strategy, k=scope, w=wrong: mmkey.KeyEngine(s, salt=w, **k))  # fmt: skip
    refuses(f"{wrong!r} is no salt of a text key", "salt", lambda b, w=wrong: mmkey.text_only_cache_key([1], salt=w))
refuses("no config is refused", "config", lambda b: mmkey.KeyEngine("C", model_id="m"))
refuses("a null config is refused", "config", lambda b: an_engine(config=None))
refuses("no model is refused", "model_id", lambda b: mmkey.KeyEngine("C", config={}))
for wrong in (None, "x", 5, b"x"):
    refuses(f"{wrong!r} are no pictures", "images", lambda b, w=wrong: mmkey.text_plus_image_hash_cache_key([1], w))
refuses("a picture by bare text is ambiguous", "images[1]",
        lambda b: mmkey.text_plus_image_hash_cache_key([1], [b"x", "y.png"]))  # fmt: skip
refuses("an empty picture is refused", "images[1]", lambda b: mmkey.text_plus_image_hash_cache_key([1], [b"x", b""]))


def in_place(found: str, wanted: Any) -> bool:
    if not isinstance(wanted, AnyPlaceIn):
        return named(found, wanted)
    return any(part.partition("[")[0] == wanted for part in found.split(".")) or found.startswith(f"{wanted}[")


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_refused(case):
    bench = Bench()
    with pytest.raises(MmkeyError) as caught:
        case.attempt(bench)
    error = caught.value
    assert isinstance(error, (InvalidRequest, UnsupportedType)), repr(error)
    assert in_place(error.field, case.field), f"{error.field!r} where {case.field!r} is wrong: {error}"
    assert "\n" not in str(error)
    assert error.field in str(error)
    bench.check_unchanged()


def test_no_two_cases_have_one_name():
    sentences = [case.sentence for case in CASES]
    assert len(sentences) == len(set(sentences)), [s for s in set(sentences) if sentences.count(s) > 1]


def test_the_exceptions_are_also_those_of_the_language():
    assert issubclass(InvalidRequest, ValueError)
    assert issubclass(UnsupportedType, TypeError)
    assert issubclass(InvalidRequest, MmkeyError) and issubclass(UnsupportedType, MmkeyError)
    assert issubclass(mmkey.errors.CapacityError, MmkeyError)
    with pytest.raises(TypeError):
        mmkey.text_only_cache_key([1.0])
    with pytest.raises(ValueError, match=r"token_ids\[0\]"):
        mmkey.text_only_cache_key([-1])


def test_an_error_shows_the_wrong_value_and_what_is_allowed():
    with pytest.raises(InvalidRequest) as caught:
        mmkey.text_only_cache_key([5, 4294967299])
    assert "4294967299" in str(caught.value)
    with pytest.raises(InvalidRequest) as caught:
        Bench().image(num_visual_tokens=5)
    assert "5" in str(caught.value) and "2" in str(caught.value)
    with pytest.raises(InvalidRequest, match=r"sha256.*blake3"):
        an_engine(algorithm="md5")


def test_a_huge_wrong_value_does_not_make_a_huge_message():
    for attempt in (
        lambda: mmkey.text_only_cache_key([1 << 400_000]),
        lambda: an_engine(model_id="m", revision=["x" * 100_000]),
        lambda: an_engine(config={"v": "x" * 100_000 + "\ud800"}),
        lambda: an_engine(config={"v": 1 << 400_000}),
        lambda: mmkey.Content.of("x" * 100_000),
        lambda: an_engine(block_size=1 << 400_000),
    ):
        with pytest.raises(MmkeyError) as caught:
            attempt()
        assert len(str(caught.value)) < 2000


def test_a_request_wrong_in_its_second_item_leaves_the_file_of_the_first_unread(tmp_path):
    path = tmp_path / "picture"
    path.write_bytes(b"first")
    engine = an_engine()
    first = mmkey.Image(mmkey.Content.from_file(path), **SIZES, num_visual_tokens=2)
    second = mmkey.Image(mmkey.Content.from_bytes(b"y"), **SIZES, num_visual_tokens=3)
    with pytest.raises(InvalidRequest):
        engine.prepare(mmkey.Request(IDS, [first, second], [(1, 2), (3, 2)]))
    path.write_bytes(b"second")
    item = reference.item(reference.of_bytes("sha256", b"second"), **SIZES, num_visual_tokens=2)
    text = f"mmkey1:item:sha256:{reference.item_digest('sha256', item).hex()}"
    assert engine.prepare(mmkey.Request(IDS, [first], [(1, 2)])).item_texts == (text,)


def test_a_request_wrong_in_its_layout_leaves_a_stream_unread():
    stream = io.BytesIO(b"a stream that is read once")
    item = mmkey.Image(mmkey.Content.of(stream), **SIZES, num_visual_tokens=3)
    with pytest.raises(InvalidRequest):
        an_engine().prepare(mmkey.Request(IDS, [item], [(1, 2)]))
    assert item.content.digest("sha256") == reference.digest("sha256", b"a stream that is read once")


def test_a_missing_file_is_said_by_the_error_of_the_language(tmp_path):
    with pytest.raises((FileNotFoundError, MmkeyError)):
        mmkey.Content.from_file(tmp_path / "nothing here").digest("sha256")


def test_an_empty_file_and_a_folder_are_refused(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidRequest):
        mmkey.Content.from_file(tmp_path / "empty").digest("sha256")
    with pytest.raises((MmkeyError, IsADirectoryError)):
        mmkey.Content.from_file(tmp_path).digest("sha256")


def test_strategies_a_and_b_ask_for_no_metadata():
    bare = [mmkey.Item(mmkey.Content.from_bytes(b"x"))]
    for strategy in "AB":
        engine = mmkey.KeyEngine(strategy)
        content = reference.item(reference.of_bytes("sha256", b"x"))
        expected = reference.keys(strategy, "sha256", IDS, 16, items=[content], layout=[(1, 4)])
        assert engine.key(mmkey.Request(IDS, bare, [(1, 4)])) == expected.request


def test_b_without_a_layout_has_a_request_key_with_contents_as_listed():
    contents = [mmkey.Content.from_bytes(b) for b in (b"x", b"y")]
    engine = mmkey.KeyEngine("B")
    request = mmkey.Request(IDS, [mmkey.Item(c) for c in contents], None)
    items = [reference.item(reference.of_bytes("sha256", b)) for b in (b"x", b"y")]
    assert engine.key(request) == reference.keys("B", "sha256", IDS, 16, items=items, layout=None).request


def test_without_items_and_layout_b_still_has_block_keys():
    expected = reference.keys("B", "sha256", IDS, 2, layout=None).blocks
    assert [bytes(k) for k in mmkey.KeyEngine("B", block_size=2).block_keys(mmkey.Request(IDS, (), None))] == expected
