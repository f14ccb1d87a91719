"""The mutation matrix: its verdicts, written here by hand for the changes that matter most, and changes beyond it."""

from __future__ import annotations

import dataclasses
import json
import random
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from mmkey.study import keys
from mmkey.study.acceptance import judge_matrix
from mmkey.study.base_request import SYSTEM, Workshop
from mmkey.study.judge import compare
from mmkey.study.logical import Pixels
from mmkey.study.matrix import MATRIX_DEFINITIONS, matrix_json, run_matrix
from mmkey.study.matrix_table import print_matrix
from mmkey.study.mutations import GROUPS, MUTATIONS
from mmkey.study.recipe import Recipe, Text
from mmkey.study.rendering import NativeRenderer
from mmkey.study.simulator import Settings, Simulator

if TYPE_CHECKING:
    from command_line import Within
    from mmkey.study.acceptance import judge_matrix
from mmkey.study.matrix import Cell

HIT, FALSE, MISS, MISSED = "true_hit", "false_hit", "safe_miss", "missed_reuse"
# mutation: does the KV change; verdicts of A, B, C at request granularity; blocks wrongly reused by A, B at prefix
BY_HAND = {
    "same_bytes_other_file": (False, (HIT, HIT, HIT), (0, 0)),
    "memory_order": (False, (HIT, HIT, HIT), (0, 0)),
    "declared_in_touching_ranges": (False, (HIT, HIT, HIT), (0, 0)),
    "one_pixel": (True, (FALSE, MISS, MISS), (5, 0)),
    "transposed_same_bytes": (True, (FALSE, MISS, MISS), (5, 0)),
    "palette_entry": (True, (FALSE, MISS, MISS), (7, 0)),
    "transparency": (True, (FALSE, MISS, MISS), (7, 0)),
    "exif_orientation": (True, (FALSE, MISS, MISS), (7, 0)),
    "png_level": (False, (HIT, MISSED, MISSED), (0, 0)),
    "grid_transposed": (True, (FALSE, FALSE, MISS), (7, 7)),
    "resample": (True, (FALSE, FALSE, MISS), (7, 7)),
    "background": (True, (FALSE, FALSE, MISS), (7, 7)),
    "max_pixels_unused": (False, (HIT, HIT, MISSED), (0, 0)),
    "swapped_pictures": (True, (FALSE, MISS, MISS), (1, 0)),
    "picture_before_its_text": (True, (FALSE, FALSE, MISS), (0, 0)),
    "other_frames": (True, (FALSE, MISS, MISS), (3, 0)),
    "sampled_fps": (True, (FALSE, FALSE, MISS), (2, 2)),
    "question": (True, (MISS, MISS, MISS), (0, 0)),
    "model_revision": (True, (FALSE, FALSE, MISS), (9, 9)),
    "adapter_revision": (True, (FALSE, FALSE, MISS), (9, 9)),
    "kv_dtype": (True, (FALSE, FALSE, MISS), (9, 9)),
    "salt": (False, (MISSED, MISSED, MISSED), (0, 0)),
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Cell]:
    return run_matrix(Workshop(tmp_path_factory.mktemp("mutations")), Settings())


@pytest.mark.parametrize("name", BY_HAND)
def test_a_change_is_judged_as_one_judges_it_by_hand(cells: list[Cell], name: str) -> None:
    changes, verdicts, wrong = BY_HAND[name]
    rows = {(r["granularity"], r["strategy"]): r for r in matrix_json(cells) if r["mutation"] == name}
    assert {row["kv_changes"] for row in rows.values()} == {changes}
    assert tuple(rows["request", s]["verdict"] for s in "ABC") == verdicts
    assert tuple(rows["prefix", s]["blocks_wrongly_reused"] for s in "AB") == wrong
    for row in rows.values():
        served_wrong = row["blocks_wrongly_reused"] > 0
        assert row["safe"] == (row["verdict"] != FALSE) == (not served_wrong)
        assert row["right"] == (not served_wrong and row["blocks_missed"] == 0)


def test_there_are_at_least_thirty_changes_each_named_once_and_shown_by_group(cells: list[Cell]) -> None:
    names = [m.name for m in MUTATIONS]
    assert len(names) == len(set(names)) >= 30
    assert {m.group for m in MUTATIONS} == set(GROUPS)
    assert len(cells) == len(names) * 2 * 3


