"""The seven scenarios: a first request is stored, a second is looked up, and one thing may have changed between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mmkey.study.clips import ClipFile, sample_by_stride, sample_to_the_end
from mmkey.study.logical import Clip, LogicalItem, LogicalRequest, Picture, Scope

if TYPE_CHECKING:
    from mmkey.study.processors import Processor

SCOPE = Scope(model_id="mmkey-study/vit-l-14", config={"rope_theta": 10000.0, "kv_dtype": "float16"})
QUESTION = (1724, 338, 297, 278, 7623)
OTHER_QUESTION = (6804, 471, 372, 7623, 4586)
PLACEHOLDER = {"image": 32000, "video": 32001}

# the video processor: frames of 224x224, patches of 14, two frames and 2x2 patches to a visual token
_SIDE, _PATCH, _MERGE, _TEMPORAL = 224, 14, 2, 2
_SAMPLED_FRAMES = 8


@dataclass(frozen=True)
class Case:
    """Two requests to run: ``first`` is stored, then ``second`` is looked up."""

    first: LogicalRequest
    second: LogicalRequest
    media: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Scenario:
    """A scenario by its parts: which pictures each request shows ("a", "b"), and what changes beside them.

    ``view`` names the processor's view of the second request's pictures. ``variants`` are further forms of the same
    change, run and shown apart from it. ``inputs`` names the folder of its drawn inputs where that is not its own name.
    """

    name: str
    about: str
    first: str = "a"
    second: str = "a"
    question: tuple[int, ...] = QUESTION
    view: str = "view"
    clip: bool = False
    inputs: str = ""
    variants: tuple[Scenario, ...] = ()

    @property
    def pictures(self) -> int:
        """How many different pictures it needs."""
        return 0 if self.clip else len({*self.first, *self.second})


SCENARIOS = (
    Scenario("same_text_same_image", "the same question about the same picture, read from another file"),
    Scenario("same_text_different_image", "the same question about another picture", second="b"),
    Scenario("same_image_different_question", "another question about the same picture", question=OTHER_QUESTION),
    Scenario(
        "same_image_different_resize",
        "the same picture, resized to half as much again: more visual tokens",
        view="larger",
        variants=(
            Scenario(
                "equal_token_count",
                "the same picture, resized to another shape that has as many visual tokens",
                view="reshaped",
                inputs="same_image_different_resize",
            ),
        ),
    ),
    Scenario("multi_image_same_order", "two pictures, in the same order", first="ab", second="ab"),
    Scenario("multi_image_different_order", "two pictures, in the other order", first="ab", second="ba"),
    Scenario(
        "same_video_different_frame_sampling", "as many frames of the same clip, sampled in another way", clip=True
    ),
)
BY_NAME: Mapping[str, Scenario] = {scenario.name: scenario for scenario in SCENARIOS}

TakePicture = Callable[[str, str], Picture]  # ("a" or "b", slot such as "first-1") -> that picture, in a file


def picture_case(scenario: Scenario, processor: Processor, take: TakePicture) -> Case | None:
    """The two requests of a scenario of pictures; None where the processor has no such view of a picture."""
    first, second = [], []
    for n, letter in enumerate(scenario.first, 1):
        picture = take(letter, f"first-{n}")
        first.append(processor.view(picture.size).item(picture))
    for n, letter in enumerate(scenario.second, 1):
        picture = take(letter, f"second-{n}")
        view = getattr(processor, scenario.view)(picture.size)
        if view is None:
            return None
        second.append(view.item(picture))
    return _case(tuple(first), tuple(second), scenario.question)


def clip_case(scenario: Scenario, clip: ClipFile) -> Case:
    """The two requests of the video scenario: as many frames, by two ways of sampling."""
    count = min(_SAMPLED_FRAMES, (clip.total_frames - 1) // _TEMPORAL * _TEMPORAL)
    items = tuple(
        _clip_item(clip, how, sample(clip.total_frames, count))
        for how, sample in (("stride", sample_by_stride), ("to_the_end", sample_to_the_end))
    )
    return _case(items[:1], items[1:], scenario.question)


def _clip_item(clip: ClipFile, how: str, indices: list[int]) -> LogicalItem:
    grid = (len(indices) // _TEMPORAL, _SIDE // _PATCH, _SIDE // _PATCH)
    return LogicalItem(
        "video",
        Clip(clip.frames(indices), f"{clip.name} [{how}]"),
        clip.size,
        (_SIDE, _SIDE),
        grid,
        grid[0] * grid[1] * grid[2] // _MERGE**2,
        sampling={
            "frame_indices": indices,
            "source_fps": clip.fps,
            "sampled_fps": None if clip.fps is None else clip.fps * len(indices) / clip.total_frames,
            "total_frames": clip.total_frames,
        },
        processing={
            "processor": "square",
            "patch_size": _PATCH,
            "merge_size": _MERGE,
            "temporal_patch_size": _TEMPORAL,
        },
    )


def _case(first: tuple[LogicalItem, ...], second: tuple[LogicalItem, ...], question: tuple[int, ...]) -> Case:
    return Case(
        LogicalRequest.pictures_first(SCOPE, first, QUESTION, PLACEHOLDER),
        LogicalRequest.pictures_first(SCOPE, second, question, PLACEHOLDER),
        (tuple(item.media.name for item in first), tuple(item.media.name for item in second)),
    )
