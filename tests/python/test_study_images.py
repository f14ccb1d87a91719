"""`mmkey study --images`: folders of pictures as users have them, mixed, broken, huge, and what is said about each."""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from command_line import Within, mmkey
from mmkey.study.pictures import UnusablePictureError, look_at
from mmkey.study.processors import NativeProcessor, SquareProcessor, smart_resize
from mmkey.study.report.catalogue import load as load_catalogue

if TYPE_CHECKING:
    from pathlib import Path


def noise(width: int, height: int, seed: int, mode: str = "RGB") -> Image.Image:
    """A picture of its own for each seed."""
    image = Image.linear_gradient("L").resize((width, height)).convert("RGB")
    image.putpixel((seed % width, 0), (seed % 256, 255 - seed % 256, 77))
    return image.convert(mode)


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG header of a size, and next to no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_an_assorted_folder_is_run_and_each_file_left_out_is_named_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    noise(640, 480, 1).save(folder / "a.png")
    noise(800, 600, 2).save(folder / "b.jpg")
    noise(300, 900, 3).save(folder / "c.webp")
    noise(64, 64, 4, "P").save(folder / "palette.PNG")
    noise(90, 60, 5).save(folder / "no suffix", format="JPEG")
    noise(90, 60, 6).save(folder / "[bold]brackets[red].png")
    with open(os.fsencode(folder) + b"/odd\xff\n\x1b[31m.png", "wb") as file:
        noise(90, 60, 7).save(file, format="PNG")
    turned = Image.Exif()
    turned[0x0112] = 6
    noise(400, 200, 8).save(folder / "turned.jpg", exif=turned)
    used = len(list(folder.iterdir()))

    (folder / "truncated.jpg").write_bytes((folder / "b.jpg").read_bytes()[:3000])
    (folder / "empty.png").touch()
    (folder / "notes.txt").write_text("not a picture")
    (folder / "sub").mkdir()
    (folder / "moving.webp").touch()
    noise(9, 9, 1).save(folder / "moving.webp", save_all=True, append_images=[noise(9, 9, 2)])
    noise(9, 9, 1).save(folder / "moving.gif", save_all=True, append_images=[noise(9, 9, 2)])
    (folder / "dangling.jpg").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.png")
    (folder / "bomb.png").write_bytes(png_that_claims(60_000, 60_000))
    (folder / "large.png").write_bytes(png_that_claims(9_500, 9_500))
    (folder / "lying.png").write_bytes(png_that_claims(500, 500))
    noise(4000, 10, 1).save(folder / "thin.png")
    (folder / ".hidden.jpg").write_text("passed over")

    done = mmkey("study", "--images", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "PASS"
    told = dict(line.removeprefix("skipped ").split(": ", 1) for line in done.stderr.splitlines())
    reasons = {
        "truncated.jpg": "broken",
        "empty.png": "empty",
        "notes.txt": "not a JPEG, PNG or WebP",
        "sub": "folder",
        "moving.webp": "2 frames",
        "moving.gif": "not a JPEG, PNG or WebP",
        "dangling.jpg": "link to nothing",
        "pipe.png": "not a regular file",
        "bomb.png": "pixels",
        "large.png": "pixels",
        "lying.png": "broken",
        "thin.png": "10x4000",
    }
    assert set(told) == set(reasons)
    for name, words in reasons.items():
        assert words in told[name]
    about = load(tmp_path / "results/run.json")
    assert {entry["file"]: entry["reason"] for entry in about["skipped"]} == told
    in_chinese = load_catalogue("zh")
    assert {said.text for said in map(in_chinese.sentence, told.values()) if said.lang} == set()

    for entry in load(tmp_path / "results/summary.json"):
        pictures = not entry["scenario"].startswith("same_video")
        assert len(entry["cases"]) == (used if pictures else 1)
        assert entry["request"]["C"]["full_identity_false_hits"] == 0
        assert entry["prefix"]["C"]["blocks_wrongly_reused"] == 0
        if entry["scenario"] in {"same_text_different_image", "multi_image_different_order"}:
            assert [entry["request"][s]["false_hits"] for s in "ABC"] == [used, 0, 0]
            assert entry["request"]["A"]["verdict"] == "false_hit"
        if entry["scenario"] == "same_text_same_image":
            assert [entry["request"][s]["true_hits"] for s in "ABC"] == [used] * 3
            tokens = sum(case["tokens"][1] for case in entry["cases"])
            assert entry["request"]["C"]["prefill_tokens_saved"] == tokens
            assert entry["request"]["C"]["memory_saved_bytes"] == 256 * tokens
            blocks = sum(-(-case["tokens"][1] // 12) for case in entry["cases"])
            assert entry["request"]["C"]["kv_blocks_reused"] == blocks


def test_copies_of_a_picture_are_never_taken_for_another(tmp_path: Path, within: Within) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    same, other = noise(60, 40, 1), noise(60, 40, 2)
    same.save(folder / "1.png")
    same.save(folder / "2.png", compress_level=1)
    same.save(folder / "3.webp", lossless=True)
    same.convert("RGBA").save(folder / "4.png")
    other.save(folder / "5.png")
    assert within.run("study", "--images", folder).returncode == 0
    cases = load(tmp_path / "results/same_text_different_image.json")["cases"]
    assert [(c["first"], c["second"]) for c in cases] == [
        ([f], [s])
        for f, s in zip(["1.png", "2.png", "3.webp", "4.png", "5.png"], ["5.png"] * 4 + ["1.png"], strict=True)
    ]


@pytest.mark.parametrize("names", [[], ["a.png"], ["a.png", "copy.png"]])
def test_too_few_pictures_are_an_error_that_names_the_folder(names: list[str], tmp_path: Path, within: Within) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in names:
        noise(60, 40, 1).save(folder / name)
    line = within.complaint("study", "--images", folder)
    assert str(folder) in line
    assert not (tmp_path / "results").exists()
    if names:  # enough for scenarios of one picture
        args = ("--scenario", "same_text_same_image", "--scenario", "same_image_different_resize")
        assert within.run("study", "--images", folder, *args).returncode == 0


def test_pictures_without_a_full_block_in_common_pass_all_the_same(tmp_path: Path, within: Within) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for seed in range(2):
        noise(28, 28, seed).save(folder / f"{seed}.png")
    done = within.run("study", "--images", folder)
    assert done.stdout.splitlines()[-1] == "PASS"
    summary = {e["scenario"]: e for e in load(tmp_path / "results/summary.json")}
    assert summary["same_text_different_image"]["prefix"]["A"]["blocks"] == 0


# ---------------------------------------------------------------- looking at pictures


def test_size_is_as_a_viewer_sees_it(tmp_path: Path) -> None:
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = tmp_path / f"{orientation}.jpg"
        noise(40, 20, 1).save(path, exif=exif)
        assert look_at(path, "x").size == ((20, 40) if orientation < 5 else (40, 20))


def test_a_picture_turned_by_its_orientation_shows_what_one_turned_by_hand_does(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a viewer turns it a quarter clockwise
    noise(40, 20, 1).save(tmp_path / "tag.png", exif=exif)
    noise(40, 20, 1).rotate(-90, expand=True).save(tmp_path / "hand.png")
    noise(40, 20, 1).save(tmp_path / "neither.png")
    tag, hand, neither = (look_at(tmp_path / f"{n}.png", n) for n in ("tag", "hand", "neither"))
    assert tag.same_as(hand)
    assert not tag.same_as(neither)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_one_changed_pixel_makes_another_picture_in_every_mode(mode: str, tmp_path: Path) -> None:
    image = Image.new(mode, (50, 300))
    image.save(tmp_path / "a.png")
    image.save(tmp_path / "b.png", compress_level=0)
    image.putpixel((49, 299), 1 if len(image.getbands()) == 1 else (0,) * (len(image.getbands()) - 1) + (1,))
    if mode == "P":
        image.putpalette([0, 0, 0, 200, 10, 10])
    image.save(tmp_path / "c.png")
    a, b, c = (look_at(tmp_path / f"{n}.png", n) for n in "abc")
    assert a.same_as(b)
    assert not a.same_as(c)


def test_checksums_that_collide_are_settled_by_the_pixels(tmp_path: Path) -> None:
    from dataclasses import replace

    noise(60, 40, 1).save(tmp_path / "a.png")
    noise(60, 40, 2).save(tmp_path / "b.png")
    a, b = look_at(tmp_path / "a.png", "a"), look_at(tmp_path / "b.png", "b")
    assert not replace(a, checksum=0).same_as(replace(b, checksum=0))


def test_a_file_with_broken_exif_is_a_picture_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    noise(40, 20, 1).save(path, exif=b"Exif\0\0II*\0\xff\xff\xff\xffjunk")
    assert look_at(path, "x").size == (20, 40)


# ---------------------------------------------------------------- processors


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [  # computed by hand from the definition: 28-multiples, area within 3,136 and 1,003,520
        (224, 224, (224, 224)),
        (480, 640, (476, 644)),
        (10, 10, (56, 56)),
        (3000, 4000, (840, 1148)),
        (1, 200, (28, 196)),
    ],
)
def test_sizes_are_those_of_the_native_processor(height: int, width: int, expected: tuple[int, int]) -> None:
    assert smart_resize(height, width, 28, 56 * 56, 1280 * 28 * 28) == expected


def test_a_side_more_than_200_times_the_other_is_refused() -> None:
    with pytest.raises(UnusablePictureError, match="1x201"):
        smart_resize(1, 201, 28, 56 * 56, 1280 * 28 * 28)


@given(st.integers(1, 6000), st.integers(1, 6000), st.sampled_from([SquareProcessor(), NativeProcessor()]))
def test_every_view_has_as_many_tokens_as_its_grid_holds_and_the_other_views_differ(
    height: int, width: int, processor: SquareProcessor | NativeProcessor
) -> None:
    if max(height, width) > 200 * min(height, width):
        return
    merge = getattr(processor, "merge", 1)
    ordinary = processor.view((height, width))
    larger = processor.larger((height, width))
    reshaped = processor.reshaped((height, width))
    for view in (ordinary, larger, reshaped):
        if view is None:
            continue
        assert view.resized_size == (view.patch_grid[1] * 14, view.patch_grid[2] * 14)
        assert view.num_visual_tokens * merge * merge == view.patch_grid[1] * view.patch_grid[2]
        assert view.original_size == (height, width)
    assert larger.num_visual_tokens > ordinary.num_visual_tokens
    if reshaped is not None:
        assert reshaped.num_visual_tokens == ordinary.num_visual_tokens
        assert reshaped.patch_grid != ordinary.patch_grid
