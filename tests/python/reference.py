"""The reference twin: the key specification as the plainest program that gives its bytes, for tests to expect by.

It takes plain Python values, validates nothing, and goes position by position through a prompt where the library works
with spans. Standard library, and the PyPI package blake3.
"""

from __future__ import annotations

import hashlib
import math
import struct
from itertools import groupby
from typing import Any, NamedTuple

import blake3

ALGORITHMS = ("sha256", "blake3")
STRATEGIES = ("A", "B", "C")

Content = list[Any]  # [kind, algorithm, digest]


def digest(algorithm: str, message: bytes) -> bytes:
    return {"sha256": lambda: hashlib.sha256(message), "blake3": lambda: blake3.blake3(message)}[algorithm]().digest()


# RFC 8949, section 4.2.1: core deterministic encoding


class Ids(tuple[int, ...]):
    """Token ids or frame indices: RFC 8746 tag 70 over little-endian uint32."""

    __slots__ = ()


def head(major: int, n: int) -> bytes:
    for extra, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 24:
            return bytes([major * 32 + n])
        if n < 256**width:
            return bytes([major * 32 + extra]) + n.to_bytes(width, "big")
    raise OverflowError(n)


def shortest_float(x: float) -> bytes:
    if math.isnan(x):
        return bytes.fromhex("f97e00")
    for first, form in ((0xF9, ">e"), (0xFA, ">f")):
        try:
            packed = struct.pack(form, x)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == x:
            return bytes([first]) + packed
    return b"\xfb" + struct.pack(">d", x)


def enc(value: Any) -> bytes:
    match value:
        case None:
            return b"\xf6"
        case bool():
            return b"\xf5" if value else b"\xf4"
        case Ids():
            return head(6, 70) + enc(b"".join(i.to_bytes(4, "little") for i in value))
        case int():
            return head(1, -1 - value) if value < 0 else head(0, value)
        case float():
            return shortest_float(value)
        case str():
            utf8 = value.encode()
            return head(3, len(utf8)) + utf8
        case bytes():
            return head(2, len(value)) + value
        case list() | tuple():
            return head(4, len(value)) + b"".join(map(enc, value))
        case dict():
            entries = {enc(k): enc(v) for k, v in value.items()}
            return head(5, len(entries)) + b"".join(k + entries[k] for k in sorted(entries))
    raise TypeError(type(value))


# Contents


def of_bytes(algorithm: str, data: bytes) -> Content:
    return ["bytes", algorithm, digest(algorithm, data)]


def of_array(algorithm: str, dtype: str, shape: Any, data: bytes, attrs: dict[str, Any] | None = None) -> Content:
    """data: C order, little-endian."""
    return ["array", algorithm, digest(algorithm, enc(["mmkey/array/1", dtype, list(shape), attrs or {}, data]))]


def of_frames(algorithm: str, frames: list[Content]) -> Content:
    return ["frames", algorithm, digest(algorithm, enc(["mmkey/frames/1", frames]))]


def of_identifier(algorithm: str, identifier: str, namespace: str = "") -> Content:
    return ["opaque", algorithm, digest(algorithm, enc(["mmkey/opaque/1", namespace, identifier]))]


# Items and scope


def item(
    content: Content,
    *,
    modality: str = "image",
    original_size: Any = None,
    resized_size: Any = None,
    patch_grid: Any = None,
    num_visual_tokens: int | None = None,
    sampling: dict[str, Any] | None = None,
    processing: dict[str, Any] | None = None,
) -> list[Any]:
    def real(x: Any) -> float | None:
        return None if x is None else float(x)

    if modality == "image" and patch_grid is not None and len(patch_grid) == 2:
        patch_grid = [1, *patch_grid]
    if modality == "video":
        taken = sampling or {}
        sampling = dict(taken)
        sampling["frame_indices"] = Ids(taken["frame_indices"])
        sampling["source_fps"] = real(taken.get("source_fps"))
        sampling["sampled_fps"] = real(taken.get("sampled_fps"))
        sampling["total_frames"] = taken.get("total_frames")
    processing = dict(processing or {})
    if "sampling_rate" in processing:
        processing["sampling_rate"] = real(processing["sampling_rate"])
    return [
        "mmkey/item/1",
        modality,
        content,
        original_size,
        resized_size,
        patch_grid,
        num_visual_tokens,
        sampling,
        processing,
    ]


def item_digest(algorithm: str, of: list[Any]) -> bytes:
    return digest(algorithm, enc(of))


