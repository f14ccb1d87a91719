"""Mutations of where items stand, of how a clip is sampled, of text, and of the scope."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mmkey.study.base_request import FRAMES, QUESTION, SAMPLING, clip
from mmkey.study.logical import Clip
from mmkey.study.mutation import NOWHERE, KvChange, Mutation
from mmkey.study.recipe import Shot, Text

if TYPE_CHECKING:
    from mmkey.study.base_request import Workshop
    from mmkey.study.mutation import Change
    from mmkey.study.recipe import Recipe

_TOKENS_OF_A_FRAME_PAIR = 4
WHOLE_ITEM = "an item enters the chain whole, at its first position: an encoder may see all of it"
ENTRY_IS_KEY = "an entry of the sampling is part of the key, since another model counts time by it"
ATTENDS = "every later token attends to it"
FROM_START = KvChange("system")
ROOT = "config is part of the root, which stands before every position"
WEIGHTS = "other weights, other KV for the same tokens"


# ---------------------------------------------------------------- changes


def _reversed_listing(recipe: Recipe, _: Workshop) -> Recipe:
    return replace(recipe, listed_backwards=True)


def _parts(*names: str) -> Change:
    """The same parts in the order given; those not named are gone."""
    return lambda recipe, _: replace(recipe, parts=tuple(recipe.part(name) for name in names))


def _cut(after: int, *text: int) -> Change:
    return lambda recipe, _: recipe.with_part("picture_2", replace(recipe.part("picture_2"), cut=(after, text)))


def _twice(recipe: Recipe, _: Workshop) -> Recipe:
    return recipe.with_part("picture_2", replace(recipe.part("picture_1"), name="picture_2"))


def _appended(recipe: Recipe, _: Workshop) -> Recipe:
    return replace(recipe, parts=(*recipe.parts, replace(recipe.part("picture_2"), name="picture_3")))


def _clip(media: Clip | None = None, **sampling: Any) -> Change:
    def change(recipe: Recipe, _: Workshop) -> Recipe:
        shot: Shot = recipe.part("clip")
        changed = replace(shot, media=media or shot.media, sampling={**SAMPLING, **sampling})
        return recipe.with_part("clip", changed)

    return change


def _last_frame_darker() -> Clip:
    frames = clip(FRAMES).frames
    return Clip((*frames[:-1], frames[-1] // 2), "ball, then dusk")


def _first_pairs_swapped() -> Clip:
    frames = clip(FRAMES).frames
    return Clip((*frames[2:4], *frames[:2], *frames[4:]), "ball, out of order")


def _text(part: str, ids: tuple[int, ...]) -> Change:
    return lambda recipe, _: recipe.with_part(part, Text(part, ids))


def _one_token(part: str, place: int) -> Change:
    def change(recipe: Recipe, _: Workshop) -> Recipe:
        ids = list(recipe.part(part).ids)
        ids[place] += 100
        return recipe.with_part(part, Text(part, tuple(ids)))

    return change


def _scope(**fields: Any) -> Change:
    return lambda recipe, _: replace(recipe, scope=replace(recipe.scope, **fields))


def _config(**entries: Any) -> Change:
    def change(recipe: Recipe, _: Workshop) -> Recipe:
        return replace(recipe, scope=replace(recipe.scope, config={**recipe.scope.config, **entries}))

    return change


# ---------------------------------------------------------------- the lists

LAYOUT = (
    Mutation(
        "listed_in_another_order", "container", "the items listed backwards, `order` saying so", _reversed_listing,
        NOWHERE, "the prompt is the same",
    ),
    Mutation(
        "declared_in_touching_ranges", "container", "one item's range declared as two that touch", _cut(6),
        NOWHERE, "the prompt is the same",
    ),
    Mutation(
        "swapped_pictures", "layout", "the two pictures in each other's place",
        _parts("system", "picture_2", "between", "picture_1", "then", "clip", "question"),
        KvChange("picture_1"), "another picture comes first",
    ),
    Mutation(
        "one_picture_twice", "layout", "the first picture again in the second's place", _twice,
        KvChange("picture_2"), "another picture stands there",
    ),
    Mutation(
        "picture_before_its_text", "layout", "the second picture before the words that stood before it",
        _parts("system", "picture_1", "picture_2", "between", "then", "clip", "question"),
        KvChange("between"), "a picture stands where text was",
    ),
    Mutation(
        "picture_removed", "layout", "no second picture",
        _parts("system", "picture_1", "between", "then", "clip", "question"),
        KvChange("picture_2", -1), "text stands where the picture was",
    ),
    Mutation(
        "picture_appended", "layout", "one more picture after the question", _appended,
        KvChange("end"), "nothing before it attends to it",
    ),
    Mutation(
        "text_inside_a_picture", "layout", "a token of text within the picture's tokens", _cut(14, 81),
        KvChange("picture_2", 14), "positions after it move",
        "an item enters the chain whole, with all its places, at its first position",
        {"gemma3": (KvChange("picture_2"), "its picture tokens see each other in both directions")},
    ),
)  # fmt: skip

VIDEO = (
    Mutation(
        "other_frames", "video", "the frames in between",
        _clip(clip(range(1, 16, 2)), frame_indices=[*range(1, 16, 2)]),
        KvChange("clip"), "the vision encoder sees other frames",
    ),
    Mutation(
        "frames_out_of_order", "video", "the first two pairs of frames swapped", _clip(_first_pairs_swapped()),
        KvChange("clip"), "the vision encoder sees other frames",
    ),
    Mutation(
        "last_frame", "video", "only the last frame is another", _clip(_last_frame_darker()),
        KvChange("clip", 3 * _TOKENS_OF_A_FRAME_PAIR), "this encoder sees each pair of frames by itself", WHOLE_ITEM,
    ),
    Mutation(
        "fewer_frames", "video", "two frames fewer at the end",
        _clip(clip(range(0, 12, 2)), frame_indices=[*range(0, 12, 2)]),
        KvChange("clip", 3 * _TOKENS_OF_A_FRAME_PAIR), "this encoder sees each pair of frames by itself", WHOLE_ITEM,
    ),
    Mutation(
        "sampled_fps", "video", "the same frames at twice the rate", _clip(sampled_fps=4.0),
        KvChange("clip", _TOKENS_OF_A_FRAME_PAIR), "M-RoPE counts time: positions move from the second pair on",
        WHOLE_ITEM,
    ),
    Mutation(
        "sampled_fps_rounded", "video", "1.99 frames a second for 2", _clip(sampled_fps=1.99),
        NOWHERE, "M-RoPE's positions are rounded down to the same", ENTRY_IS_KEY,
    ),
    Mutation(
        "source_fps", "video", "another rate of the file declared for the same frames", _clip(source_fps=8.0),
        NOWHERE, "the model takes the rate after sampling alone", ENTRY_IS_KEY,
    ),
    Mutation(
        "total_frames", "video", "a longer file declared for the same frames", _clip(total_frames=32),
        NOWHERE, "the model takes the frames sampled alone", ENTRY_IS_KEY,
    ),
    Mutation(
        "declared_indices", "video", "other indices declared for the same frames",
        _clip(frame_indices=[i // 2 for i in FRAMES]),
        NOWHERE, "the model takes the rate alone", "Qwen3-VL writes time stamps from them into the prompt",
    ),
    Mutation(
        "clip_removed", "video", "no clip", _parts("system", "picture_1", "between", "picture_2", "then", "question"),
        KvChange("clip", -1), "text stands where the clip was",
    ),
)  # fmt: skip

TEXT = (
    Mutation(
        "question", "text", "another question", _text("question", tuple(i + 100 for i in QUESTION)),
        KvChange("question"), ATTENDS,
    ),
    Mutation(
        "longer_question", "text", "one token more at the end", _text("question", (*QUESTION, 73)),
        KvChange("end"), "nothing before it attends to it",
    ),
    Mutation(
        "shorter_question", "text", "one token less at the end", _text("question", QUESTION[:-1]),
        KvChange("question", len(QUESTION) - 1), "nothing before it attends to it",
    ),
    Mutation(
        "token_between", "text", "one token between the pictures", _one_token("between", 2),
        KvChange("between", 2), ATTENDS,
    ),
    Mutation("system_prompt", "text", "the system prompt's first token", _one_token("system", 0), FROM_START, ATTENDS),
    Mutation(
        "system_prompt_end", "text", "the system prompt's last token", _one_token("system", -1),
        KvChange("system", 23), ATTENDS,
    ),
)  # fmt: skip

SCOPE = (
    Mutation(
        "model", "scope", "another model of the same shape", _scope(model_id="mmkey-study/other"), FROM_START, WEIGHTS,
    ),
    Mutation("model_revision", "scope", "another revision of the model", _scope(revision="2"), FROM_START, WEIGHTS),
    Mutation("adapter", "scope", "another LoRA adapter", _scope(adapter=("tables", "1")), FROM_START, WEIGHTS),
    Mutation(
        "adapter_revision", "scope", "another revision of the adapter", _scope(adapter=("captions", "2")),
        FROM_START, WEIGHTS,
    ),
    Mutation("no_adapter", "scope", "no adapter", _scope(adapter=None), FROM_START, WEIGHTS),
    Mutation(
        "rope_theta", "scope", "another base of the rotary embedding", _config(rope_theta=1e6), KvChange("system", 1),
        "keys are rotated by another angle, from the second position on",
        ROOT,
    ),
    Mutation("kv_dtype", "scope", "bfloat16 for float64", _config(kv_dtype="bfloat16"), FROM_START, "KV is rounded"),
    Mutation(
        "attention", "scope", "another attention kernel", _config(attention="eager"), KvChange("system", 1),
        "sums are taken in another order: the last bits differ, from the first position that sums more than one",
        ROOT,
    ),
    Mutation(
        "whole_number", "scope", "rope_theta 10000 for 10000.0", _config(rope_theta=10000), NOWHERE,
        "the same angle", "1, 1.0 and true are three values: a consumer could tell them apart",
    ),
    Mutation(
        "unused_entry", "scope", "an entry of config that no model reads", _config(comment="for the demonstration"),
        NOWHERE, "nothing reads it", "what stands in `config` is part of the key; what changes nothing is left out",
    ),
    Mutation(
        "salt", "scope", "another tenant's salt", _scope(salt=b"the second tenant's salt"), NOWHERE,
        "the salt is no part of any computation", "meant: tenants share nothing, and cannot probe each other's prompts",
    ),
)  # fmt: skip
