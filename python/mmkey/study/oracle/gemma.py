"""Gemma 3: square pictures pooled to few tokens, which see each other in both directions; layers with a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig, SiglipVisionConfig
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

from mmkey.study.oracle.model import TEXT_SIZES, TinyModel, picture_of, placeholders, processor_options
from mmkey.study.recipe import PLACEHOLDER

if TYPE_CHECKING:
    from mmkey.study.logical import LogicalRequest, Scope
    from mmkey.study.recipe import Shot

_SIDE, _PATCH, _TOKENS = 112, 14, 16


class Gemma3(TinyModel):
    """A Gemma 3 of two SigLIP layers and three text layers, of which the last sees all."""

    name, title = "gemma3", "Gemma 3"

    def process(self, shot: Shot) -> tuple[torch.Tensor, tuple[int, int], tuple[int, int, int], int]:
        """As :meth:`TinyModel.process`."""
        processor = Gemma3ImageProcessorPil(size={"height": _SIDE, "width": _SIDE})
        pixels = processor(images=[picture_of(shot)], **processor_options(shot))["pixel_values"]
        side = _SIDE // _PATCH
        return pixels, (_SIDE, _SIDE), (1, side, side), _TOKENS

    def build(self, scope: Scope, attention: str) -> Any:
        """As :meth:`TinyModel.build`."""
        rope = {"rope_type": "default", "rope_theta": scope.config["rope_theta"]}
        config = Gemma3Config(
            vision_config=SiglipVisionConfig(
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=2,
                image_size=_SIDE,
                patch_size=_PATCH,
            ),
            text_config=Gemma3TextConfig(
                **TEXT_SIZES,
                tie_word_embeddings=False,
                query_pre_attn_scalar=16,
                sliding_window=64,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                rope_parameters={"sliding_attention": dict(rope), "full_attention": dict(rope)},
            ),
            mm_tokens_per_image=_TOKENS,
            tie_word_embeddings=False,  # with random weights, a head tied to the embedding would repeat the last token
            image_token_index=PLACEHOLDER["image"],
            attn_implementation=attention,
        )
        return Gemma3ForConditionalGeneration(config)

    def inputs(self, request: LogicalRequest, pixels: list[torch.Tensor]) -> dict[str, Any]:
        """As :meth:`TinyModel.inputs`: without token types, pictures would silently be attended to causally."""
        types = {"token_type_ids": placeholders(request, "image").long()}
        return {**types, "pixel_values": torch.cat(pixels)} if pixels else types

    def continuation(self, tokens: int) -> dict[str, Any]:
        """As :meth:`TinyModel.continuation`."""
        return {"token_type_ids": torch.zeros(1, tokens, dtype=torch.long)}