def scope_digest(
    algorithm: str,
    model_id: str,
    config: dict[str, Any],
    revision: str | None = None,
    adapter: tuple[str, str | None] | None = None,
    salt: bytes | None = None,
) -> bytes:
    return digest(algorithm, enc(["mmkey/scope/1", model_id, revision, config, adapter, salt]))


# Places: which item a prompt position belongs to, told position by position


class Place(NamedTuple):
    item: int  # in normal order
    nth: int  # how many positions of the item come before this one


class Normal(NamedTuple):
    listed: list[int]  # the caller's number of each item, by first appearance
    places: list[Place | None]  # of each prompt position
    ranges: list[tuple[int, int, int]]  # (offset, length, item), maximal


def normal_form(length: int, layout: Any, order: Any = None) -> Normal:
    order = list(range(len(layout))) if order is None else list(order)
    listed = list(dict.fromkeys(order))
    places: list[Place | None] = [None] * length
    filled = [0] * len(listed)
    for (offset, size), caller_number in zip(layout, order, strict=True):
        number = listed.index(caller_number)
        for position in range(offset, offset + size):
            places[position] = Place(number, filled[number])
            filled[number] += 1
    return Normal(listed, places, runs(places))


def runs(places: list[Place | None]) -> list[tuple[int, int, int]]:
    """(offset, length, item) of each maximal run of positions of one item."""
    found = []
    for number, run in groupby(range(len(places)), key=lambda p: places[p] and places[p].item):
        positions = list(run)
        if number is not None:
            found.append((positions[0], len(positions), number))
    return found


def placed(algorithm: str, identity: Any, ranges: list[tuple[int, int]]) -> bytes:
    first = ranges[0][0]
    return digest(algorithm, enc(["mmkey/placed/1", identity, [[o - first, n] for o, n in ranges]]))


# Keys


def root(algorithm: str, strategy: str, block_size: int, scope_or_salt: bytes | None) -> bytes:
    return digest(algorithm, enc(["mmkey/chain/1", strategy, block_size, scope_or_salt]))


def block_key(algorithm: str, ids: list[int], spans: list[Any], parent: bytes) -> bytes:
    ahead = head(4, 4) + enc(Ids(ids)) + enc(spans)
    messages = (ahead + enc(bytes(pad)) + enc(parent) for pad in range(64))
    return digest(algorithm, next(m for m in messages if (len(m) - 32) % 64 <= 23))


class Keys(NamedTuple):
    request: bytes
    blocks: list[bytes] | None  # with the partial tail; None where there are none


def keys(
    strategy: str,
    algorithm: str,
    token_ids: list[int],
    block_size: int,
    *,
    items: list[list[Any]] = [],  # noqa: B006
    layout: Any = (),
    order: Any = None,
    scope: bytes | None = None,
    salt: bytes | None = None,
) -> Keys:
    """items as `item` gives them (B looks at the content alone), in the caller's order."""
    ids = Ids(token_ids)
    salted = [] if salt is None else [salt]
    if layout is None:
        normal, identities = None, [i[2] for i in items]
    else:
        normal = normal_form(len(ids), layout, order)
        chosen = [items[n] for n in normal.listed]
        identities = [i[2] if strategy == "B" else item_digest(algorithm, i) for i in chosen]
    if strategy == "A":
        message, chain_of = ["mmkey/A/1", ids, *salted], salt
        normal = None
    elif strategy == "B":
        message, chain_of = ["mmkey/B/1", ids, identities, *salted], salt
    else:
        spans = [[o, n] for o, n, _ in normal.ranges]
        message, chain_of = ["mmkey/C/1", scope, ids, identities, spans, [w for _, _, w in normal.ranges]], scope
    request = digest(algorithm, enc(message))
    if strategy == "B" and layout is None and items:
        return Keys(request, None)

    places = [None] * len(ids) if normal is None else normal.places
    in_place = []
    for number, identity in enumerate(identities if normal else []):
        in_place.append(placed(algorithm, identity, [(o, n) for o, n, w in normal.ranges if w == number]))
    parent, blocks = root(algorithm, strategy, block_size, chain_of), []
    for begin in range(0, len(ids), block_size):
        here = places[begin : begin + block_size]
        spans = [[in_place[w], at, here[at].nth, n] for at, n, w in runs(here)]
        parent = block_key(algorithm, list(ids[begin : begin + block_size]), spans, parent)
        blocks.append(parent)
    return Keys(request, blocks)
