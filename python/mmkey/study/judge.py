"""The judge: would the KV of one request serve another? Decided on the logical fields, never on a key.

Two standards. *Image identity*: the pictures are the same (the original experiment's question). *Full identity*:
everything that the KV depends on is the same. The KV at a position depends on the scope, on the tokens up to it, and
on every item begun by then, whole, with its metadata and all its places.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping

from mmkey.study.logical import LogicalItem, LogicalRequest, Scope


@dataclasses.dataclass(frozen=True)
class Relation:
    """How two requests compare.

    ``images``: for the n-th item by first appearance, (where it begins, whether both have the same picture there).
    ``shared_tokens``: the leading positions whose KV is the same. ``differences``: the fields that differ, by name.
    """

    images: tuple[tuple[int, bool], ...]
    shared_tokens: int
    differences: tuple[str, ...]

    @property
    def same_images(self) -> bool:
        """Image identity of the requests as a whole."""
        return all(same for _, same in self.images)

    @property
    def same(self) -> bool:
        """Full identity of the requests as a whole."""
        return not self.differences

    def same_images_within(self, tokens: int) -> bool:
        """Image identity of what the first ``tokens`` positions see."""
        return all(same for begin, same in self.images if begin < tokens)


def compare(stored: LogicalRequest, wanted: LogicalRequest) -> Relation:
    """Compares two requests field by field."""
    differences = [f"scope.{name}" for name in _fields_that_differ(stored.scope, wanted.scope)]
    shared = 0 if differences else max(len(stored.token_ids), len(wanted.token_ids))

    first_token = _first_difference(stored.token_ids, wanted.token_ids)
    if first_token is not None:
        differences.append(f"token_ids[{first_token}]")
        shared = min(shared, first_token)

    images = []
    mine, theirs = stored.by_appearance(), wanted.by_appearance()
    for n in range(max(len(mine), len(theirs))):
        if n >= len(mine) or n >= len(theirs):
            request, listed = (stored, mine[n]) if n < len(mine) else (wanted, theirs[n])
            begin, same_image, found = request.ranges_of(listed)[0][0], False, [f"items[{n}]"]
        else:
            begin, same_image, found = _compare_items(stored, mine[n], wanted, theirs[n], n)
        images.append((begin, same_image))
        differences += found
        if found:
            shared = min(shared, begin)
    return Relation(tuple(images), shared, tuple(differences))


def _compare_items(
    stored: LogicalRequest, mine: int, wanted: LogicalRequest, theirs: int, n: int
) -> tuple[int, bool, list[str]]:
    """(the earlier of both beginnings, whether the picture is the same, the names of the fields that differ)."""
    a, b = stored.items[mine], wanted.items[theirs]
    here, there = stored.ranges_of(mine), wanted.ranges_of(theirs)
    same_image = a.media.same_as(b.media)
    found = [] if same_image else [f"items[{n}].media"]
    found += [f"items[{n}].{name}" for name in _fields_that_differ(a, b)]
    if here != there:
        found.append(f"items[{n}].layout")
    return min(here[0][0], there[0][0]), same_image, found


def _fields_that_differ(a: LogicalItem | Scope, b: LogicalItem | Scope) -> list[str]:
    names = [f.name for f in dataclasses.fields(a) if not (isinstance(a, LogicalItem) and f.name == "media")]
    return [name for name in names if not strictly_equal(getattr(a, name), getattr(b, name))]


def frozen(value: object) -> Hashable:
    """A value that is equal and hashes alike where a consumer could not tell: 1, 1.0 and True are three, NaN is one."""
    if isinstance(value, Mapping):
        return ("map", frozenset((name, frozen(inner)) for name, inner in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", *map(frozen, value))
    if isinstance(value, float):  # hex() keeps the sign of zero
        return (float, "nan" if math.isnan(value) else value.hex())
    return (type(value), value)


def strictly_equal(a: object, b: object) -> bool:
    """Equality as a consumer could tell it."""
    return frozen(a) == frozen(b)


def _first_difference(a: tuple[int, ...], b: tuple[int, ...]) -> int | None:
    if a == b:
        return None
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
