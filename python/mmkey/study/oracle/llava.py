"""LLaVA-1.5: every picture a square cropped from its middle, plain rotary positions, causal attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

from mmkey.study.oracle.model import TEXT_SIZES, TinyModel, picture_of, processor_options
from mmkey.study.recipe import PLACEHOLDER

if TYPE_CHECKING:
    from mmkey.study.logical import LogicalRequest, Scope
    from mmkey.study.recipe import Shot

_SIDE, _PATCH = 56, 14


class Llava(TinyModel):
    """A LLaVA-1.5 of two CLIP layers and three Llama layers."""

    name, title = "llava", "LLaVA-1.5"

    def process(self, shot: Shot) -> tuple[torch.Tensor, tuple[int, int], tuple[int, int, int], int]:
        """As :meth:`TinyModel.process`."""
        processor = LlavaImageProcessorPil(size={"shortest_edge": _SIDE}, crop_size={"height": _SIDE, "width": _SIDE})
        pixels = processor(images=[picture_of(shot)], **processor_options(shot))["pixel_values"]
        side = _SIDE // _PATCH
        return pixels, (_SIDE, _SIDE), (1, side, side), side * side

    def build(self, scope: Scope, attention: str) -> Any:
        """As :meth:`TinyModel.build`."""
        config = LlavaConfig(
            vision_config=CLIPVisionConfig(
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=3,
                num_attention_heads=2,
                image_size=_SIDE,
                patch_size=_PATCH,
            ),
            text_config=LlamaConfig(
                **TEXT_SIZES,
                rope_parameters={"rope_type": "default", "rope_theta": scope.config["rope_theta"]},
            ),
            image_token_index=PLACEHOLDER["image"],
            attn_implementation=attention,
        )
        return LlavaForConditionalGeneration(config)

    def inputs(self, _: LogicalRequest, pixels: list[torch.Tensor]) -> dict[str, Any]:
        """As :meth:`TinyModel.inputs`."""
        return {"pixel_values": torch.cat(pixels)} if pixels else {}
