"""Cases from the field: where items stand, whose model and tenant it is, and how wide keys are."""

from __future__ import annotations

import dataclasses
from itertools import combinations, product

import pytest

import mmkey
import reference
from logical import PlainItem, rows
from mmkey.errors import InvalidRequest
from prompts import first_difference, jpeg, prompt, qwen_image, text, video
from test_cases_media import assert_distinct, assert_same


@pytest.fixture
def settings(algorithm, block_size):
    return {"algorithm": algorithm, "block_size": block_size}


def small(data: bytes, tokens: int) -> PlainItem:
    fields = {"original_size": (56, 56), "resized_size": (56, 56), "patch_grid": (4, 4), "num_visual_tokens": tokens}
    return PlainItem(("bytes", data), fields | {"modality": "image"})


# Layout


@pytest.mark.parametrize("size", [1, 16, 256])
def test_a_block_full_of_placeholders_tells_which_part_of_the_picture_it_holds(size, algorithm):
    """Three blocks of equal ids, each all placeholders of one picture."""
    plain = prompt(small(b"x", 3 * size), text(1, size), algorithm=algorithm, block_size=size)
    ids = plain.token_ids[1:]  # without the start mark, so that the picture begins with a block
    plain = plain.but(token_ids=ids, layout=[(0, 3 * size)])
    assert ids[:size] == ids[size : 2 * size] == ids[2 * size : 3 * size]
    first = [plain.but(token_ids=ids[:size], layout=[(0, size)], items=[small(b"x", size)])]
    for strategy in "BC":
        assert len(set(plain.blocks(strategy))) == len(plain.blocks(strategy))
        # the same ids after the same parent, another part of the picture, or more of it to come
        assert plain.blocks(strategy)[0] != first[0].blocks(strategy)[0]


def test_a_part_of_a_picture_is_told_by_its_place_and_not_by_its_parent_alone():
    """Message by message: the ids and the parent are equal, the positions of the item before the block are not."""
    whole, place = b"r" * 32, b"p" * 32
    one = reference.block_key("sha256", [7] * 16, [[place, 0, 0, 16]], whole)
    other = reference.block_key("sha256", [7] * 16, [[place, 0, 16, 16]], whole)
    assert one != other


def test_three_times_the_same_picture_gives_three_block_keys(settings):
    size = settings["block_size"]
    picture = small(b"x", size)
    plain = prompt(text(1, size), **settings)
    ids = text(1, size) + [7] * size * 3
    plain = plain.but(token_ids=ids, items=[picture] * 3, layout=[(size * n, size) for n in (1, 2, 3)])
    for strategy in "BC":
        assert len(set(plain.blocks(strategy))) == 4
        assert plain.keys(strategy) == plain.twin(strategy)


