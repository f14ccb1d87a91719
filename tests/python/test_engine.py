"""The laws of keys, by Hypothesis: sound, free of containers, in normal form, and growing with the prompt."""

from __future__ import annotations

import array
import copy
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import logical
import mmkey
import reference
import strategies
from logical import Plain, PlainItem

SPAN_NAMES = ("image", "video")


@given(strategies.requests(), st.sampled_from("ABC"))
def test_keys_are_those_of_the_twin(plain, strategy):
    assert plain.keys(strategy) == plain.twin(strategy)


@given(strategies.requests())
def test_texts_are_those_of_the_twin(plain):
    engine = plain.engine()
    prepared = engine.prepare(plain.request())
    algorithm = plain.algorithm
    items = [reference.item_digest(algorithm, i.twin(algorithm)).hex() for i in plain.items]
    assert prepared.item_texts == tuple(f"mmkey1:item:{algorithm}:{d}" for d in items)
    assert engine.scope_text == f"mmkey1:scope:{algorithm}:{plain.scope().hex()}"
    assert engine.root == reference.root(algorithm, "C", plain.block_size, plain.scope())


@given(strategies.requests(max_items=1), strategies.requests(max_items=1))
def test_two_requests_share_a_key_exactly_if_they_mean_the_same(a, b):
    b = b.but(algorithm=a.algorithm)
    assert (a.key() == b.key()) == (strategies.meaning(a) == strategies.meaning(b))


@given(strategies.requests(), strategies.requests())
def test_two_requests_share_block_keys_only_as_far_as_they_mean_the_same(a, b):
    """Block by block, shared keys imply equal ids and equal places up to there; never beyond."""
    b = b.but(algorithm=a.algorithm, block_size=a.block_size)
    shared = 0
    for x, y in zip(a.blocks(), b.blocks(), strict=False):
        if x != y:
            break
        shared += 1
    assert not set(a.blocks()[shared:]) & set(b.blocks()[shared:])
    assert a.token_ids[: shared * a.block_size] == b.token_ids[: shared * a.block_size]
    if shared:
        scope = ("model_id", "config", "revision", "adapter", "salt")
        assert [strategies.typed(getattr(a, n)) for n in scope] == [strategies.typed(getattr(b, n)) for n in scope]


def flip(value):
    return {True: False, False: True}.get(value, value)


def content_changes(content):
    match content:
        case ("bytes", data):
            yield ("bytes", data + b"\0")
            yield ("bytes", bytes([data[0] ^ 1]) + data[1:])
            yield ("opaque", "x", "")
            yield ("array", "u1", [len(data)], {}, data)
            yield ("frames", [content])
        case ("array", dtype, shape, attrs, data):
            yield ("array", dtype, shape, attrs | {"new": 1}, data)
            yield ("array", dtype, [1, *shape], attrs, data)
            yield ("array", dtype, shape, attrs, bytes([data[0] ^ 1]) + data[1:])
            if dtype == "u1":
                yield ("array", "i1", shape, attrs, data)
            if dtype == "bf2":
                yield ("array", "f2", shape, attrs, data)
        case ("frames", frames):
            yield ("frames", [*frames, frames[0]])
            yield ("frames", [("bytes", b"another"), *frames[1:]])
        case ("opaque", identifier, namespace):
            yield ("opaque", identifier + "!", namespace)
            yield ("opaque", identifier, namespace + "!")