def test_strategy_c_has_no_false_hit_under_any_judge(cells: list[Cell]) -> None:
    of_c = [cell for cell in cells if cell.strategy == "C"]
    assert not [c.mutation.name for c in of_c if FALSE in {c.verdict, c.lookup.by_image, c.lookup.by_full}]
    assert not [c.mutation.name for c in of_c if c.wrong or c.lookup.wrong_blocks]


def test_a_and_b_have_false_hits_at_both_granularities(cells: list[Cell]) -> None:
    for granularity in ("request", "prefix"):
        for strategy in "AB":
            assert any(c.verdict == FALSE for c in cells if (c.granularity, c.strategy) == (granularity, strategy))


def test_where_only_the_container_changes_c_misses_nothing(cells: list[Cell]) -> None:
    container = [c for c in cells if c.mutation.group == "container" and c.strategy == "C"]
    assert {(c.verdict, c.missed) for c in container} == {(HIT, 0)}


@pytest.mark.parametrize("block_size", [1, 4, 16, 300])
def test_the_matrix_holds_at_every_block_size_and_every_missed_reuse_has_its_reason(
    block_size: int, tmp_path: Any
) -> None:
    cells = run_matrix(Workshop(tmp_path), Settings(algorithm="blake3", block_size=block_size))
    verdict = judge_matrix(matrix_json(cells))
    assert verdict.passed, verdict.lines


def test_without_a_full_block_a_prefix_finds_nothing_but_the_request_is_still_judged(tmp_path: Any) -> None:
    cells = run_matrix(Workshop(tmp_path), Settings(block_size=300))
    container = [c for c in cells if c.mutation.group == "container" and c.strategy == "C"]
    assert {(c.granularity, c.verdict) for c in container} == {("request", HIT), ("prefix", MISS)}
    lost = [
        dataclasses.replace(c, lookup=dataclasses.replace(c.lookup, found_blocks=0))
        if c in container and c.granularity == "request"
        else c
        for c in cells
    ]
    assert not judge_matrix(matrix_json(lost)).passed


def test_every_key_of_a_row_is_defined(cells: list[Cell]) -> None:
    assert set(MATRIX_DEFINITIONS) == set(matrix_json(cells)[0]) | {"oracle"}


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("block_size", [4, 12])
def test_the_table_fits_the_terminal_and_says_everything_without_colour(
    width: int, block_size: int, tmp_path: Any
) -> None:
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None, _environ={})
    print_matrix(run_matrix(Workshop(tmp_path), Settings(block_size=block_size)), console)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]
    assert [line for line in lines if "one_pixel" in line and "! false" in line]


def test_the_command_prints_the_rows_that_it_writes_and_passes(within: Within, tmp_path: Any) -> None:
    rows = within.json("study", "--matrix", "--out", "out")
    assert rows == json.loads((tmp_path / "out/matrix.json").read_text(encoding="utf-8"))
    assert {"mutation", "kv_changes", "granularity", "strategy", "verdict", "right"} <= set(rows[0])
    done = within.run("study", "--matrix", "--out", "out")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASS")
    assert "PASS  strategy C has no false hit" in done.stdout


