"""Mutations of what a picture is, and of what its processor does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from mmkey.study.base_request import ship, with_palette
from mmkey.study.logical import Pixels
from mmkey.study.mutation import NOWHERE, KvChange, Mutation
from mmkey.study.pictures import decoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from mmkey.study.base_request import Workshop
    from mmkey.study.logical import Media
    from mmkey.study.mutation import Change
    from mmkey.study.recipe import Recipe

FROM_1, FROM_2 = KvChange("picture_1"), KvChange("picture_2")
OTHER_PIXELS = "the vision encoder sees other pixels"
SAME_PIXELS = "the decoded pixels are the same"
FILE_IS_IDENTITY = "a file's identity is its bytes: the key is made without decoding"
NOTHING_TO_DO = "an option in `processing` is part of the key; one that changes nothing is the caller's to leave out"


def _file(name: str, draw: Callable[[], Image.Image], **options: Any) -> Change:
    """The first picture in another file."""

    def change(recipe: Recipe, workshop: Workshop) -> Recipe:
        shot = recipe.part("picture_1")
        return recipe.with_part("picture_1", replace(shot, media=workshop.save(name, draw(), **options)))

    return change


def _pixels(make: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Change:
    """The second picture's array, made into another."""

    def change(recipe: Recipe, _: Workshop) -> Recipe:
        shot = recipe.part("picture_2")
        media: Media = Pixels(make(shot.media.array), shot.media.name)
        return recipe.with_part("picture_2", replace(shot, media=media))

    return change


def _option(part: str, name: str, value: object) -> Change:
    return lambda recipe, _: recipe.with_part(part, recipe.part(part).with_option(name, value))


def _same_bytes(recipe: Recipe, workshop: Workshop) -> Recipe:
    shot = recipe.part("picture_1")
    return recipe.with_part("picture_1", replace(shot, media=workshop.copy("copy.png", shot.media)))


def _decoded(recipe: Recipe, _: Workshop) -> Recipe:
    shot = recipe.part("picture_1")
    return recipe.with_part("picture_1", replace(shot, media=Pixels(decoded(shot.media.path), "ship, decoded")))


def _strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = np.zeros((array.shape[0], 2 * array.shape[1], 3), array.dtype)
    wide[:, ::2] = array
    view: np.ndarray[Any, Any] = wide[:, ::2]
    return view


