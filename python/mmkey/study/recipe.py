"""A prompt as its parts, before any processor has seen it: what a single change is made to.

A :class:`Renderer` makes a logical request of it: the study's own processor for the mutation matrix, a real model's
for the oracle. Sizes, grids and token counts come from the renderer, so a change of a picture or of an option reaches
every field that it would reach in a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mmkey.study.logical import Clip, LogicalItem, LogicalRequest, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmkey.study.logical import Media

PLACEHOLDER: Mapping[str, int] = {"image": 500, "video": 501}
MARKS = (502, 503)  # what a processor puts before and after the placeholders of an item
DEFAULT_OPTIONS: Mapping[str, Any] = {
    "resample": "bicubic",
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "background": "white",
    "min_pixels": 28 * 28,
    "max_pixels": 28 * 28 * 100,
}


@dataclass(frozen=True)
class Text:
    """Token ids of plain text."""

    name: str
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture or a clip in its place.

    ``options`` are the processor's, resolved; ``changed`` are those that differ from the base's, which a processor
    that has no such option cannot follow. ``original_size`` is what the caller declares, None for the true one.
    ``cut`` = (tokens, ids): text ids that stand in the midst of the item's own tokens, after so many of them. Without
    ids, its layout is merely declared in two touching ranges.
    """

    name: str
    media: Media
    options: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_OPTIONS))
    changed: frozenset[str] = frozenset()
    sampling: Mapping[str, Any] | None = None
    original_size: tuple[int, int] | None = None
    cut: tuple[int, tuple[int, ...]] | None = None

    def with_option(self, name: str, value: object) -> Shot:
        """The same shot with one option changed."""
        return replace(self, options={**self.options, name: value}, changed=self.changed | {name})


@dataclass(frozen=True, eq=False)
class Recipe:
    """A prompt: its parts in order, and the scope. ``listed_backwards``: the caller lists the last item first."""

    scope: Scope
    parts: tuple[Text | Shot, ...]
    listed_backwards: bool = False

    def part(self, name: str) -> Any:
        """The part of that name."""
        return next(part for part in self.parts if part.name == name)

    def with_part(self, name: str, *new: Text | Shot) -> Recipe:
        """With one part replaced by others, or by none."""
        parts: list[Text | Shot] = []
        for part in self.parts:
            parts += new if part.name == name else (part,)
        return replace(self, parts=tuple(parts))


class InexpressibleError(Exception):
    """A renderer's processor or model has nothing that this change could change; the message says what."""


@dataclass(frozen=True)
class Rendered:
    """A logical request, and where each part begins in it, an item after its mark; ``begins["end"]`` is the length."""

    request: LogicalRequest
    begins: Mapping[str, int]


class Renderer:
    """Makes logical requests of recipes. A subclass says what its processor makes of one shot.

    ``options`` are the processor's options that it follows.
    ``modalities`` are those that its model takes.
    """

    options: frozenset[str] = frozenset(DEFAULT_OPTIONS)
    modalities: frozenset[str] = frozenset({"image", "video"})

    def item(self, shot: Shot) -> LogicalItem:
        """A shot as an item. Raises InexpressibleError where the processor does not know what was changed."""
        raise NotImplementedError

    def render(self, recipe: Recipe) -> Rendered:
        """The expanded prompt, its items and its layout. Shots of a modality that the model has not are left out.

        The text alone, which A and B make request keys of, is what was typed: without placeholders and marks.
        """
        token_ids: list[int] = []
        text_ids: list[int] = []
        items: list[LogicalItem] = []
        layout: list[tuple[int, int]] = []
        order: list[int] = []
        begins: dict[str, int] = {}
        for part in recipe.parts:
            if isinstance(part, Text):
                begins[part.name] = len(token_ids)
                token_ids += part.ids
                text_ids += part.ids
            elif modality_of(part) in self.modalities:
                item = self._item(part)
                between = part.cut[1] if part.cut else ()
                first = part.cut[0] if part.cut else item.num_visual_tokens
                token_ids.append(MARKS[0])
                begins[part.name] = len(token_ids)
                for length, text in ((first, between), (item.num_visual_tokens - first, ())):
                    if length:
                        layout.append((len(token_ids), length))
                        order.append(len(items))
                    token_ids += [PLACEHOLDER[item.modality]] * length
                    token_ids += text
                token_ids.append(MARKS[1])
                items.append(item)
                text_ids += between
        begins["end"] = len(token_ids)
        listed = range(len(items))[:: -1 if recipe.listed_backwards else 1]
        request = LogicalRequest(
            recipe.scope,
            tuple(text_ids),
            tuple(token_ids),
            tuple(items[n] for n in listed),
            tuple(layout),
            tuple(listed.index(n) for n in order),
        )
        return Rendered(request, begins)

    def _item(self, shot: Shot) -> LogicalItem:
        unknown = shot.changed - self.options
        if unknown:
            raise InexpressibleError(f"its processor has no option {', '.join(sorted(unknown))}")
        return self.item(shot)


def modality_of(shot: Shot) -> str:
    """``video`` for a clip, else ``image``."""
    return "video" if isinstance(shot.media, Clip) else "image"