def item_changes(item: PlainItem):
    """Every way to change one logical field of an item, with a name."""
    for content in content_changes(item.content):
        if item.fields["modality"] != "embeds" or content[0] == "array":
            rate = item.fields["modality"] == "audio" and content[0] == "array"
            if not rate or "sampling_rate" in item.fields["processing"]:
                yield f"content {content[0]}", item.but(content=content)
    for name in ("original_size", "resized_size", "patch_grid"):
        value = item.fields.get(name)
        if value is not None:
            yield name, item.but(**{name: (*value[:-1], value[-1] + 1)})
            yield name, item.but(**{name: (value[0] + 1, *value[1:])})
            if value[-1] != value[-2]:
                yield f"{name} turned", item.but(**{name: (*value[:-2], value[-1], value[-2])})
    processing = item.fields["processing"]
    yield "processing", item.but(processing=processing | {"new": None})
    yield "processing", item.but(processing=processing | {"new": {}})
    for key, value in processing.items():
        yield (
            f"processing.{key} gone",
            item.but(processing={k: v for k, v in processing.items() if k != key})
            if (key != "sampling_rate" or item.content[0] != "array")
            else item.but(processing=processing | {key: value + 1}),
        )
        yield f"processing.{key}", item.but(processing=processing | {key: 12345})
    sampling = item.fields.get("sampling")
    if sampling is not None:
        indices = sampling["frame_indices"]
        for changed in ([*indices, indices[-1]], [*indices[:-1], indices[-1] + 1] if indices[-1] < 70_000 else [0]):
            yield "frame_indices", item.but(sampling=sampling | {"frame_indices": changed})
        for name in ("source_fps", "sampled_fps"):
            other = 23.976 if sampling[name] is None else None
            yield name, item.but(sampling=sampling | {name: other})
            yield name, item.but(sampling=sampling | {name: 1e-3})
        yield "total_frames", item.but(sampling=sampling | {"total_frames": 99_999})
        yield "sampling", item.but(sampling=sampling | {"new": None})
    if item.fields["modality"] in ("audio", "embeds") and item.content[0] == "array":
        other = {"audio": "embeds", "embeds": "audio"}[item.fields["modality"]]
        if other == "embeds" or "sampling_rate" in processing:
            yield "modality", item.but(modality=other)


