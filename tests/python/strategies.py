"""What Hypothesis draws: values of maps, contents, items and whole logical requests; and what a request means."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from logical import Plain, PlainItem

HEAD_EDGES = [n for e in (0, 23, 24, 255, 256, 2**16, 2**32, 2**53, 2**63, 2**64) for n in (e - 1, e, e + 1)]
INTEGERS = st.one_of(
    st.sampled_from([n for n in [*HEAD_EDGES, *(-n for n in HEAD_EDGES), -(2**64)] if -(2**64) <= n < 2**64]),
    st.integers(-(2**64), 2**64 - 1),
)
FLOATS = st.one_of(
    st.floats(width=16),
    st.floats(width=32),
    st.floats(width=64),
    st.sampled_from([0.0, -0.0, 65504.0, 65505.0, 65520.0, 5.960464477539063e-08, 2.9802322387695312e-08]),
    st.sampled_from([3.4028234663852886e38, 3.4028235677973366e38, 1.401298464324817e-45, 5e-324, 1e300, 0.1, 1.5]),
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXTS, st.binary(max_size=40)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXTS, inner, max_size=5)),
    max_leaves=12,
)
MAPS = st.dictionaries(TEXTS, VALUES, max_size=6)

TOKEN_IDS = st.one_of(st.integers(0, 40), st.integers(0, 200_000), st.sampled_from([2**31, 2**32 - 1]))

# From small pools on purpose, so that equal and nearly equal requests are drawn often.
SMALL_VALUES = st.sampled_from([None, True, 1, 1.0, "1", b"1", [1], {}, {"a": 1}, 0.0, -0.0])
SMALL_MAPS = st.dictionaries(st.sampled_from(["a", "b", "ab"]), SMALL_VALUES, max_size=2)
CONTENTS = st.one_of(
    st.sampled_from([b"x", b"y", b"xy"]).map(lambda data: ("bytes", data)),
    st.sampled_from([("u1", (2, 3)), ("u1", (3, 2)), ("i1", (2, 3)), ("f2", (3,)), ("bf2", (3,))]).flatmap(
        lambda of: st.sampled_from([b"abcdef", b"abcdeg"]).map(lambda data: ("array", *of, {}, data))
    ),
    st.sampled_from([("a", ""), ("b", ""), ("a", "b"), ("ab", "")]).map(lambda names: ("opaque", *names)),
    st.lists(st.sampled_from([("bytes", b"x"), ("bytes", b"y")]), min_size=1, max_size=3).map(
        lambda frames: ("frames", frames)
    ),
)
SIZES = st.sampled_from([(56, 28), (28, 56), (56, 56)])
GRIDS = st.sampled_from([(1, 2, 4), (1, 4, 2), (2, 2, 2)])
FPS = st.sampled_from([None, 1, 1.0, 2.0, 29.97])


@st.composite
def items(draw: Any) -> PlainItem:
    """An item in full, but for num_visual_tokens, which the layout gives."""
    modality = draw(st.sampled_from(["image", "image", "video", "audio", "embeds"]))
    fields: dict[str, Any] = {"modality": modality, "processing": draw(SMALL_MAPS)}
    content = draw(CONTENTS)
    if modality == "embeds" and content[0] != "array":
        content = ("array", "f2", (3,), {}, b"abcdef")
    if modality in ("image", "video"):
        fields |= {"original_size": draw(SIZES), "resized_size": draw(SIZES), "patch_grid": draw(GRIDS)}
    if modality == "image" and draw(st.booleans()):
        fields["patch_grid"] = fields["patch_grid"][1:]
    if modality == "audio" and content[0] == "array":
        fields["processing"] = fields["processing"] | {"sampling_rate": draw(st.sampled_from([16000, 16000.0, 44100]))}
    if modality == "video":
        fields["sampling"] = {
            "frame_indices": draw(st.sampled_from([[0], [0, 15], [0, 16], [0, 0, 15], [3, 70000]])),
            "source_fps": draw(FPS),
            "sampled_fps": draw(FPS),
            "total_frames": draw(st.sampled_from([None, 70001, 80000])),
        } | draw(SMALL_MAPS)
    return PlainItem(content, fields)


@st.composite
def requests(draw: Any, *, max_items: int = 3, max_run: int = 9, algorithm: Any = None) -> Plain:
    """A prompt of text runs and item runs in any order; touching runs of one item happen."""
    some_items = draw(st.lists(items(), max_size=max_items))
    runs = [("item", n, draw(st.integers(1, max_run))) for n in range(len(some_items))]
    lengths = st.integers(1, max_run)
    if some_items:
        again = st.tuples(st.just("item"), st.integers(0, len(some_items) - 1), lengths)
        runs += draw(st.lists(again, max_size=3))
    runs += draw(st.lists(st.tuples(st.just("text"), st.none(), lengths), max_size=4))
    token_ids: list[int] = []
    layout, order = [], []
    for kind, number, length in draw(st.permutations(runs)):
        if kind == "item":
            layout.append((len(token_ids), length))
            order.append(number)
            token_ids += [7] * length
        else:
            token_ids += draw(st.lists(TOKEN_IDS, min_size=length, max_size=length))
    filled = [sum(n for (_, n), w in zip(layout, order, strict=True) if w == i) for i in range(len(some_items))]
    return Plain(
        token_ids,
        [i.but(num_visual_tokens=n) for i, n in zip(some_items, filled, strict=True)],
        layout,
        order,
        model_id=draw(st.sampled_from(["a", "ab"])),
        config=draw(SMALL_MAPS),
        revision=draw(st.sampled_from([None, "", "b"])),
        adapter=draw(st.sampled_from([None, ("b", None), ("b", "c")])),
        salt=draw(st.sampled_from([None, b"b", b"c"])),
        algorithm=draw(st.sampled_from(["sha256", "blake3"])) if algorithm is None else algorithm,
        block_size=draw(st.sampled_from([1, 2, 4, 16])),
    )


def typed(value: Any) -> Any:
    """A hashable form that tells apart whatever a consumer could: 1, 1.0 and True; 0.0 and -0.0."""
    if isinstance(value, dict):
        return ("map", frozenset((k, typed(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(typed(v) for v in value))
    if isinstance(value, float):
        return ("float", value.hex())
    return (type(value).__name__, value)


def meaning(plain: Plain) -> Any:
    """Two requests mean the same to strategy C exactly if these are equal: no encoding, no digest, just the values."""

    def of_item(item: PlainItem) -> Any:
        fields = dict(item.fields)
        if fields["modality"] == "image" and len(fields["patch_grid"]) == 2:
            fields["patch_grid"] = (1, *fields["patch_grid"])
        for name, keys in (("sampling", ("source_fps", "sampled_fps")), ("processing", ("sampling_rate",))):
            values = dict(fields.get(name) or {})
            fields[name] = values | {k: float(values[k]) for k in keys if values.get(k) is not None}
        return typed([list(item.content), fields])

    owners: list[Any] = [None] * len(plain.token_ids)
    for (offset, length), number in zip(plain.layout, plain.order, strict=True):
        owners[offset : offset + length] = [number] * length
    first = list(dict.fromkeys(o for o in owners if o is not None))
    return (
        tuple(plain.token_ids),
        tuple(o if o is None else first.index(o) for o in owners),
        tuple(of_item(plain.items[n]) for n in first),
        typed([plain.model_id, plain.config, plain.revision, plain.adapter, plain.salt]),
    )
