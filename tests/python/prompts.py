"""Prompts as real models make them: Qwen2-VL's grids and placeholders, for the cases from the field."""

from __future__ import annotations

from typing import Any

import numpy as np

from logical import Plain, PlainItem

VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD, AUDIO_PAD = 151652, 151653, 151655, 151656, 151646


def text(seed: int, length: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, 151_000, length).tolist()


def pixels(seed: int, height: int, width: int) -> tuple[Any, ...]:
    data = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return ("array", "u1", [height, width, 3], {"mode": "RGB"}, data.tobytes())


def jpeg(seed: int) -> tuple[Any, ...]:
    return ("bytes", b"\xff\xd8\xff" + np.random.default_rng(seed).bytes(900))


def qwen_image(content: tuple[Any, ...], height: int, width: int, **fields: Any) -> PlainItem:
    """Qwen2-VL: patches of 14 pixels, 2 x 2 of them merged to a token, sides rounded to multiples of 28."""
    rows, columns = (max(1, round(side / 28)) for side in (height, width))
    own = {
        "modality": "image",
        "original_size": (height, width),
        "resized_size": (rows * 28, columns * 28),
        "patch_grid": (rows * 2, columns * 2),
        "num_visual_tokens": rows * columns,
        "processing": {"name": "Qwen2VLImageProcessor", "merge_size": 2, "do_rescale": True},
    }
    return PlainItem(content, own | fields)


def video(content: tuple[Any, ...], indices: list[int], **sampling: Any) -> PlainItem:
    """A clip of 300 frames of 56 x 56, two frames a temporal patch."""
    steps = max(1, len(indices) // 2)
    return PlainItem(
        content,
        {
            "modality": "video",
            "original_size": (56, 56),
            "resized_size": (56, 56),
            "patch_grid": (steps, 4, 4),
            "num_visual_tokens": 4 * steps,
            "sampling": {"frame_indices": indices, "source_fps": 30, "sampled_fps": 2.0, "total_frames": 300}
            | sampling,
        },
    )


def audio(content: tuple[Any, ...], tokens: int = 25, **processing: Any) -> PlainItem:
    return PlainItem(content, {"modality": "audio", "num_visual_tokens": tokens, "processing": processing})


def prompt(*parts: Any, **request: Any) -> Plain:
    """Lists of ids as they are; an item as its placeholders between start and end marks."""
    ids: list[int] = []
    items, layout = [], []
    pads = {"image": IMAGE_PAD, "video": VIDEO_PAD, "audio": AUDIO_PAD, "embeds": 0}
    for part in parts:
        if isinstance(part, PlainItem):
            count = part.fields["num_visual_tokens"]
            ids.append(VISION_START)
            layout.append((len(ids), count))
            ids += [pads[part.fields["modality"]]] * count + [VISION_END]
            items.append(part)
        else:
            ids += part
    return Plain(ids, items, layout, None, **request)


def first_difference(a: list[bytes], b: list[bytes]) -> int:
    """Blocks that two chains share; past the first that differs all must, or a cache would mix them."""
    shared = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert not set(a[shared:]) & set(b[shared:])
    return shared
