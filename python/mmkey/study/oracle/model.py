"""What the tiny models share: a picture's way through a real processor, a prefill, and decoding on a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from PIL import Image, ImageOps
from transformers import DynamicCache
from transformers.image_utils import PILImageResampling

from mmkey.study.logical import Clip, LogicalItem, Picture
from mmkey.study.oracle.kv import Prefill
from mmkey.study.oracle.weights import DTYPES, fill
from mmkey.study.recipe import DEFAULT_OPTIONS, PLACEHOLDER, Renderer, Shot, modality_of
from mmkey.study.rendering import size_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mmkey.study.logical import LogicalRequest, Scope

VOCABULARY = 512
RESAMPLE = {"bicubic": PILImageResampling.BICUBIC, "bilinear": PILImageResampling.BILINEAR}
TEXT_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


class TinyModel(Renderer):
    """A model of a real architecture and its real image processor, as a renderer of recipes that can also run them.

    A subclass has ``name`` and ``title``, and overrides :meth:`process`, :meth:`build` and :meth:`inputs`.
    """

    name: str
    title: str
    options = frozenset(DEFAULT_OPTIONS) - {"min_pixels", "max_pixels"}
    modalities = frozenset({"image"})

    def __init__(self) -> None:
        self._items: WeakKeyDictionary[Shot, LogicalItem] = WeakKeyDictionary()
        self._pixels: WeakKeyDictionary[LogicalItem, torch.Tensor] = WeakKeyDictionary()
        self._models: dict[str, Any] = {}

    # ---------------------------------------------------------------- a subclass's own

    def process(self, shot: Shot) -> tuple[torch.Tensor, tuple[int, int], tuple[int, int, int], int]:
        """(pixels for the model, (height, width) resized to, patch grid, tokens) by the real image processor."""
        raise NotImplementedError

    def build(self, scope: Scope, attention: str) -> Any:
        """The model, with whatever weights."""
        raise NotImplementedError

    def inputs(self, request: LogicalRequest, pixels: list[torch.Tensor]) -> dict[str, Any]:
        """What the model's forward takes beside the token ids; items are in order of appearance."""
        raise NotImplementedError

    def positions(self, _: Any, request: LogicalRequest, __: Mapping[str, Any]) -> torch.Tensor:
        """The positions of all tokens, [1, tokens]; of M-RoPE [3, 1, tokens]. Given model, request and inputs."""
        return torch.arange(len(request.token_ids))[None]

    def continuation(self, _: int) -> dict[str, Any]:
        """What forward takes beside ids, positions and cache for so many tokens of text."""
        return {}

    # ---------------------------------------------------------------- rendering

    def item(self, shot: Shot) -> LogicalItem:
        """As :meth:`Renderer.item`: what the real processor made of the shot."""
        item = self._items.get(shot)
        if item is None:
            pixels, resized, grid, tokens = self.process(shot)
            processing = {"processor": f"transformers {self.name}", **shot.options}
            original = shot.original_size or size_of(shot)
            item = LogicalItem(
                modality_of(shot), shot.media, original, resized, grid, tokens, shot.sampling, processing
            )
            self._items[shot], self._pixels[item] = item, pixels
        return item

    # ---------------------------------------------------------------- running

    def model(self, scope: Scope) -> Any:
        """The model for a scope, built once: what the scope's fields say is what is computed with."""
        known = self._models.get(repr(scope))
        if known is None:
            with torch.random.fork_rng(devices=()):
                torch.manual_seed(0)  # what fill leaves in part, such as biases, begins the same
                model = self.build(scope, scope.config["attention"]).to(torch.float64).eval()
            fill(model, scope)
            known = self._models[repr(scope)] = model.to(DTYPES[scope.config["kv_dtype"]])
        return known

    def prefill(self, request: LogicalRequest) -> Prefill:
        """Runs a whole request from nothing."""
        model, inputs = self._ready(request)
        cache = DynamicCache()
        with torch.no_grad():
            out = model(
                input_ids=torch.tensor([request.token_ids]),
                position_ids=self.positions(model, request, inputs),
                cache=cache,
                use_cache=True,
                **inputs,
            )
        return Prefill.of(cache, out.logits)

    def decode(
        self, request: LogicalRequest, cached: Prefill, reused: int, steps: int
    ) -> tuple[torch.Tensor, list[int]]:
        """Goes on from ``reused`` cached positions: computes the request's text after them, then ``steps`` tokens.

        Returns the logits that the first of these tokens is chosen from, and the tokens, each the likeliest.
        """
        model, inputs = self._ready(request)
        positions = self.positions(model, request, inputs)
        cache, first = cached.cache(reused, DTYPES[request.scope.config["kv_dtype"]]), None
        ids, places = torch.tensor([request.token_ids[reused:]]), positions[..., reused:]
        chosen: list[int] = []
        with torch.no_grad():
            for _ in range(steps):
                more = self.continuation(ids.shape[1])
                out = model(input_ids=ids, position_ids=places, cache=cache, use_cache=True, **more)
                logits = out.logits[0, -1]
                first = logits.clone() if first is None else first
                chosen.append(int(logits.argmax()))
                ids, places = torch.tensor([chosen[-1:]]), places[..., -1:].max() + torch.ones_like(places[..., -1:])
        if first is None:
            raise ValueError("steps: 0 is less than 1")
        return first, chosen

    def _ready(self, request: LogicalRequest) -> tuple[Any, dict[str, Any]]:
        pixels = [self._pixels[request.items[n]] for n in request.by_appearance()]
        return self.model(request.scope), self.inputs(request, pixels)


# ---------------------------------------------------------------- pictures


def picture_of(shot: Shot) -> Image.Image | NDArray[Any]:
    """A shot as a server hands it to a processor: a file turned as its EXIF tag says, transparency on its background.

    Pixels are handed over as they are, unless they are transparent.
    """
    if isinstance(shot.media, Picture):
        with Image.open(shot.media.path) as image:
            return _on_background(ImageOps.exif_transpose(image), shot.options["background"])
    array: NDArray[Any] = shot.media.array  # type: ignore[attr-defined]
    if array.shape[-1] == 4:
        return _on_background(Image.fromarray(array, "RGBA"), shot.options["background"])
    return np.ascontiguousarray(array)


def frames_of(shot: Shot) -> tuple[NDArray[Any], ...]:
    """The frames of a clip."""
    if not isinstance(shot.media, Clip):
        raise TypeError(f"{shot.name} is no clip")
    return shot.media.frames


def _on_background(image: Image.Image, background: str) -> Image.Image:
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    canvas = Image.new("RGBA", image.size, background)
    canvas.alpha_composite(image.convert("RGBA"))
    return canvas.convert("RGB")


def processor_options(shot: Shot) -> dict[str, Any]:
    """The options that every one of these processors takes."""
    options = {name: shot.options[name] for name in ("rescale_factor", "do_normalize", "image_mean", "image_std")}
    return {**options, "resample": RESAMPLE[shot.options["resample"]], "return_tensors": "pt"}


def placeholders(request: LogicalRequest, modality: str) -> torch.Tensor:
    """Where the placeholders of a modality are: [1, tokens] of bool."""
    return torch.tensor([request.token_ids]) == PLACEHOLDER[modality]