@pytest.mark.parametrize("where", [-1, 0, 1])
def test_a_span_cut_at_a_block_edge_has_the_same_keys_however_it_was_fed(where, settings):
    size = settings["block_size"]
    start = max(0, 2 * size + where)
    plain = prompt(text(1, start)[:-1] if start else [], small(b"x", 2 * size), text(2, 2 * size), **settings)
    expected = plain.twin().blocks[: len(plain.token_ids) // size]
    for cut in {1, size - 1, size, size + 1, start, start + 1, start + size, len(plain.token_ids) - 1}:
        chain = plain.engine().chain(mmkey.Request([]))
        chain.extend(plain.token_ids[:cut], [plain.items[0].made()], plain.layout)
        chain.extend(plain.token_ids[cut:])
        assert rows(chain.keys) == expected, cut
    assert plain.blocks() == expected


def test_a_picture_appended_to_the_conversation_leaves_all_earlier_blocks_alone(settings):
    turn = [text(1, 50), qwen_image(jpeg(1), 112, 112), text(2, 300)]
    one = prompt(*turn, **settings)
    more = prompt(*turn, qwen_image(jpeg(2), 224, 224), text(3, 300), **settings)
    for strategy in reference.STRATEGIES:
        blocks = one.blocks(strategy)
        assert more.blocks(strategy)[: len(blocks)] == blocks


def test_a_placeholder_that_a_user_typed_is_an_error_when_placeholders_are_named(settings):
    plain = prompt(text(1, 5), qwen_image(jpeg(1), 112, 112), text(2, 5), **settings)
    pad = 151655
    for strategy, place in product(reference.STRATEGIES, (0, len(plain.token_ids))):
        engine = plain.engine(strategy)
        prepared = engine.prepare(plain.request(), placeholder_ids=[pad])
        assert engine.key(prepared) == plain.twin(strategy).request
        ids = [*plain.token_ids]
        ids.insert(place, pad)
        shift = int(place == 0)
        typed = plain.but(token_ids=ids, layout=[(o + shift, n) for o, n in plain.layout])
        assert engine.key(engine.prepare(typed.request())) == typed.twin(strategy).request
        with pytest.raises(InvalidRequest) as caught:
            engine.prepare(typed.request(), placeholder_ids=(151656, pad))
        assert caught.value.field.startswith("token_ids")
        assert str(pad) in str(caught.value)


def test_an_item_cut_in_touching_ranges_is_the_item_in_one_range(settings):
    whole = prompt(text(1, 300), small(b"x", 8), text(2, 300), **settings)
    start = whole.layout[0][0]
    for lengths in ([3, 5], [1] * 8, [7, 1], [2, 2, 4]):
        layout = [(start + sum(lengths[:n]), length) for n, length in enumerate(lengths)]
        cut = whole.but(layout=layout, order=[0] * len(lengths))
        assert_same(whole, cut, "ABC")


def test_an_item_in_two_ranges_with_text_between_is_another_prompt_from_its_first_block(settings):
    ids = [*text(1, 300), *[7] * 9, *text(2, 300)]
    whole = prompt(ids, **settings).but(items=[small(b"x", 8)], layout=[(300, 8)], order=[0])
    apart = whole.but(layout=[(300, 4), (305, 4)], order=[0, 0])
    later = whole.but(layout=[(300, 3), (305, 5)], order=[0, 0])
    for a, b in combinations((whole, apart, later), 2):
        assert a.key() != b.key()
        assert first_difference(a.blocks(), b.blocks()) == 300 // whole.block_size


def test_one_item_in_two_ranges_is_not_two_equal_items_in_them(settings):
    ids = [*text(1, 300), *[7] * 9, *text(2, 300)]
    ranges = [(300, 4), (305, 4)]
    one = prompt(ids, **settings).but(items=[small(b"x", 8)], layout=ranges, order=[0, 0])
    # every logical field of the items equal but for what their ranges hold
    two = one.but(items=[small(b"x", 4), small(b"x", 4)], order=[0, 1])
    for strategy in "BC":
        assert one.key(strategy) != two.key(strategy)
        assert first_difference(one.blocks(strategy), two.blocks(strategy)) == 300 // one.block_size


def test_the_order_in_which_a_caller_lists_items_means_nothing(settings):
    a, b, c = small(b"a", 3), small(b"b", 4), small(b"c", 5)
    plain = prompt(a, text(1, 3), b, text(2, 3), c, text(3, 300), **settings)
    listed = plain.but(items=[c, a, b], order=[1, 2, 0])
    assert_same(plain, listed, "ABC")
    texts = [p.engine().prepare(p.request()).item_texts for p in (plain, listed)]
    assert texts[1] == (texts[0][2], texts[0][0], texts[0][1])  # in the caller's order


@pytest.mark.parametrize("strategy", "BC")
def test_media_without_a_layout_never_fall_back_to_the_text_chain(strategy):
    plain = prompt(text(1, 50), small(b"x", 4), block_size=16).but(layout=None)
    engine = plain.engine(strategy)
    with pytest.raises(InvalidRequest, match="layout"):
        engine.block_keys(plain.request())
    with pytest.raises(InvalidRequest, match="layout"):
        engine.chain(plain.request())
    if strategy == "B":
        assert engine.key(plain.request()) == plain.twin("B").request
        prepared = engine.prepare(plain.request())
        for partial in (False, True):
            with pytest.raises(InvalidRequest, match="layout"):
                engine.block_keys(prepared, partial=partial)


def test_equal_counts_on_another_grid_are_another_picture(settings):
    item = small(b"x", 4)
    requests = [
        prompt(text(1, 20), item.but(patch_grid=grid), text(2, 300), **settings)
        for grid in ((2, 8), (8, 2), (4, 4), (2, 2, 4), (4, 2, 2))
    ]
    assert_distinct(*requests)
    assert_same(requests[2], prompt(text(1, 20), item.but(patch_grid=(1, 4, 4)), text(2, 300), **settings))


# Tenant, adapter, model


def all_blocks_differ(*requests, strategies="C"):
    for strategy in strategies:
        for a, b in combinations(requests, 2):
            assert a.key(strategy) != b.key(strategy)
            assert first_difference(a.blocks(strategy), b.blocks(strategy)) == 0
            assert a.engine(strategy).root != b.engine(strategy).root


def test_tenants_with_their_own_salts_share_no_block(settings):
    plain = prompt(text(1, 600), small(b"x", 4), text(2, 30), **settings)
    all_blocks_differ(*(plain.but(salt=s) for s in (None, b"s1", b"s2", b"s")), strategies="ABC")


def test_an_adapter_and_a_salt_of_one_name_are_two_scopes(settings):
    plain = prompt(text(1, 600), **settings)
    all_blocks_differ(
        plain.but(adapter=("X", None)), plain.but(salt=b"X"), plain.but(revision="X"), plain.but(config={"X": None})
    )


def test_text_moved_from_a_field_into_its_neighbour_is_another_scope(settings):
    plain = prompt(text(1, 300), **settings)
    all_blocks_differ(
        plain.but(model_id="ab", revision="c"),
        plain.but(model_id="a", revision="bc"),
        plain.but(model_id="abc", revision=""),
        plain.but(model_id="abc", revision=None),
    )
    all_blocks_differ(
        plain.but(adapter=("ab", "c")), plain.but(adapter=("a", "bc")), plain.but(adapter=("abc", None)),
        plain.but(adapter=("abc", "")), plain.but(revision="ab", adapter=("c", None)),
    )  # fmt: skip
    all_blocks_differ(
        plain.but(config={"a": "bc"}), plain.but(config={"ab": "c"}), plain.but(config={"a": "b", "c": ""})
    )


def test_revisions_of_adapter_and_model_are_part_of_every_key(settings):
    plain = prompt(text(1, 300), small(b"x", 4), **settings)
    all_blocks_differ(*(plain.but(adapter=("lora", r)) for r in (None, "", "r1", "r2")), plain)
    all_blocks_differ(*(plain.but(revision=r) for r in (None, "", "r1", "r2")))
    all_blocks_differ(plain, plain.but(model_id="Qwen/Qwen2.5-VL-7B-Instruct"))


def test_a_value_of_the_config_of_another_type_is_another_scope(settings):
    plain = prompt(text(1, 300), **settings)
    all_blocks_differ(*(plain.but(config={"k": v}) for v in (1, 1.0, True, "1", b"1", [1], None, {"1": 1})), plain)


def test_strategies_algorithms_and_block_sizes_never_share_a_key(block_size):
    plain = prompt(text(1, 600), small(b"x", 4), text(2, 30))
    found = []
    for algorithm in reference.ALGORITHMS:
        for strategy in reference.STRATEGIES:
            for size in (block_size, block_size + 1):
                here = dataclasses.replace(plain, algorithm=algorithm, block_size=size)
                found.append(set(here.blocks(strategy)))
    for a, b in combinations(found, 2):
        assert not a & b


def test_a_page_of_several_blocks_is_keyed_by_its_last_block(algorithm):
    plain = prompt(text(1, 100), small(b"x", 40), text(2, 100), algorithm=algorithm, block_size=16)
    longer = prompt(text(1, 100), small(b"x", 40), text(3, 100), algorithm=algorithm, block_size=16)
    shared = first_difference(plain.blocks(), longer.blocks())
    assert shared == 142 // 16
    assert plain.blocks()[7] == longer.blocks()[7]


# Stability


@pytest.mark.parametrize("size", [0, -1])
def test_a_block_size_below_one_is_an_error(size):
    for strategy in reference.STRATEGIES:
        with pytest.raises(InvalidRequest, match="block_size"):
            prompt().engine(strategy, block_size=size)


def test_no_two_of_many_small_requests_share_a_key_or_its_low_64_bits():
    keys = [mmkey.text_only_cache_key([a, b]) for a in range(60) for b in range(60)]
    assert len(set(keys)) == len({mmkey.short_id(k) for k in keys}) == 3600


def test_builtin_hash_has_no_part_in_a_key(monkeypatch):
    def forbidden(_):
        raise AssertionError("hash() was called")

    import builtins

    plain = prompt(text(1, 40), small(b"x", 4), video(("bytes", b"mp4"), [0, 15]), config={"a": 1})
    expected = plain.twin()
    monkeypatch.setattr(builtins, "hash", forbidden)
    found = plain.keys()
    monkeypatch.undo()
    assert found == expected
