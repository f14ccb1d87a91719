"""Qwen2.5-VL: pictures at their own shape, clips of frame pairs, M-RoPE over time, height and width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from PIL import Image
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from mmkey.study.logical import Clip
from mmkey.study.oracle.model import (
    RESAMPLE,
    TEXT_SIZES,
    TinyModel,
    frames_of,
    picture_of,
    placeholders,
    processor_options,
)
from mmkey.study.recipe import DEFAULT_OPTIONS, PLACEHOLDER, InexpressibleError
from mmkey.study.rendering import MERGE, PATCH, TEMPORAL_PATCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmkey.study.logical import LogicalItem, LogicalRequest, Scope
    from mmkey.study.recipe import Shot


class Qwen(TinyModel):
    """A Qwen2.5-VL of two vision layers, one with windows, and three text layers."""

    name, title = "qwen2_5_vl", "Qwen2.5-VL"
    options = frozenset({*DEFAULT_OPTIONS, "resize_to"})
    modalities = frozenset({"image", "video"})

    def process(self, shot: Shot) -> tuple[torch.Tensor, tuple[int, int], tuple[int, int, int], int]:
        """As :meth:`TinyModel.process`. A clip's frames are paired as its video processor does."""
        if shot.cut is not None and shot.cut[1]:
            raise InexpressibleError("its positions come from the grid, which text cannot interrupt")
        if isinstance(shot.media, Clip):
            frames = [self._patches(frame, shot) for frame in frames_of(shot)]
            pairs = [_paired(*frames[i : i + 2]) for i in range(0, len(frames), 2)]
            pixels, (_, tall, wide) = torch.cat(pairs), frames[0][1]
            grid = (len(pairs), tall, wide)
        else:
            pixels, grid = self._patches(picture_of(shot), shot)
        return pixels, (grid[1] * PATCH, grid[2] * PATCH), grid, grid[0] * grid[1] * grid[2] // MERGE**2

    @staticmethod
    def _patches(picture: Any, shot: Shot) -> tuple[torch.Tensor, tuple[int, int, int]]:
        options = processor_options(shot)
        if "resize_to" in shot.options:
            tall, wide = shot.options["resize_to"]
            picture = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
            picture = picture.resize((wide, tall), RESAMPLE[shot.options["resample"]])
            options["do_resize"] = False
        size = {"shortest_edge": shot.options["min_pixels"], "longest_edge": shot.options["max_pixels"]}
        processor = Qwen2VLImageProcessorPil(
            size=size, patch_size=PATCH, merge_size=MERGE, temporal_patch_size=TEMPORAL_PATCH
        )
        out = processor(images=[picture], **options)
        t, h, w = out["image_grid_thw"][0].tolist()
        return out["pixel_values"], (t, h, w)

    def build(self, scope: Scope, attention: str) -> Any:
        """As :meth:`TinyModel.build`."""
        sizes = {name: value for name, value in TEXT_SIZES.items() if name != "head_dim"}
        rope = {
            "rope_type": "default",
            "rope_theta": scope.config["rope_theta"],
            "mrope_section": [2, 3, 3],
        }
        config = Qwen2_5_VLConfig(
            vision_config={
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": TEXT_SIZES["hidden_size"],
                "patch_size": PATCH,
                "spatial_merge_size": MERGE,
                "temporal_patch_size": TEMPORAL_PATCH,
                "window_size": 56,
                "fullatt_block_indexes": [1],
                "tokens_per_second": 4,
            },
            text_config={**sizes, "rope_parameters": rope},
            image_token_id=PLACEHOLDER["image"],
            video_token_id=PLACEHOLDER["video"],
            attn_implementation=attention,
        )
        return Qwen2_5_VLForConditionalGeneration(config)

    def inputs(self, request: LogicalRequest, pixels: list[torch.Tensor]) -> dict[str, Any]:
        """As :meth:`TinyModel.inputs`."""
        items = [request.items[n] for n in request.by_appearance()]
        given: dict[str, Any] = {}
        for modality, values, grids in (
            ("image", "pixel_values", "image_grid_thw"),
            ("video", "pixel_values_videos", "video_grid_thw"),
        ):
            chosen = [(item, p) for item, p in zip(items, pixels, strict=True) if item.modality == modality]
            if chosen:
                given[values] = torch.cat([p for _, p in chosen])
                given[grids] = torch.tensor([item.patch_grid for item, _ in chosen])
                if modality == "video":
                    given["second_per_grid_ts"] = torch.tensor([_seconds(item) for item, _ in chosen])
        return given

    def positions(self, model: Any, request: LogicalRequest, inputs: Mapping[str, Any]) -> torch.Tensor:
        """As :meth:`TinyModel.positions`: by the model itself, which needs to be told what is text."""
        types = placeholders(request, "image").int() + 2 * placeholders(request, "video").int()
        grids = {n: inputs.get(n) for n in ("image_grid_thw", "video_grid_thw", "second_per_grid_ts")}
        ids = torch.tensor([request.token_ids])
        positions, _ = model.model.get_rope_index(ids, mm_token_type_ids=types, **grids)
        result: torch.Tensor = positions
        return result


def _paired(a: tuple[torch.Tensor, Any], *b: tuple[torch.Tensor, Any]) -> torch.Tensor:
    """Patches of two frames as one temporal patch: a still picture's hold it twice, [patches, 3 x 2 x 14 x 14]."""
    shape = (-1, 3, TEMPORAL_PATCH, PATCH, PATCH)
    pair = a[0].reshape(shape).clone()
    pair[:, :, 1] = (b[0] if b else a)[0].reshape(shape)[:, :, 1]
    return pair.reshape(a[0].shape)


def _seconds(item: LogicalItem) -> float:
    """The time from one pair of frames to the next."""
    sampling = item.sampling or {}
    return TEMPORAL_PATCH / float(sampling["sampled_fps"])
