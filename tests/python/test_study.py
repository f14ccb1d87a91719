"""The study gives the seven scenarios' verdicts and numbers, written here by hand, with keys of the real engine."""

from __future__ import annotations

import hashlib
import json
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from rich.console import Console

from command_line import Within, mmkey, mmkey_json
from mmkey.__main__ import main
from mmkey.study import keys
from mmkey.study import run as study_run
from mmkey.study.acceptance import accept
from mmkey.study.clips import open_clip, sample_by_stride, sample_to_the_end
from mmkey.study.scenarios import SCENARIOS
from mmkey.study.simulator import Settings
from mmkey.study.sources import DrawnPictures
from mmkey.study.table import print_table

if TYPE_CHECKING:
    from pathlib import Path

HIT, FALSE, MISS = "true_hit", "false_hit", "safe_miss"
# scenario: verdicts of A, B, C by image identity; by full identity; tokens, blocks, bytes saved on a true hit
REQUEST: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[int, int, int]]] = {
    "same_text_same_image": ((HIT, HIT, HIT), (HIT, HIT, HIT), (261, 22, 66_816)),
    "same_text_different_image": ((FALSE, MISS, MISS), (FALSE, MISS, MISS), (0, 0, 0)),
    "same_image_different_question": ((MISS, MISS, MISS), (MISS, MISS, MISS), (0, 0, 0)),
    "same_image_different_resize": ((HIT, HIT, MISS), (FALSE, FALSE, MISS), (0, 0, 0)),
    "multi_image_same_order": ((HIT, HIT, HIT), (HIT, HIT, HIT), (517, 44, 132_352)),
    "multi_image_different_order": ((FALSE, MISS, MISS), (FALSE, MISS, MISS), (0, 0, 0)),
    "same_video_different_frame_sampling": ((FALSE, MISS, MISS), (FALSE, MISS, MISS), (0, 0, 0)),
}
# scenario: full blocks looked up; blocks reused by A, B, C; of these, wrongly. 256 + 5 tokens are 21 full blocks of 12,
# 576 + 5 are 48, 2 x 256 + 5 are 43. Another question leaves the picture's 21 blocks. 256 placeholders
# begin a prompt of 576 alike, so A finds 21 blocks of the smaller picture; B's places hold the lengths and differ.
PREFIX: dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]] = {
    "same_text_same_image": (21, (21, 21, 21), (0, 0, 0)),
    "same_text_different_image": (21, (21, 0, 0), (21, 0, 0)),
    "same_image_different_question": (21, (21, 21, 21), (0, 0, 0)),
    "same_image_different_resize": (48, (21, 0, 0), (21, 0, 0)),
    "multi_image_same_order": (43, (43, 43, 43), (0, 0, 0)),
    "multi_image_different_order": (43, (43, 0, 0), (43, 0, 0)),
    "same_video_different_frame_sampling": (21, (21, 0, 0), (21, 0, 0)),
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one default study, run as a user does."""
    folder = tmp_path_factory.mktemp("study")
    done = mmkey("study", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "PASS"
    assert not re.search(r"[^\x20-\x7e\n]", done.stdout), "piped output is plain text"
    return folder / "results"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_seven_scenarios_are_written_each_to_a_file_and_all_to_the_summary(out: Path) -> None:
    summary = load(out / "summary.json")
    assert [entry["scenario"] for entry in summary] == list(REQUEST)
    for entry in summary:
        assert load(out / f"{entry['scenario']}.json") == entry
    written = {p.name for p in out.iterdir()}
    beside = {"inputs", ".mmkey-results", "summary.json", "run.json", "media.json", "evidence.txt", "index.html"}
    assert written == beside | {f"{name}.{suffix}" for name in REQUEST for suffix in ("json", "html")}


@pytest.mark.parametrize("name", REQUEST)
def test_request_granularity_gives_the_verdicts_and_the_savings_of_the_design(out: Path, name: str) -> None:
    entry = load(out / f"{name}.json")
    by_image, by_full, saved = REQUEST[name]
    assert entry["algorithm"] == "sha256"
    for strategy, image, full in zip("ABC", by_image, by_full, strict=True):
        counts = entry["request"][strategy]
        assert (counts["verdict"], counts["full_identity_verdict"]) == (image, full)
        assert [counts[k] for k in ("true_hits", "false_hits", "safe_misses")] == [
            image == HIT,
            image == FALSE,
            image == MISS,
        ]
        assert counts["unsafe"] == (image == HIT and full == FALSE)
        found = tuple(counts[k] for k in ("prefill_tokens_saved", "kv_blocks_reused", "memory_saved_bytes"))
        assert found == (saved if image == full == HIT else (0, 0, 0))


@pytest.mark.parametrize("name", PREFIX)
def test_prefix_granularity_counts_the_blocks_that_are_reused_and_those_that_are_wrong(out: Path, name: str) -> None:
    entry = load(out / f"{name}.json")
    blocks, reused, wrong = PREFIX[name]
    for strategy, n_reused, n_wrong in zip("ABC", reused, wrong, strict=True):
        counts = entry["prefix"][strategy]
        assert [counts[k] for k in ("blocks", "blocks_reused", "blocks_wrongly_reused")] == [blocks, n_reused, n_wrong]
        assert counts["full_identity_verdict"] == (MISS if not n_reused else FALSE if n_wrong else HIT)
        resize = name == "same_image_different_resize"  # the picture is the same, so by image identity all is well
        assert counts["verdict"] == (MISS if not n_reused else FALSE if n_wrong and not resize else HIT)


def test_a_resize_with_as_many_tokens_makes_both_a_and_b_reuse_every_block_wrongly(out: Path) -> None:
    (variant,) = load(out / "same_image_different_resize.json")["variants"]
    assert variant["scenario"] == "equal_token_count"
    assert variant["cases"][0]["differences"] == ["items[0].resized_size", "items[0].patch_grid"]
    for strategy, wrong in {"A": 21, "B": 21, "C": 0}.items():
        counts = variant["prefix"][strategy]
        assert (counts["blocks"], counts["blocks_reused"], counts["blocks_wrongly_reused"]) == (21, wrong, wrong)
        assert variant["request"][strategy]["full_identity_verdict"] == (FALSE if wrong else MISS)


def test_strategy_a_says_that_it_was_given_media_and_the_others_do_not(out: Path) -> None:
    for entry in load(out / "summary.json"):
        for granularity in ("request", "prefix"):
            reasons = {s: entry[granularity][s]["unsafe_reasons"] for s in "ABC"}
            assert reasons["A"]
            assert reasons["B"] == reasons["C"] == []


def test_evidence_names_both_scenarios_with_their_numbers_and_ends_with_pass(out: Path) -> None:
    text = (out / "evidence.txt").read_text(encoding="utf-8")
    assert text.endswith("\nPASS\n")
    assert "FAIL" not in text
    for name in ("same_text_different_image", "multi_image_different_order"):
        assert f"PASS  {name}, request: false hits A 1, B 0, C 0 of 1\n" in text


def test_the_inputs_are_real_files_that_show_different_pictures(out: Path) -> None:
    inputs = sorted(p for p in (out / "inputs").rglob("*") if p.is_file())
    formats = set()
    for path in inputs:
        with Image.open(path) as image:
            image.load()
            assert image.convert("L").entropy() > 1, f"{path} shows something"
            formats.add(image.format)
    assert formats == {"PNG", "JPEG", "WEBP"}
    assert len({hashlib.sha256(p.read_bytes()).digest() for p in inputs}) == 3
    with Image.open(out / "inputs/same_video_different_frame_sampling/clip.webp") as clip:
        assert clip.n_frames == 60


def test_a_second_study_writes_the_same_bytes_again(out: Path, tmp_path: Path, within: Within) -> None:
    assert within.run("study", "--out", tmp_path / "again").returncode == 0
    for path in out.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(out)).read_bytes() == path.read_bytes(), path.name


def test_run_json_says_with_what_the_study_was_run_and_defines_every_figure(out: Path) -> None:
    about = load(out / "run.json")
    figures = {k for e in load(out / "summary.json") for g in ("request", "prefix") for s in "ABC" for k in e[g][s]}
    assert figures <= set(about["definitions"])
    assert set(about["versions"]) == {"mmkey", "numpy", "Pillow", "python"}
    assert set(about["kernels"]) >= {"sha256", "blake3"}


def test_blake3_and_other_sizes_change_the_numbers_and_not_the_verdicts(tmp_path: Path, within: Within) -> None:
    summary = within.json("study", "--algorithm", "blake3", "--block-size", 16, "--kv-bytes", 1000)
    assert summary == load(tmp_path / "results/summary.json")
    for entry in summary:
        assert entry["algorithm"] == "blake3"
        assert tuple(entry["request"][s]["verdict"] for s in "ABC") == REQUEST[entry["scenario"]][0]
    saved = summary[0]["request"]["C"]
    assert (saved["kv_blocks_reused"], saved["memory_saved_bytes"]) == (17, 261_000)
    assert summary[2]["prefix"]["C"]["blocks_reused"] == 16  # 256 tokens of picture are 16 blocks, the question is none


def test_chosen_scenarios_alone_are_run_in_the_study_s_own_order(tmp_path: Path, within: Within) -> None:
    args = ("--scenario", "multi_image_same_order", "--scenario", "same_text_different_image")
    done = within.run("study", *args)
    assert done.returncode == 0
    summary = load(tmp_path / "results/summary.json")
    assert [e["scenario"] for e in summary] == ["same_text_different_image", "multi_image_same_order"]
    assert "multi_image_different_order: not run" in (tmp_path / "results/evidence.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_table_fits_the_terminal_and_marks_false_hits_without_colour(width: int, tmp_path: Path) -> None:
    clip = study_run.drawn_clip(tmp_path)
    results = study_run.run_study(SCENARIOS, DrawnPictures(tmp_path), clip, Settings())
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None, _environ={})
    print_table(results, console)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    rows = [re.split(r"  +", line.strip()) for line in text.splitlines()]
    assert ["request", "! false_hit", "safe_miss", "safe_miss"] in rows
    assert ["prefix: blocks of 21", "! 21 wrong", "0", "0"] in rows
    assert ["saved: bytes", "66,816", "66,816", "66,816"] in rows or width >= 110
    assert "…" not in text


# ---------------------------------------------------------------- a wrong engine is found out


def test_an_engine_that_looks_at_no_media_fails_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = keys.make_engine
    monkeypatch.setattr(keys, "make_engine", lambda _, *rest: real("A", *rest))
    assert main(["study", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAIL"
    assert (tmp_path / "out/evidence.txt").read_text(encoding="utf-8").endswith("\nFAIL\n")
    summary = {e["scenario"]: e for e in load(tmp_path / "out/summary.json")}
    assert summary["multi_image_different_order"]["request"]["C"]["verdict"] == FALSE
    (variant,) = summary["same_image_different_resize"]["variants"]
    assert variant["prefix"]["C"]["verdict"] == HIT
    assert variant["prefix"]["C"]["full_identity_verdict"] == FALSE
    assert summary["same_image_different_question"]["prefix"]["C"]["blocks_reused"] == 21
    assert summary["same_text_same_image"]["request"]["C"]["verdict"] == HIT


def test_acceptance_of_nothing_judges_nothing_but_says_so() -> None:
    acceptance = accept([])
    assert acceptance.passed
    assert sum("not run" in line for line in acceptance.lines) == 2


# ---------------------------------------------------------------- clips


def test_both_ways_of_sampling_give_the_indices_of_the_processors_they_are_named_after() -> None:
    assert sample_by_stride(300, 20) == list(range(0, 300, 15))
    assert sample_to_the_end(300, 20)[:3] == [0, 16, 31]
    assert sample_to_the_end(300, 20)[-1] == 299
    for total in range(3, 200):
        count = min(8, (total - 1) // 2 * 2)
        stride, to_end = sample_by_stride(total, count), sample_to_the_end(total, count)
        assert stride != to_end
        for indices in (stride, to_end):
            assert indices == sorted(set(indices))
            assert indices[-1] < total


def test_frames_are_decoded_from_the_file_at_their_indices(tmp_path: Path) -> None:
    clip = study_run.drawn_clip(tmp_path)
    assert (clip.total_frames, clip.size, clip.fps) == (60, (120, 160), 20.0)
    with Image.open(tmp_path / "clip.webp") as image:
        for index, frame in zip((0, 7, 59), clip.frames([0, 7, 59]), strict=True):
            image.seek(index)
            assert frame.tobytes() == image.convert("RGB").tobytes()


def test_the_user_s_video_is_read_by_pyav(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="the extra 'video' is not installed")
    import numpy as np

    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for i in range(25):
            image = np.full((48, 64, 3), i * 10, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    clip = open_clip(path, "clip.mp4")
    assert (clip.total_frames, clip.size, clip.fps) == (25, (48, 64), 10.0)
    (entry,) = mmkey_json("study", "--scenario", "same_video_different_frame_sampling", "--video", path, cwd=tmp_path)
    assert tuple(entry["request"][s]["verdict"] for s in "ABC") == (FALSE, MISS, MISS)
    assert entry["cases"][0]["first"] == ["clip.mp4 [stride]"]


def test_a_file_that_is_no_clip_is_named_in_one_line(tmp_path: Path, within: Within) -> None:
    (tmp_path / "text.mp4").write_text("not a video")
    Image.new("RGB", (8, 8)).save(tmp_path / "still.png")
    frames = [Image.new("RGB", (8, 8), (i, 0, 0)) for i in (0, 200)]
    frames[0].save(tmp_path / "two.webp", save_all=True, append_images=frames[1:])
    for name, words in {
        "text.mp4": "not a video",
        "still.png": "still picture",
        "two.webp": "at least 3",
        "absent.mp4": "No such file",
        ".": "directory",
    }.items():
        line = within.complaint("study", "--video", tmp_path / name)
        assert words in line
        assert str(tmp_path / name) in line
    assert not (tmp_path / "results").exists()
