"""The chain of a sequence that grows: fed in any pieces, it gives the block keys of the whole."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logical
import mmkey
import reference
import strategies
from logical import Plain, PlainItem
from mmkey.errors import InvalidRequest, MmkeyError

IMAGE = {"original_size": (56, 56), "resized_size": (28, 56), "patch_grid": (2, 4)}


def picture(data: bytes, tokens: int) -> PlainItem:
    return PlainItem(("bytes", data), IMAGE | {"num_visual_tokens": tokens})


def empty(plain: Plain, strategy: str) -> mmkey.BlockChain:
    return plain.engine(strategy).chain(mmkey.Request([]))


def keys_of(chain: mmkey.BlockChain) -> list[bytes]:
    return logical.rows(chain.keys)


def full(plain: Plain, strategy: str) -> list[bytes]:
    return plain.twin(strategy).blocks[: len(plain.token_ids) // plain.block_size]


def in_pieces(plain: Plain, cuts: list[int], *, late: bool) -> list[tuple]:
    """The arguments of `extend` for each piece.

    late: an item comes with the piece of its first token; otherwise all come with the first piece.
    """
    normal = reference.normal_form(len(plain.token_ids), plain.layout, plain.order)
    firsts = [min(o for o, _, w in normal.ranges if w == number) for number in range(len(normal.listed))]
    edges = [0, *cuts, len(plain.token_ids)]
    calls = []
    for n, (start, stop) in enumerate(pairwise(edges)):
        numbers = [i for i, first in enumerate(firsts) if (start <= first < stop if late else n == 0)]
        ranges = [(o, n, numbers.index(w)) for o, n, w in normal.ranges if w in numbers]
        items = [plain.items[normal.listed[i]].made() for i in numbers]
        calls.append((plain.token_ids[start:stop], items, [r[:2] for r in ranges], [r[2] for r in ranges]))
    return calls


@given(strategies.requests(max_run=12), st.data())
def test_a_chain_fed_in_any_pieces_gives_the_keys_of_the_whole(plain, data):
    strategy = data.draw(st.sampled_from("ABC"))
    size = len(plain.token_ids)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=6)))
    chain = empty(plain, strategy)
    expected = full(plain, strategy)
    seen = 0
    fed = 0
    for call in in_pieces(plain, cuts, late=data.draw(st.booleans())):
        new = logical.rows(chain.extend(*call))
        fed += len(call[0])
        assert new == expected[seen : fed // plain.block_size]
        seen = fed // plain.block_size
        assert keys_of(chain) == expected[:seen]
    assert keys_of(chain) == expected


@given(strategies.requests(max_run=12), st.data())
def test_a_chain_begun_with_a_request_goes_on_as_if_it_were_one(plain, data):
    """Prompt first, then what is decoded: text, and pictures that later turns bring."""
    strategy = data.draw(st.sampled_from("ABC"))
    more = data.draw(strategies.requests(max_run=12, algorithm=plain.algorithm))
    shift = len(plain.token_ids)
    whole = plain.but(
        token_ids=plain.token_ids + more.token_ids,
        items=plain.items + more.items,
        layout=[*plain.layout, *((o + shift, n) for o, n in more.layout)],
        order=[*plain.order, *(n + len(plain.items) for n in more.order)],
    )
    engine = plain.engine(strategy)
    for first in (plain.request(), engine.prepare(plain.request())):
        chain = engine.chain(first)
        assert keys_of(chain) == full(plain, strategy)
        items = [i.made() for i in more.items]
        layout = [(o + shift, n) for o, n in more.layout]
        chain.extend(more.token_ids, items, layout, more.order)
        assert keys_of(chain) == full(whole, strategy)


def long_prompt(tokens: int, block_size: int, algorithm: str) -> Plain:
    """10,000 tokens with pictures of all lengths, interleaved with text and with one another."""
    rng = random.Random(20)
    ids: list[int] = []
    layout, order, items = [], [], []
    while len(ids) < tokens - 700:
        ids += [rng.randrange(150_000) for _ in range(rng.choice([0, 1, 15, 16, 17, 40, 250]))]
        lengths = [rng.choice([1, 7, 16, 64, 257]) for _ in range(rng.choice([1, 1, 1, 3]))]
        number = len(items)
        if rng.random() < 0.3:  # two items whose ranges take turns
            for turn, length in enumerate(lengths * 2):
                layout.append((len(ids), length))
                order.append(number + turn % 2)
                ids += [7] * (length + 1)
            counts = [sum(n for (_, n), w in zip(layout, order, strict=True) if w == number + i) for i in (0, 1)]
        else:
            for length in lengths:
                layout.append((len(ids), length))
                order.append(number)
                ids += [7] * length + [9]
            counts = [sum(lengths)]
        items += [picture(b"picture %d" % (number + i), n) for i, n in enumerate(counts)]
    ids += [rng.randrange(150_000) for _ in range(tokens - len(ids))]
    return Plain(ids, items, layout, order, block_size=block_size, algorithm=algorithm)


@pytest.mark.parametrize("strategy", reference.STRATEGIES)
def test_ten_thousand_tokens_one_at_a_time_give_what_one_call_gives(strategy, block_size, algorithm):
    plain = long_prompt(10_000, block_size, algorithm)
    assert len(plain.token_ids) == 10_000
    assert len(plain.items) > 20
    expected = full(plain, strategy)
    engine = plain.engine(strategy)
    assert logical.blocks_of(engine, plain.request()) == expected

    normal = reference.normal_form(10_000, plain.layout, plain.order)
    begins: dict[int, tuple[int, list]] = {}
    for number in range(len(normal.listed)):
        ranges = [(o, n) for o, n, w in normal.ranges if w == number]
        begins[ranges[0][0]] = (normal.listed[number], ranges)
    chain = empty(plain, strategy)
    for position, token in enumerate(plain.token_ids):
        if position in begins:
            listed, ranges = begins[position]
            new = chain.extend([token], [plain.items[listed].made()], ranges, [0] * len(ranges))
        else:
            new = chain.extend([token])
        assert len(new) == (position % block_size == block_size - 1)
    assert keys_of(chain) == expected


def test_an_item_may_be_declared_with_no_token_and_ahead_of_its_own():
    plain = Plain([1, 2, 7, 7, 7, 3, 7, 7, 4, 5], [picture(b"x", 5)], [(2, 3), (6, 2)], [0, 0], block_size=2)
    for ahead in (0, 1, 2):
        chain = empty(plain, "C")
        chain.extend(plain.token_ids[:ahead])
        assert len(chain.extend([], [plain.items[0].made()], plain.layout, [0, 0])) == 0
        for token in plain.token_ids[ahead:]:
            chain.extend([token])
        assert keys_of(chain) == full(plain, "C")


def test_items_may_be_declared_late_in_any_order_and_take_turns():
    plain = Plain(
        [7] * 12,
        [picture(b"x", 4), picture(b"y", 5)],
        [(1, 2), (3, 3), (7, 2), (9, 2)],
        [0, 1, 0, 1],
        block_size=4,
    )
    chain = empty(plain, "C")
    chain.extend([7], [plain.items[1].made()], [(3, 3), (9, 2)], [0, 0])
    chain.extend([], [plain.items[0].made()], [(1, 2), (7, 2)], [0, 0])
    chain.extend([7] * 11)
    assert keys_of(chain) == full(plain, "C")


def test_keys_of_the_past_do_not_depend_on_what_comes(block_size):
    plain = Plain(list(range(600)), block_size=block_size)
    chain = empty(plain, "C")
    chain.extend(plain.token_ids[:520])
    before = keys_of(chain)
    kept = chain.keys
    chain.extend(plain.token_ids[520:])
    assert keys_of(chain)[: len(before)] == before
    assert logical.rows(kept)[: len(before)] == before


def test_what_a_caller_does_to_the_keys_it_was_given_does_not_reach_the_chain():
    plain = Plain(list(range(64)), block_size=4)
    chain = empty(plain, "A")
    given_back = [chain.extend(plain.token_ids[:32]), chain.keys]
    for keys in given_back:
        try:
            keys[...] = 0
        except (ValueError, TypeError):
            continue
    chain.extend(plain.token_ids[32:])
    assert keys_of(chain) == full(plain, "A")


WRONG = {
    "an id": ([1, -1], [], []),
    "a text": ("12", [], []),
    "an item without a range": ([1], [picture(b"z", 1)], []),
    "a range without an item": ([1], [], [(10, 1)]),
    "a range over the past": ([1], [picture(b"z", 2)], [(8, 2)]),
    "a range in the far past": ([1], [picture(b"z", 1)], [(0, 1)]),
    "a range over an item declared before": ([1], [picture(b"z", 1)], [(13, 1)]),
    "ranges around an item declared before": ([1], [picture(b"z", 20)], [(10, 20)]),
    "ranges that overlap": ([1], [picture(b"z", 4)], [(20, 2), (21, 2)], [0, 0]),
    "an empty range": ([1], [picture(b"z", 1)], [(20, 0)]),
    "a range that overflows": ([1], [picture(b"z", 1)], [(2**64 - 1, 2)]),
    "an order of another length": ([1], [picture(b"z", 2)], [(20, 2)], [0, 0]),
    "an order that names no item": ([1], [picture(b"z", 2)], [(20, 2)], [1]),
    "another count than the ranges hold": ([1], [picture(b"z", 3)], [(20, 2)]),
    "an item without a grid": ([1], [picture(b"z", 2).but(patch_grid=None)], [(20, 2)]),
    "no layout": ([1], [picture(b"z", 2)], None),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_leaves_the_chain_as_it_was(name):
    """10 tokens are fed; an item that begins at position 12 has been declared."""
    plain = Plain([*range(10), 1, 1, 7, 7, 7, 2], [picture(b"x", 3)], [(12, 3)], [0], block_size=4)
    chain = empty(plain, "C")
    chain.extend(plain.token_ids[:10], [plain.items[0].made()], [(12, 3)])
    ids, items, layout, *order = WRONG[name]
    buffer = bytearray(b"unread")
    made = [mmkey.Item(mmkey.Content.from_bytes(buffer), **i.fields) for i in items]
    for _ in range(3):
        with pytest.raises(MmkeyError):
            chain.extend(ids, made, layout, *order)
    assert keys_of(chain) == full(plain, "C")[:2]
    if made:  # it was not hashed either
        buffer[:] = b"UNREAD"
        assert made[0].content.digest("sha256") == reference.digest("sha256", b"UNREAD")
    chain.extend(plain.token_ids[10:])
    assert keys_of(chain) == full(plain, "C")


def test_fields_of_an_error_in_a_chain_name_their_place():
    chain = mmkey.KeyEngine("C", model_id="m", config={}).chain(mmkey.Request(list(range(10))))
    for arguments, field in (
        (([1, 2**32],), "token_ids[1]"),
        (([1], [picture(b"z", 1).made()], [(9, 1)]), "layout[0]"),
        (([1], [picture(b"z", 1).made(), picture(b"y", 3).made()], [(10, 1), (20, 2)]), "items[1].num_visual_tokens"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            chain.extend(*arguments)
        assert caught.value.field == field


def test_a_range_that_is_touched_by_a_later_declaration_of_another_item_stays_its_own():
    plain = Plain([7] * 8, [picture(b"x", 4), picture(b"x", 4)], [(0, 4), (4, 4)], [0, 1], block_size=4)
    chain = empty(plain, "C")
    chain.extend([7] * 4, [plain.items[0].made()], [(0, 4)])
    chain.extend([7] * 4, [plain.items[1].made()], [(4, 4)])
    assert keys_of(chain) == full(plain, "C")
    assert full(plain, "C")[1] != full(plain.but(items=[picture(b"x", 8)], order=[0, 0]), "C")[1]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=300), st.sampled_from([1, 3, 16]))
def test_two_chains_of_one_engine_do_not_meet(ids, size):
    plain = Plain(ids, block_size=size)
    engine = plain.engine("A")
    one, other = engine.chain(mmkey.Request([])), engine.chain(mmkey.Request([]))
    for token in ids:
        one.extend([token])
        other.extend([token ^ 1])
    assert keys_of(one) == full(plain, "A")
    assert keys_of(other) == full(plain.but(token_ids=[t ^ 1 for t in ids]), "A")


def test_a_chain_takes_an_array_of_its_tokens():
    plain = Plain(list(range(100)), block_size=8)
    chain = empty(plain, "A")
    for piece in np.array_split(np.array(plain.token_ids, ">i8"), 7):
        chain.extend(piece)
    assert keys_of(chain) == full(plain, "A")