def test_an_engine_that_leaves_metadata_out_fails_the_matrix_and_names_the_changes(
    within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = keys.make_engine
    monkeypatch.setattr(keys, "make_engine", lambda strategy, *rest: real("B" if strategy == "C" else strategy, *rest))
    done = within.run("study", "--matrix", "--out", "out")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAIL  strategy C has no false hit")]
    assert "grid_transposed" in line
    assert "one_pixel" not in line


@pytest.mark.parametrize(
    "other", [("--scenario", "multi_image_same_order"), ("--strategies", "A"), ("--images", "."), ("--capacity", "5")]
)
def test_the_matrix_goes_with_nothing_that_belongs_to_another_study(within: Within, other: tuple[str, str]) -> None:
    line = within.complaint("study", "--matrix", *other)
    assert other[0] in line
    assert "--matrix" in line


# ---------------------------------------------------------------- beyond the list


def at_random(draw: random.Random, recipe: Recipe) -> Recipe:
    """One change of a random kind at a random place to a random value."""
    kind = draw.choice(("token", "insert", "drop", "pixel", "option", "sampling", "scope", "config", "order"))
    texts = [part for part in recipe.parts if isinstance(part, Text)]
    if kind == "token":
        text = draw.choice(texts)
        ids = list(text.ids)
        ids[draw.randrange(len(ids))] = draw.randrange(10, 400)
        return recipe.with_part(text.name, Text(text.name, tuple(ids)))
    if kind == "insert":
        text = draw.choice(texts)
        place = draw.randrange(len(text.ids) + 1)
        return recipe.with_part(text.name, Text(text.name, (*text.ids[:place], draw.randrange(400), *text.ids[place:])))
    if kind == "drop":
        return recipe.with_part(draw.choice(recipe.parts[1:]).name)
    if kind == "order":
        parts = list(recipe.parts)
        draw.shuffle(parts)
        return dataclasses.replace(recipe, parts=tuple(parts))
    if kind == "scope":
        field = draw.choice(("model_id", "revision", "adapter", "salt"))
        value = {"adapter": (str(draw.random()), None), "salt": draw.randbytes(16)}.get(field, str(draw.random()))
        return dataclasses.replace(recipe, scope=dataclasses.replace(recipe.scope, **{field: value}))
    if kind == "config":
        config = {**recipe.scope.config, draw.choice(("rope_theta", "new")): draw.choice((1, 1.0, True, "1", None))}
        return dataclasses.replace(recipe, scope=dataclasses.replace(recipe.scope, config=config))
    shots = {part.name: part for part in recipe.parts if not isinstance(part, Text)}
    if kind == "sampling" and "clip" in shots:
        sampling = {**shots["clip"].sampling, draw.choice(("sampled_fps", "source_fps")): draw.uniform(0.5, 60)}
        return recipe.with_part("clip", dataclasses.replace(shots["clip"], sampling=sampling))
    if kind == "pixel" and "picture_2" in shots:
        array = shots["picture_2"].media.array.copy()
        array[draw.randrange(array.shape[0]), draw.randrange(array.shape[1]), draw.randrange(3)] ^= draw.randrange(
            1, 256
        )
        return recipe.with_part("picture_2", dataclasses.replace(shots["picture_2"], media=Pixels(array, "changed")))
    if shots:
        name = draw.choice(sorted(shots))
        option = draw.choice(sorted(shots[name].options))
        value = {"max_pixels": 28 * 28 * draw.randrange(1, 120), "min_pixels": 28 * 28}.get(option, draw.random())
        return recipe.with_part(name, shots[name].with_option(option, value))
    return recipe


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return Workshop(tmp_path_factory.mktemp("base")).base()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 3), block_size=st.sampled_from([1, 4, 12]))
def test_changes_at_random_beyond_the_list_find_no_false_hit_of_c_either(
    base: Recipe, seed: int, changes: int, block_size: int
) -> None:
    draw, recipe, renderer = random.Random(seed), base, NativeRenderer()
    for _ in range(changes):
        recipe = at_random(draw, recipe)
    stored, wanted = renderer.render(base).request, renderer.render(recipe).request
    simulator = Simulator(Settings(block_size=block_size).configurations)
    simulator.store(stored)
    relation = compare(stored, wanted)
    most = min(relation.shared_tokens, len(stored.token_ids), len(wanted.token_ids))
    for (granularity, configuration), lookup in simulator.look_up(wanted).items():
        if configuration.strategy != "C":
            continue
        assert FALSE not in {lookup.by_image, lookup.by_full}, relation.differences
        if (
            granularity == "prefix"
        ):  # every field that these changes touch is in the key: C finds just what may be reused
            assert lookup.found_blocks == most // block_size
        else:
            assert (lookup.found_blocks > 0) == relation.same


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=st.lists(st.sampled_from(MUTATIONS), min_size=2, max_size=3, unique_by=lambda m: m.name))
def test_listed_changes_made_together_find_no_false_hit_of_c_either(
    base: Recipe, pair: list[Any], tmp_path: Any
) -> None:
    workshop, recipe, renderer = Workshop(tmp_path), base, NativeRenderer()
    for mutation in pair:
        try:
            recipe = mutation.change(recipe, workshop)
        except (AttributeError, StopIteration):  # the part that it changes is gone, or is of another kind by now
            return
    stored, wanted = renderer.render(base), renderer.render(recipe).request
    simulator = Simulator(Settings(block_size=1).configurations)
    simulator.store(stored.request)
    for (_, configuration), lookup in simulator.look_up(wanted).items():
        if configuration.strategy == "C":
            assert FALSE not in {lookup.by_image, lookup.by_full}


def test_the_base_request_shows_something_in_every_part(base: Recipe) -> None:
    rendered = NativeRenderer().render(base)
    assert len(rendered.request.items) == 3
    assert rendered.begins["system"] == 0
    assert rendered.request.token_ids[: len(SYSTEM)] == SYSTEM
    array = base.part("picture_2").media.array
    assert len(np.unique(array.reshape(-1, 3), axis=0)) > 10_000