def changes(plain: Plain):
    """Every single change of a logical field of a request, with a name."""
    for place in range(len(plain.token_ids)):
        ids = [*plain.token_ids]
        ids[place] ^= 1
        yield f"token {place}", plain.but(token_ids=ids)
    yield "one more token", plain.but(token_ids=[*plain.token_ids, 0])
    for number, item in enumerate(plain.items):
        for name, changed in item_changes(item):
            items = [*plain.items]
            items[number] = changed
            yield f"items[{number}]: {name}", plain.but(items=items)
    for n, m in combinations(range(len(plain.items)), 2):
        counts = [plain.items[i].fields["num_visual_tokens"] for i in (n, m)]
        if counts[0] == counts[1]:
            items = [*plain.items]
            items[n], items[m] = items[m], items[n]
            if strategies.meaning(plain.but(items=items)) != strategies.meaning(plain):
                yield f"items {n} and {m} exchanged", plain.but(items=items)
    for n, (offset, length) in enumerate(plain.layout):
        end = plain.layout[n + 1][0] if n + 1 < len(plain.layout) else len(plain.token_ids)
        if offset + length < end:
            moved = [*plain.layout]
            moved[n] = (offset + 1, length)
            yield f"layout[{n}] moved", plain.but(layout=moved)
    yield "model_id", plain.but(model_id=plain.model_id + "!")
    yield "revision", plain.but(revision=None if plain.revision is not None else "")
    yield "revision", plain.but(revision="other")
    yield "config", plain.but(config=plain.config | {"new": None})
    for key, value in plain.config.items():
        yield f"config.{key} gone", plain.but(config={k: v for k, v in plain.config.items() if k != key})
        yield f"config.{key}", plain.but(config=plain.config | {key: 12345})
        if value in (0, 1) and not isinstance(value, bool):
            other = int(value) if isinstance(value, float) else float(value)
            yield f"config.{key} of another type", plain.but(config=plain.config | {key: other})
    yield "adapter", plain.but(adapter=("other", None))
    yield "adapter revision", plain.but(adapter=("b", "other"))
    yield "salt", plain.but(salt=(plain.salt or b"") + b"!")


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(strategies.requests(max_items=2, max_run=5), st.data())
def test_any_single_change_of_a_logical_field_changes_the_key(plain, data):
    key, blocks = plain.key(), plain.blocks()
    every = list(changes(plain))
    seen = {}
    for name, changed in every:
        if strategies.meaning(changed) == strategies.meaning(plain):
            continue  # such as a range moved into its own item
        found = changed.key()
        assert found != key, name
        assert seen.setdefault(found, strategies.meaning(changed)) == strategies.meaning(changed), name
        assert found == changed.twin().request, name
    name, changed = data.draw(st.sampled_from(every))
    assert changed.blocks() == changed.twin().blocks[: len(changed.token_ids) // changed.block_size]
    if blocks and ("model" in name or "config" in name or "salt" in name or "adapter" in name or "revision" in name):
        assert not set(blocks) & set(changed.blocks()), name


def test_the_changes_that_are_tried_name_every_field():
    """The law above is no stronger than the changes that it tries."""
    video = PlainItem(
        ("bytes", b"x"),
        {
            "modality": "video",
            "original_size": (56, 28),
            "resized_size": (28, 56),
            "patch_grid": (1, 2, 4),
            "num_visual_tokens": 2,
            "sampling": {"frame_indices": [0, 15], "source_fps": 30, "sampled_fps": 2, "total_frames": 300},
            "processing": {"a": 1},
        },
    )
    plain = Plain([7, 7, 1, 2], [video], [(0, 2)], [0], config={"a": 1})
    names = " ".join(name for name, _ in changes(plain))
    fields = "token content original_size resized_size patch_grid processing frame_indices source_fps sampled_fps"
    fields += " total_frames layout model_id revision config adapter salt"
    for field in fields.split():
        assert field in names, field


@given(strategies.requests(), st.randoms(use_true_random=False), st.sampled_from("ABC"))
def test_the_callers_listing_of_items_means_nothing(plain, random, strategy):
    shuffled = list(range(len(plain.items)))
    random.shuffle(shuffled)
    listed = plain.but(items=[plain.items[n] for n in shuffled], order=[shuffled.index(n) for n in plain.order])
    assert listed.keys(strategy) == plain.keys(strategy)


@given(strategies.requests(), st.randoms(use_true_random=False), st.sampled_from("ABC"))
def test_a_range_cut_into_touching_pieces_means_nothing(plain, random, strategy):
    layout, order = [], []
    for (offset, length), number in zip(plain.layout, plain.order, strict=True):
        done = 0
        while done < length:
            piece = random.randint(1, length - done)
            layout.append((offset + done, piece))
            order.append(number)
            done += piece
    assert plain.but(layout=layout, order=order).keys(strategy) == plain.keys(strategy)


@given(strategies.requests(), st.sampled_from("ABC"))
def test_a_default_order_is_zero_one_two(plain, strategy):
    assume(plain.order == list(range(len(plain.order))))
    assert plain.but(order=None).keys(strategy) == plain.keys(strategy)


@given(strategies.requests(), strategies.requests(), st.sampled_from("ABC"))
def test_a_longer_request_keeps_every_full_block_key_of_a_shorter_one(plain, more, strategy):
    shift = len(plain.token_ids)
    longer = plain.but(
        token_ids=plain.token_ids + more.token_ids,
        items=plain.items + more.items,
        layout=[*plain.layout, *((o + shift, n) for o, n in more.layout)],
        order=[*plain.order, *(n + len(plain.items) for n in more.order)],
    )
    blocks = plain.blocks(strategy)
    assert longer.blocks(strategy)[: len(blocks)] == blocks


@given(strategies.requests(), st.sampled_from("ABC"))
def test_the_partial_tail_has_the_key_of_a_block(plain, strategy):
    engine = plain.engine(strategy)
    whole, full = (logical.blocks_of(engine, plain.request(), partial=p) for p in (True, False))
    assert whole[: len(full)] == full
    assert len(whole) == -(-len(plain.token_ids) // plain.block_size)
    assert len(full) == len(plain.token_ids) // plain.block_size


@given(strategies.requests(), st.sampled_from("ABC"))
def test_giving_keys_changes_nothing(plain, strategy):
    engine = plain.engine(strategy)
    prepared = engine.prepare(plain.request())
    before = (engine.key(prepared), engine.block_keys(prepared).tobytes(), engine.root)
    keys = engine.block_keys(prepared)
    if keys.flags.writeable:
        keys[...] = 0
    assert (engine.key(prepared), engine.block_keys(prepared).tobytes(), engine.root) == before


@given(strategies.requests(max_items=2))
def test_b_is_blind_to_metadata_and_c_is_not(plain):
    assume(plain.items)
    other = plain.but(items=[i.but(processing=i.fields["processing"] | {"new": 1}) for i in plain.items])
    assert plain.keys("B") == other.keys("B")
    assert plain.key("C") != other.key("C")


@given(strategies.requests())
def test_a_is_blind_to_media(plain):
    bare = plain.but(items=[], layout=[], order=None)
    assert plain.keys("A") == bare.keys("A")
    assert bool(plain.engine("A").prepare(plain.request()).unsafe) == bool(plain.items)


# Requests as they grow large


@pytest.mark.parametrize("strategy", reference.STRATEGIES)
def test_a_long_prompt_with_many_pictures_has_the_keys_of_the_twin(strategy, block_size, algorithm):
    random = np.random.default_rng(block_size)
    fields = {"modality": "image", "original_size": (56, 56), "resized_size": (56, 56), "patch_grid": (4, 4)}
    ids, items, layout = [], [], []
    for n in range(60):
        ids += random.integers(0, 2**32, int(random.integers(1, 90))).tolist()
        length = int(random.choice([1, 16, 17, 64, 256, 300]))
        layout.append((len(ids), length))
        ids += [7] * length
        items.append(PlainItem(("bytes", b"%d" % (n % 7)), fields | {"num_visual_tokens": length}))
    plain = Plain(ids, items, layout, None, block_size=block_size, algorithm=algorithm)
    assert plain.keys(strategy) == plain.twin(strategy)


def test_an_item_of_thousands_of_ranges_has_the_keys_of_the_twin(algorithm):
    """One token in two is text, so each block holds many spans, and its message is longer than a BLAKE3 chunk."""
    fields = {"modality": "audio", "num_visual_tokens": 500}
    layout = [(2 * n, 1) for n in range(1000)]
    order = [n % 2 for n in range(1000)]
    items = [PlainItem(("bytes", b), fields) for b in (b"x", b"y")]
    for size in (1, 16, 256, 1500):
        plain = Plain([7, 1] * 1000, items, layout, order, block_size=size, algorithm=algorithm)
        for strategy in "BC":
            assert plain.keys(strategy) == plain.twin(strategy)


def test_a_block_larger_than_the_prompt_is_a_partial_tail():
    plain = Plain([1, 2, 3], block_size=2**40)
    engine = plain.engine()
    assert engine.block_keys(plain.request()).shape == (0, 32)
    scope = reference.root("sha256", "C", 2**40, plain.scope())
    expected = reference.block_key("sha256", [1, 2, 3], [], scope)
    assert logical.blocks_of(engine, plain.request(), partial=True) == [expected]


# What requests and engines are as objects


def a_request():
    fields = {"original_size": (56, 56), "resized_size": (28, 56), "patch_grid": (2, 4), "num_visual_tokens": 2}
    item = mmkey.Image(mmkey.Content.from_bytes(b"x"), **fields, processing={"a": [1]})
    return mmkey.Request([1, 7, 7, 2], [item], [(1, 2)])


def test_the_named_items_fix_their_modality():
    content = mmkey.Content.from_array(np.zeros((2, 3), np.float32))
    for kind, modality in ((mmkey.Image, "image"), (mmkey.Video, "video"), (mmkey.Audio, "audio")):
        assert kind(content).modality == modality
        with pytest.raises(TypeError):
            kind(content, modality="embeds")
    assert mmkey.Item(content).modality == "image"
    assert mmkey.Item(content, modality="embeds").modality == "embeds"
    named = mmkey.Audio(content, num_visual_tokens=3, processing={"sampling_rate": 8000})
    assert named == mmkey.Item(content, modality="audio", num_visual_tokens=3, processing={"sampling_rate": 8000.0})


def test_items_and_requests_are_compared_by_value():
    content = mmkey.Content.from_bytes(b"x")
    base = {"patch_grid": (2, 4), "num_visual_tokens": 2, "processing": {"a": 1}}
    item = mmkey.Item(content, **base)
    same = [
        mmkey.Item(mmkey.Content.from_bytes(bytearray(b"x")), **base),
        mmkey.Item(content, **(base | {"patch_grid": [2, 4]})),
        mmkey.Item(content, **(base | {"processing": {"a": np.int64(1)}})),
    ]
    other = [
        mmkey.Item(mmkey.Content.from_bytes(b"y"), **base),
        *(
            mmkey.Item(content, **(base | {"processing": p}))
            for p in ({"a": 1.0}, {"a": True}, {}, {"a": 1, "b": None})
        ),
        mmkey.Item(content, **(base | {"patch_grid": (4, 2)})),
        mmkey.Item(content, **(base | {"num_visual_tokens": 3})),
        mmkey.Item(content, **(base | {"original_size": (1, 1)})),
        mmkey.Item(content, num_visual_tokens=2, processing={"a": 1}, modality="audio"),
    ]
    for one in same:
        assert item == one
        assert hash(item) == hash(one)
    for one in other:
        assert item != one
    request = mmkey.Request([1, 2, 3], [item], [(0, 2)])
    assert request == mmkey.Request(np.array([1, 2, 3], ">i8"), [same[0]], [[0, 2]])
    assert hash(request) == hash(mmkey.Request((1, 2, 3), (same[1],), ((0, 2),)))
    assert request != mmkey.Request([1, 2, 4], [item], [(0, 2)])
    assert request != mmkey.Request([1, 2, 3], [item], [(1, 2)])
    assert request != mmkey.Request([1, 2, 3], [other[0]], [(0, 2)])
    assert request != mmkey.Request([1, 2, 3], [item], None)
    assert request != [1, 2, 3]


def test_nothing_that_a_key_is_made_of_can_be_written_to():
    request = a_request()
    engine = mmkey.KeyEngine("C", model_id="m", config={}, block_size=2)
    things = (request, request.items[0], engine, engine.prepare(request))
    names = "token_ids items layout order modality patch_grid processing sampling num_visual_tokens content"
    names += " unsafe item_texts root scope_text block_size algorithm strategy new"
    for thing in things:
        for name in names.split():
            with pytest.raises((AttributeError, TypeError)):
                setattr(thing, name, 5)


def test_what_a_caller_does_afterwards_to_what_was_given_changes_no_key():
    ids = np.array([1, 7, 7, 2], np.uint32)
    processing = {"a": [1, {"b": 2}]}
    indices = np.array([0, 15], np.uint32)
    sampling = {"frame_indices": indices}
    size, grid, layout, order = [56, 56], [1, 2, 4], [[1, 2]], [0]
    config = {"c": [1]}
    content = mmkey.Content.from_bytes(b"x")
    item = mmkey.Video(content, original_size=size, resized_size=size, patch_grid=grid, num_visual_tokens=2,
                       sampling=sampling, processing=processing)  # fmt: skip
    items = [item]
    request = mmkey.Request(ids, items, layout, order)
    engine = mmkey.KeyEngine("C", model_id="m", config=config, block_size=2)
    plain = PlainItem(
        ("bytes", b"x"),
        {"modality": "video", "original_size": [56, 56], "resized_size": [56, 56], "patch_grid": [1, 2, 4],
         "num_visual_tokens": 2, "sampling": {"frame_indices": [0, 15]}, "processing": {"a": [1, {"b": 2}]}},
    )  # fmt: skip
    expected = Plain([1, 7, 7, 2], [plain], [(1, 2)], [0], model_id="m", config={"c": [1]}, block_size=2).twin()
    ids[:] = 9
    indices[:] = 3
    processing["a"][1]["b"] = 3
    processing["new"] = 1
    sampling["source_fps"] = 1.0
    size[0] = grid[0] = layout[0][0] = order[0] = 9
    items.clear()
    config["c"].append(2)
    assert engine.key(request) == expected.request
    assert logical.blocks_of(engine, request) == expected.blocks
    for shown in (item.processing, item.sampling):
        for tamper in (lambda m: m.update(a=5), lambda m: m["a"].append(2), lambda m: m.clear()):
            try:
                tamper(shown)
            except (AttributeError, TypeError, KeyError):
                continue
    assert engine.key(request) == expected.request
    attrs = {"mode": "L", "box": [1, {"a": 2}]}
    content = mmkey.Content.from_array(np.zeros(3, np.uint8), attrs)
    digest = mmkey.Content.from_array(np.zeros(3, np.uint8), copy.deepcopy(attrs)).digest("sha256")
    attrs["mode"] = "P"
    attrs["box"][1]["a"] = 3
    assert content.digest("sha256") == digest
    ids = np.array([1, 7, 7, 2], np.uint32)
    prepared = engine.prepare(mmkey.Request(ids, [item], [(1, 2)]))
    ids[:] = 9
    assert logical.blocks_of(engine, prepared) == expected.blocks


def test_an_item_shows_what_it_was_given():
    item = a_request().items[0]
    assert item.modality == "image"
    assert tuple(item.original_size) == (56, 56)
    assert tuple(item.resized_size) == (28, 56)
    assert tuple(item.patch_grid) in ((2, 4), (1, 2, 4))
    assert item.num_visual_tokens == 2
    assert dict(item.processing) in ({"a": [1]}, {"a": (1,)})
    assert item.content == mmkey.Content.from_bytes(b"x")
    assert not item.sampling


def test_a_request_shows_what_it_was_given():
    request = a_request()
    assert list(request.token_ids) == [1, 7, 7, 2]
    assert len(request.items) == 1
    assert [tuple(r) for r in request.layout] == [(1, 2)]
    assert mmkey.Request([1], (), None).layout is None
    indices = array.array("I", [0, 15])
    video = mmkey.Video(mmkey.Content.from_bytes(b"x"), sampling={"frame_indices": indices, "source_fps": 2})
    indices[1] = 99
    assert tuple(video.sampling["frame_indices"]) == (0, 15)
    assert video.sampling["source_fps"] == 2


def test_everything_has_a_short_and_telling_repr():
    request = mmkey.Request(list(range(10_000)), (), ())
    engine = mmkey.KeyEngine("C", model_id="the-model", config={}, salt=b"a secret that is kept", block_size=32)
    chain = engine.chain(request)
    many = mmkey.Request([7] * 900, [a_request().items[0]], [(2 * n, 1) for n in range(400)], [0] * 400)
    for thing in (a_request(), a_request().items[0], request, many, engine, engine.prepare(request), chain):
        shown = repr(thing)
        assert type(thing).__name__ in shown
        assert len(shown) < 400
        assert "\n" not in shown
    assert "a secret that is kept" not in repr(engine)
    assert "32" in repr(engine)


def test_copies_are_equal():
    request = a_request()
    for thing in (request, request.items[0], request.items[0].content):
        assert copy.copy(thing) == thing
        assert copy.deepcopy(thing) == thing


def test_an_engine_of_equal_settings_takes_what_another_prepared():
    one, other = (mmkey.KeyEngine("C", model_id="m", config={}, block_size=2) for _ in range(2))
    assert one.key(other.prepare(a_request())) == one.key(a_request())
    assert logical.blocks_of(one, other.prepare(a_request())) == logical.blocks_of(one, a_request())
