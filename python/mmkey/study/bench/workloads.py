"""Prompts and pictures as serving has them, and the whole work that a key costs a request."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import mmkey

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_SIZE = 16
TOKENS = (512, 8_192, 131_072)
#: (height, width) in pixels
SIZES = {"336x336": (336, 336), "1920x1080": (1080, 1920)}
#: encoded: the bytes of a JPEG file; array: the decoded pixels
FORMS = ("encoded", "array")
STRATEGIES = ("A", "B", "C")
ALGORITHMS = ("sha256", "blake3")

_CELL = 28  # pixels a side of one visual token: patches of 14, merged two by two
_PLACEHOLDER = 151_655
_PROCESSING = {"processor": "Qwen2VLImageProcessor", "version": "4.57", "patch_size": 14, "merge_size": 2}


@dataclass(frozen=True)
class Load:
    """A prompt of some tokens, with some pictures of one size in one form."""

    tokens: int
    pictures: int = 0
    size: str = "336x336"
    form: str = "encoded"

    @property
    def name(self) -> str:
        """What tables and test ids call it."""
        media = f"{self.pictures}x{self.size}-{self.form}" if self.pictures else "text"
        return f"{self.tokens}-{media}"


def every_load(tokens: tuple[int, ...] = TOKENS) -> list[Load]:
    """No picture, one and eight, of both sizes, encoded and as arrays, in prompts of each length."""
    with_pictures = [(n, size, form) for n in (1, 8) for size in SIZES for form in FORMS]
    return [load for t in tokens for load in (Load(t), *(Load(t, *media) for media in with_pictures))]


@dataclass(frozen=True)
class Prompt:
    """What a server holds when a request arrives: ids, and pictures that nobody has hashed yet."""

    token_ids: NDArray[np.uint32]
    token_list: list[int]
    media: list[Any]
    layout: list[tuple[int, int]]
    metadata: dict[str, Any]

    def request(self) -> mmkey.Request:
        """The request with contents that know no digest."""
        items = [mmkey.Image(mmkey.Content.of(picture), **self.metadata) for picture in self.media]
        return mmkey.Request(self.token_ids, items, self.layout)


@cache
def draw(size: str, number: int) -> NDArray[np.uint8]:
    """A picture with the smooth ground and the grain of a photograph: uint8 of shape (height, width, 3)."""
    height, width = SIZES[size]
    random = np.random.default_rng(number)
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([np.sin(x / f + number) + np.cos(y / g) for f, g in ((31, 47), (53, 29), (71, 61))], axis=-1)
    noise = random.normal(0, 6, (height, width, 3))
    return np.clip(128 + 50 * waves + noise, 0, 255).astype(np.uint8)


@cache
def encode(size: str, number: int) -> bytes:
    """The same as the bytes of a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(draw(size, number)).save(file, "JPEG", quality=90)
    return file.getvalue()


@cache
def prompt(load: Load) -> Prompt:
    """The prompt of a load. Each picture fills its visual tokens, or an equal share of a prompt too short for all."""
    height, width = SIZES[load.size]
    rows, columns = round(height / _CELL), round(width / _CELL)
    filled = min(rows * columns, load.tokens // (load.pictures + 1))
    stride = load.tokens // max(load.pictures, 1)
    layout = [(n * stride + (stride - filled) // 2, filled) for n in range(load.pictures)]
    token_ids = np.random.default_rng(load.tokens).integers(0, 150_000, load.tokens, dtype=np.uint32)
    for offset, length in layout:
        token_ids[offset : offset + length] = _PLACEHOLDER
    make = encode if load.form == "encoded" else draw
    metadata = {
        "original_size": (height, width),
        "resized_size": (rows * _CELL, columns * _CELL),
        "patch_grid": (2 * rows, 2 * columns),
        "num_visual_tokens": filled,
        "processing": _PROCESSING,
    }
    media = [make(load.size, number) for number in range(load.pictures)]
    return Prompt(token_ids, token_ids.tolist(), media, layout, metadata)


def engine(strategy: str, algorithm: str = "sha256") -> mmkey.KeyEngine:
    """An engine as a server has one: of a model, with a salt, blocks of 16."""
    scope: dict[str, Any] = {
        "model_id": "Qwen/Qwen2-VL-7B-Instruct",
        "revision": "main",
        "config": {"kv_dtype": "bfloat16"},
    }
    return mmkey.KeyEngine(
        strategy, algorithm=algorithm, block_size=BLOCK_SIZE, salt=bytes(16), **(scope if strategy == "C" else {})
    )


def serve(engine: mmkey.KeyEngine, prompt: Prompt) -> tuple[bytes, NDArray[np.uint8]]:
    """All that a key costs a request: contents, items, request, checks, digests, its key and its block keys."""
    prepared = engine.prepare(prompt.request())
    return engine.key(prepared), engine.block_keys(prepared)
