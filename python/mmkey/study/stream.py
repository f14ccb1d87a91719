"""A stream of requests as a server of many users sees it: conversations with pictures, drawn at random from a seed.

What is drawn: a few system prompts; pictures of which some are asked about far more often than others (Zipf), some of
them uploaded in a second file with the same pixels; questions that many users ask in the same words; conversations
that go on; and now and then another resize of equal token count, an adapter, a tenant of its own. Pictures are given by
digests, so nothing is decoded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mmkey.study.logical import Digested, LogicalItem, LogicalRequest, Scope
from mmkey.study.recipe import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

_BASE = Scope(model_id="mmkey-study/stream", config={"rope_theta": 10000.0, "kv_dtype": "bfloat16"}, salt=b"shared")
_SCOPES = (_BASE, replace(_BASE, adapter=("captions", "1")), replace(_BASE, salt=b"a tenant of its own"))
_GRIDS = ((16, 16), (8, 32))  # patches of 14, 2 x 2 to a token: 64 tokens each
_TOKENS = 64
_OPEN = 200  # conversations that may still go on
_MARK_OUT = 503


@dataclass
class Stream:
    """``requests`` requests from ``seed``; iterating again gives the same stream.

    Attributes:
        requests: how many.
        seed: what all is drawn from.
        pictures: how many different pictures there are.
        goes_on: the chance that a request continues an open conversation.
        other_file: the chance that a picture comes in its second file.
        other_view: the chance that a picture is resized to the other grid.
        other_scope: the chance that a conversation has an adapter, or a tenant of its own.
    """

    requests: int
    seed: int = 0
    pictures: int = 500
    goes_on: float = 0.6
    other_file: float = 0.05
    other_view: float = 0.05
    other_scope: float = 0.1
    _items: dict[tuple[int, bool, bool], LogicalItem] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[LogicalRequest]:
        """The requests, one after the other."""
        draw = random.Random(self.seed)  # noqa: S311 (a workload, no secret)
        systems = [_words(draw, 48) for _ in range(4)]
        questions = [_words(draw, draw.randint(4, 16)) for _ in range(100)]
        popularity = [1 / (rank + 1) for rank in range(self.pictures)]
        open_now: list[LogicalRequest] = []
        for _ in range(self.requests):
            if open_now and draw.random() < self.goes_on:
                n = draw.randrange(len(open_now))
                request = _longer(open_now[n], _words(draw, draw.randint(8, 40)), None, draw.choice(questions))
            else:
                n = len(open_now)
                scope = draw.choice(_SCOPES[1:]) if draw.random() < self.other_scope else _SCOPES[0]
                item = self._item(draw, draw.choices(range(self.pictures), popularity)[0])
                empty = LogicalRequest(scope, (), (), (), (), ())
                request = _longer(empty, draw.choice(systems), item, draw.choice(questions))
                open_now.append(request)
            open_now[n] = request
            if len(open_now) > _OPEN or len(request.token_ids) > 1000:
                del open_now[draw.randrange(len(open_now)) if len(open_now) > _OPEN else n]
            yield request

    def describe(self) -> dict[str, object]:
        """What it was drawn with."""
        names = ("requests", "seed", "pictures", "goes_on", "other_file", "other_view", "other_scope")
        return {name: getattr(self, name) for name in names}

    def _item(self, draw: random.Random, picture: int) -> LogicalItem:
        other_file, other_view = draw.random() < self.other_file, draw.random() < self.other_view
        place = (picture, other_file, other_view)
        item = self._items.get(place)
        if item is None:
            tall, wide = _GRIDS[other_view]
            digest = random.Random(f"{self.seed}/{picture}/{other_file}").randbytes(32)  # noqa: S311
            item = self._items[place] = LogicalItem(
                "image",
                Digested(picture, digest),
                (600, 800),
                (tall * 14, wide * 14),
                (1, tall, wide),
                _TOKENS,
                processing={"processor": "stream", "patch_size": 14, "merge_size": 2},
            )
        return item


def _words(draw: random.Random, count: int) -> tuple[int, ...]:
    return tuple(draw.randrange(1000, 30000) for _ in range(count))


def _longer(
    request: LogicalRequest, text: tuple[int, ...], item: LogicalItem | None, question: tuple[int, ...]
) -> LogicalRequest:
    """A request with text, a picture or none, and a question appended."""
    token_ids, text_ids = [*request.token_ids, *text], (*request.text_ids, *text, *question)
    items, layout, order = request.items, request.layout, request.order
    if item is not None:
        layout, order, items = (*layout, (len(token_ids), _TOKENS)), (*order, len(items)), (*items, item)
        token_ids += [PLACEHOLDER["image"]] * _TOKENS + [_MARK_OUT]
    return LogicalRequest(request.scope, text_ids, (*token_ids, *question), items, layout, order)
