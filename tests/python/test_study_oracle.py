"""Real models say whose KV is whose, and the keys agree with them. Needs the extra ``oracle``; CI demands it."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if "MMKEY_REQUIRE_ORACLE" not in os.environ:
    pytest.importorskip("torch", reason="the extra 'oracle' is not installed")
import torch

from command_line import mmkey
from mmkey.study import keys
from mmkey.study.base_request import Workshop
from mmkey.study.mutation import NOWHERE
from mmkey.study.mutations import MUTATIONS
from mmkey.study.oracle.gemma import Gemma3
from mmkey.study.oracle.kv import leading, same_positions
from mmkey.study.oracle.llava import Llava
from mmkey.study.oracle.qwen import Qwen
from mmkey.study.oracle.results import ORACLE_DEFINITIONS
from mmkey.study.oracle.run import MODELS, run_oracle
from mmkey.study.recipe import Shot, Text
from mmkey.study.simulator import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Within
    from mmkey.study.logical import LogicalRequest
    from mmkey.study.oracle.model import TinyModel

NAMES = [make.name for make in MODELS]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one whole run, as a user starts it."""
    folder = tmp_path_factory.mktemp("oracle")
    done = mmkey("study", "--oracle", cwd=folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "PASS"
    assert max(map(len, done.stdout.splitlines()[:200])) <= 100
    return folder / "results"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def oracle(out: Path) -> Any:
    return load(out / "oracle.json")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


# ---------------------------------------------------------------- what the models say of the keys


def test_where_c_says_the_same_block_key_the_kv_is_the_same_bit_by_bit(oracle: Any) -> None:
    assert {c["model"] for c in oracle["comparisons"]} == set(NAMES)
    assert len(oracle["comparisons"]) > 150
    for comparison in oracle["comparisons"]:
        figures = comparison["strategies"]["C"]
        assert (figures["wrong"], figures["request_wrong"], comparison["tokens"]["wrong"]) == (0, False, 0), comparison


def test_the_kv_differs_from_where_each_mutation_says_it_does(oracle: Any) -> None:
    assert not [(c["model"], c["mutation"]) for c in oracle["comparisons"] if not c["agrees"]]


def test_a_and_b_serve_another_s_kv_in_every_model(oracle: Any) -> None:
    for model in NAMES:
        for strategy in "AB":
            wrong = [
                c["mutation"]
                for c in oracle["comparisons"]
                if c["model"] == model and c["strategies"][strategy]["wrong"]
            ]
            assert len(wrong) > 10, (model, strategy)


def test_reuse_that_c_misses_has_its_reason_in_every_case(oracle: Any) -> None:
    for comparison in oracle["comparisons"]:
        missed = comparison["strategies"]["C"]["missed"] > 0
        assert missed == bool(comparison["missed_reason"]), comparison


def test_a_change_that_a_model_cannot_follow_is_listed_with_the_reason(oracle: Any) -> None:
    asked = {(model, mutation.name) for model in NAMES for mutation in MUTATIONS}
    said = {(c["model"], c["mutation"]) for c in oracle["comparisons"]}
    listed = {(n["model"], n["mutation"]) for n in oracle["not_expressible"] if n["reason"]}
    assert said | listed == asked
    assert not said & listed
    # only what torchvision would do is beyond all of them
    names = {mutation.name for mutation in MUTATIONS}
    assert names - {mutation for _, mutation in said} == {"back_end"}


def test_the_matrix_holds_each_model_s_verdict_in_its_rows(out: Path) -> None:
    rows = load(out / "matrix.json")
    for row in rows:
        if row["strategy"] == "C":
            assert all(said["verdict"] != "false_hit" for said in row["oracle"].values())
    (row,) = [r for r in rows if (r["mutation"], r["granularity"], r["strategy"]) == ("one_pixel", "request", "A")]
    assert {said["verdict"] for said in row["oracle"].values()} == {"false_hit"}
    assert set(row["oracle"]) == set(NAMES)


def test_every_figure_is_explained(oracle: Any) -> None:
    figures = set(oracle["comparisons"][0]) - {"model", "mutation", "blocks", "blocks_with_same_kv"}
    assert figures <= set(ORACLE_DEFINITIONS)
    assert oracle["definitions"] == ORACLE_DEFINITIONS


# ---------------------------------------------------------------- what a false hit does


def test_a_false_hit_moves_the_logits_and_can_change_the_answer(oracle: Any) -> None:
    for model in NAMES:
        hits = [hit for hit in oracle["false_hits"] if hit["model"] == model]
        assert len(hits) > 10
        assert all(hit["logits_moved"] > 0 for hit in hits)
        assert any(hit["next_token_changed"] for hit in hits)
        for hit in hits:
            assert hit["next_token_changed"] == (hit["next_token"] != hit["next_token_served"])


@pytest.mark.parametrize("make", MODELS)
def test_decoding_on_kv_that_is_rightly_reused_changes_no_bit(make: type[TinyModel], workshop: Workshop) -> None:
    model, recipe = make(), workshop.base()
    question = recipe.with_part("question", Text("question", (161, 162, 163)))
    first, second = (model.render(r) for r in (recipe, question))
    reused = first.begins["question"]
    stored, own = model.prefill(first.request), model.prefill(second.request)
    logits, tokens = model.decode(second.request, stored, reused, 4)
    meant, right = model.decode(second.request, own, reused, 4)
    assert torch.equal(logits, meant)
    assert tokens == right
    assert float((logits - own.logits).abs().max()) < 1e-9  # the same as in one go, but for the order of sums


# ---------------------------------------------------------------- the models are what they should be


@pytest.mark.parametrize("make", MODELS)
def test_a_prefill_again_in_a_model_built_again_gives_the_same_bits(make: type[TinyModel], workshop: Workshop) -> None:
    request = make().render(workshop.base())
    prefills = []
    for model in (make(), make()):
        rendered = model.render(workshop.base())
        assert rendered.begins == request.begins
        prefills.append(model.prefill(rendered.request))
    assert same_positions(*prefills).all()
    assert torch.equal(prefills[0].logits, prefills[1].logits)


@pytest.mark.parametrize("make", MODELS)
def test_pictures_have_an_effect_that_no_rounding_explains(make: type[TinyModel], oracle: Any) -> None:
    for name in ("another_picture", "mirrored", "mean"):
        (said,) = [c for c in oracle["comparisons"] if (c["model"], c["mutation"]) == (make.name, name)]
        assert said["kv_difference"] > 1e-3


def _truncated(request: LogicalRequest, tokens: int) -> LogicalRequest:
    """The first tokens of a request as an engine that stops there would prefill them."""
    return dataclasses.replace(request, token_ids=request.token_ids[:tokens])


def test_gemma_s_picture_tokens_see_each_other_so_a_hit_must_not_end_inside_one(workshop: Workshop) -> None:
    for make, same in ((Gemma3, False), (Llava, True)):
        model = make()
        base = model.render(workshop.base())
        whole = model.prefill(base.request)
        begin = base.begins["picture_2"]
        pixels = model._pixels
        # a prefill that stops within the second picture: its tokens so far are all that the mask lets them see
        cut = _truncated(base.request, begin + 8)
        (item,) = [i for n, i in enumerate(cut.items) if n == 1]
        features = pixels[item]
        with torch.no_grad():
            embedded = model.model(cut.scope).model.get_image_features(
                pixel_values=torch.cat([pixels[cut.items[0]], features])
            )
        rows = torch.cat([part.reshape(-1, 64) for part in embedded.pooler_output])[: 16 + 8]
        part = _prefill_with(model, cut, rows)
        alike = leading(same_positions(whole, part))
        assert (alike == begin + 8) == same
        assert alike >= begin


def _prefill_with(model: Any, request: LogicalRequest, rows: torch.Tensor) -> Any:
    """Prefills with picture embeddings that were made before."""
    from transformers import DynamicCache

    from mmkey.study.oracle.kv import Prefill
    from mmkey.study.recipe import PLACEHOLDER

    network = model.model(request.scope)
    ids = torch.tensor([request.token_ids])
    cache = DynamicCache()
    mask = ids == PLACEHOLDER["image"]
    with torch.no_grad():
        embeds = network.get_input_embeddings()(ids)
        embeds = embeds.masked_scatter(mask[..., None], rows.to(embeds.dtype))
        types = {"token_type_ids": mask.long()} if isinstance(model, Gemma3) else {}
        out = network(inputs_embeds=embeds, cache=cache, use_cache=True, **types)
    return Prefill.of(cache, out.logits)


def test_pictures_that_touch_see_each_other_in_gemma_so_marks_must_stand_between(workshop: Workshop) -> None:
    """With the processor's marks between them, what follows a picture never changes its KV; without, it does."""
    recipe = workshop.base()
    for marks, alone in ((True, True), (False, False)):
        model = Gemma3()
        prefills = []
        for second in ("picture_2", "picture_1"):
            shots = (recipe.part("picture_1"), recipe.part(second))
            request = model.render(dataclasses.replace(recipe, parts=(recipe.part("system"), *shots))).request
            if not marks:
                request = _without_marks(request)
            prefills.append(model.prefill(request))
        begin = len(recipe.part("system").ids)
        same = same_positions(*prefills)[: begin + 16]
        assert bool(same.all()) == alone


def _without_marks(request: LogicalRequest) -> LogicalRequest:
    from mmkey.study.recipe import MARKS

    ids, layout, order = [], [], []
    for (offset, length), which in zip(request.layout, request.order, strict=True):
        ids += [t for t in request.token_ids[len(ids) : offset] if t not in MARKS] if not layout else []
        layout.append((len(ids), length))
        order.append(which)
        ids += request.token_ids[offset : offset + length]
    return dataclasses.replace(request, token_ids=tuple(ids), layout=tuple(layout), order=tuple(order))


# ---------------------------------------------------------------- the oracle finds what is wrong


def chosen(*names: str) -> list[Any]:
    return [mutation for mutation in MUTATIONS if mutation.name in names]


def test_an_engine_that_looks_at_no_metadata_is_found_out_by_the_kv(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = keys.make_engine
    monkeypatch.setattr(keys, "make_engine", lambda _, *rest: real("B", *rest))
    oracle = run_oracle(workshop, Settings(), chosen("grid_transposed", "one_pixel", "adapter"), [Qwen])
    assert not oracle.passed
    assert {c["mutation"] for c in oracle.wrong_for_c()} == {"grid_transposed", "adapter"}


def test_a_mutation_whose_tag_is_wrong_is_found_out_by_the_kv(workshop: Workshop) -> None:
    (mutation,) = chosen("one_pixel")
    oracle = run_oracle(workshop, Settings(), [dataclasses.replace(mutation, kv=NOWHERE)], [Llava])
    assert not oracle.passed
    assert [c["mutation"] for c in oracle.disagreements()] == ["one_pixel"]


def test_progress_is_told_once_for_each_model_and_mutation(workshop: Workshop) -> None:
    steps: list[None] = []
    run_oracle(workshop, Settings(), chosen("salt", "back_end"), [Llava], lambda: steps.append(None))
    assert len(steps) == 2


def test_without_the_extra_the_command_says_how_to_get_it(within: Within, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("mmkey.study.oracle")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    line = within.complaint("study", "--oracle")
    assert "pip install 'mmkey[oracle]'" in line


def test_a_clip_has_one_set_of_patches_for_two_frames(workshop: Workshop) -> None:
    model = Qwen()
    shot: Shot = workshop.base().part("clip")
    pixels, _, grid, tokens = model.process(shot)
    assert (grid, tokens) == ((4, 4, 4), 16)
    patches = pixels.reshape(4, 16, 3, 2, 14, 14)
    for n, frame in enumerate(shot.media.frames):
        alone, _, _, _ = model.process(dataclasses.replace(shot, media=type(shot.media)((frame, frame), "one frame")))
        assert torch.equal(patches[n // 2, :, :, n % 2], alone.reshape(16, 3, 2, 14, 14)[:, :, 0])