def _one_pixel(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    changed: np.ndarray[Any, Any] = array.copy()
    changed[56, 84, 0] ^= 0x80
    return changed


def _opaque(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.dstack([array, np.full(array.shape[:2], 255, array.dtype)])


def _reordered_palette() -> Image.Image:
    """The same picture with its palette, and with it the indices, in another order."""
    return ship().remap_palette([5, 4, 3, 2, 1, 0])


def _png_text() -> PngInfo:
    info = PngInfo()
    info.add_text("Comment", "taken on holiday")
    return info


def _exif(tag: int, value: object) -> Image.Exif:
    exif = Image.Exif()
    exif[tag] = value
    return exif


def _on_white() -> Image.Image:
    canvas = Image.new("RGBA", ship().size, "white")
    canvas.alpha_composite(ship().convert("RGBA"))
    return canvas.convert("RGB")


def _is(name: str, about: str, change: Change, kv: KvChange, why: str, missed: str = "", **models: Any) -> Mutation:
    return Mutation(name, "picture", about, change, kv, why, missed, models)


CONTAINER = tuple(
    replace(mutation, group="container")
    for mutation in (
        _is("same_bytes_other_file", "the picture's bytes, read from another file", _same_bytes, NOWHERE, SAME_PIXELS),
        _is("memory_order", "the array in Fortran order", _pixels(np.asfortranarray), NOWHERE, SAME_PIXELS),
        _is("strided_view", "the array as a view with gaps", _pixels(_strided), NOWHERE, SAME_PIXELS),
    )
)

PICTURE = (
    _is("another_picture", "other pixels of the same size", _pixels(lambda a: 255 - a), FROM_2, OTHER_PIXELS),
    _is("one_pixel", "one channel of one pixel", _pixels(_one_pixel), FROM_2, OTHER_PIXELS),
    _is("swapped_channels", "BGR for RGB", _pixels(lambda a: a[..., ::-1]), FROM_2, OTHER_PIXELS),
    _is(
        "transposed_same_bytes",
        "112x168 pixels as 168x112, the bytes the same, as many tokens",
        _pixels(lambda a: a.reshape(168, 112, 3)),
        FROM_2,
        "rows of another length are another picture, and the grid is transposed",
    ),
    _is(
        "wider_dtype",
        "the pixels as int16, their values the same",
        _pixels(lambda a: a.astype(np.int16)),
        NOWHERE,
        "the processor reads the same values",
        "an array's dtype is part of what it is: float32 and its int32 view have equal bytes",
    ),
    _is(
        "opaque_alpha",
        "a fourth channel, opaque everywhere",
        _pixels(_opaque),
        NOWHERE,
        "opaque pixels hide the background",
        "an array's shape is part of what it is; it is not decoded or converted first",
    ),
    _is(
        "mirrored",
        "the picture from right to left",
        _file("mirrored.png", lambda: ship().transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
        FROM_1,
        OTHER_PIXELS,
    ),
    _is(
        "palette_entry",
        "equal indices, another colour in the palette",
        _file("palette-entry.png", lambda: with_palette(3, (20, 20, 20, 255))),
        FROM_1,
        OTHER_PIXELS,
    ),
    _is(
        "transparency",
        "the sky less transparent",
        _file("transparency.png", lambda: with_palette(0, (120, 180, 240, 200))),
        FROM_1,
        "another mixture with the background",
    ),
    _is(
        "unseen_colour",
        "another colour where nothing is opaque",
        _file("unseen.png", lambda: with_palette(5, (250, 10, 200, 0))),
        NOWHERE,
        "what is wholly transparent shows the background",
        FILE_IS_IDENTITY,
    ),
    _is(
        "palette_order",
        "another order of the palette and its indices",
        _file("palette-order.png", _reordered_palette),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is(
        "no_palette",
        "RGBA for a palette",
        _file("rgba.png", lambda: ship().convert("RGBA")),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is(
        "png_level",
        "a PNG file without compression",
        _file("level-0.png", ship, compress_level=0),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is(
        "png_comment",
        "a comment in the PNG file",
        _file("comment.png", ship, pnginfo=_png_text()),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is(
        "exif_description",
        "an EXIF tag that turns nothing",
        _file("described.png", ship, exif=_exif(0x010E, "a ship")),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is(
        "exif_orientation",
        "EXIF orientation 6: as many tokens, turned",
        _file("turned.png", ship, exif=_exif(0x0112, 6)),
        FROM_1,
        "a file is turned as its tag says when it is loaded",
    ),
    _is(
        "lossless_webp",
        "the pixels in a lossless WebP file",
        _file("lossless.webp", lambda: ship().convert("RGBA"), lossless=True, exact=True),
        NOWHERE,
        SAME_PIXELS,
        FILE_IS_IDENTITY,
    ),
    _is("jpeg", "the picture on white, as JPEG", _file("ship.jpg", _on_white, quality=90), FROM_1, OTHER_PIXELS),
    _is(
        "smaller_file",
        "the picture at half its size",
        _file("small.png", lambda: ship().convert("RGBA").resize((75, 50))),
        FROM_1,
        "fewer patches, fewer tokens",
    ),
    _is(
        "decoded_pixels",
        "decoded pixels for the file",
        _decoded,
        NOWHERE,
        SAME_PIXELS,
        "the kind of content (file, array, frames, identifier) is part of the key",
    ),
)

_RESIZED = "its processor resizes every picture"
PROCESSING = tuple(
    replace(mutation, group="processing")
    for mutation in (
        _is("resample", "another filter to resize", _option("picture_1", "resample", "bilinear"), FROM_1, OTHER_PIXELS),
        _is(
            "resample_unused",
            "another filter for a picture that is not resized",
            _option("picture_2", "resample", "bilinear"),
            NOWHERE,
            "nothing is resampled",
            NOTHING_TO_DO,
            llava=(FROM_2, _RESIZED),
            gemma3=(FROM_2, _RESIZED),
        ),
        _is("mean", "another mean", _option("picture_1", "image_mean", [0.5, 0.5, 0.5]), FROM_1, OTHER_PIXELS),
        _is("deviation", "another deviation", _option("picture_1", "image_std", [0.5, 0.5, 0.5]), FROM_1, OTHER_PIXELS),
        _is(
            "rescale_factor",
            "1/255 rounded to four digits",
            _option("picture_1", "rescale_factor", 0.003922),
            FROM_1,
            OTHER_PIXELS,
        ),
        _is(
            "no_normalisation",
            "no mean and deviation",
            _option("picture_1", "do_normalize", False),  # noqa: FBT003
            FROM_1,
            OTHER_PIXELS,
        ),
        _is(
            "background",
            "black behind what is transparent",
            _option("picture_1", "background", "black"),
            FROM_1,
            "another mixture with the background",
        ),
        _is(
            "background_unused",
            "black behind a picture without transparency",
            _option("picture_2", "background", "black"),
            NOWHERE,
            "nothing is transparent",
            NOTHING_TO_DO,
        ),
        _is(
            "max_pixels",
            "a limit that binds: fewer tokens",
            _option("picture_1", "max_pixels", 28 * 28 * 12),
            FROM_1,
            "fewer patches, fewer tokens",
        ),
        _is(
            "max_pixels_unused",
            "another limit that does not bind",
            _option("picture_1", "max_pixels", 28 * 28 * 99),
            NOWHERE,
            "the picture is smaller than either limit",
            NOTHING_TO_DO,
        ),
        _is(
            "resized_larger",
            "resized to 168x168: more tokens",
            _option("picture_1", "resize_to", [168, 168]),
            FROM_1,
            "more patches, more tokens",
        ),
        _is(
            "grid_transposed",
            "resized to 140x112 instead of 112x140: as many tokens",
            _option("picture_1", "resize_to", [140, 112]),
            FROM_1,
            "other patches at other places of the grid",
        ),
        _is(
            "back_end",
            "another implementation of the processor",
            _option("picture_1", "back_end", "torchvision"),
            FROM_1,
            "it rounds otherwise when it resizes",
        ),
        _is(
            "declared_original_size",
            "a larger original declared for the same pixels",
            lambda recipe, _: recipe.with_part(
                "picture_2", replace(recipe.part("picture_2"), original_size=(1120, 1680))
            ),
            NOWHERE,
            "the model takes the resized pixels and their grid alone",
            "a model that cuts tiles or padding by it (LLaVA-OneVision) has other KV",
        ),
    )
)
