"""The sweep on the command line: every combination, in one JSON."""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from mmkey.study import keys
from mmkey.study.stream import Stream
from mmkey.study.sweep import configurations, run_sweep
from mmkey.study.sweep_table import print_sweep

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Within

SWEEP = ("--strategies", "A,C", "--algorithms", "sha256,blake3", "--block-sizes", "16,64", "--capacity", "50,5000")


def test_every_combination_is_run_over_one_stream_and_written_as_it_is_printed(within: Within, tmp_path: Path) -> None:
    found = within.json("study", *SWEEP, "--requests", 200, "--seed", 7, "--out", "out")
    assert found == json.loads((tmp_path / "out/sweep.json").read_text(encoding="utf-8"))
    assert (found["stream"]["requests"], found["stream"]["seed"]) == (200, 7)
    places = [(r["strategy"], r["algorithm"], r["block_size"], r["capacity"]) for r in found["results"]]
    assert len(places) == len(set(places)) == 16
    for result in found["results"]:
        for granularity in ("request", "prefix"):
            counts = result[granularity]
            assert counts["lookups"] == 200
            assert set(counts) <= set(found["definitions"])
            if result["strategy"] == "C":
                assert counts["full_identity_false_hits"] == counts["blocks_wrongly_reused"] == 0
    assert any(r["prefix"]["blocks_wrongly_reused"] for r in found["results"])


def test_a_larger_cache_saves_no_less(within: Within) -> None:
    found = within.json("study", "--strategies", "C", "--capacity", "20,200,2000", "--requests", 300)
    saved = [r["prefix"]["prefill_tokens_saved"] for r in found["results"]]
    assert saved == sorted(saved)
    assert saved[0] < saved[-1]


def test_one_list_alone_starts_a_sweep_over_all_strategies_without_a_bound(within: Within) -> None:
    found = within.json("study", "--block-sizes", "8", "--requests", 20)
    places = [(r["strategy"], r["algorithm"], r["block_size"], r["capacity"]) for r in found["results"]]
    assert places == [(strategy, "sha256", 8, None) for strategy in "ABC"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--strategies", "A,D"), ("--strategies", "'D'", "A, B, C")),
        (("--algorithms", "md5"), ("--algorithms", "'md5'", "sha256, blake3")),
        (("--block-sizes", "16,0"), ("--block-sizes", "0 is less than 1")),
        (("--block-sizes", "16,"), ("--block-sizes", "''", "whole number")),
        (("--capacity", "1e6"), ("--capacity", "'1e6'", "whole number")),
        (("--capacity", "5", "--requests", "0"), ("--requests", "0 is less than 1")),
        (("--requests", "5"), ("--requests", "--strategies")),
        (("--seed", "5"), ("--seed", "--strategies")),
        (("--strategies", "A", "--images", "."), ("--strategies", "--images")),
    ],
)
def test_what_cannot_be_swept_is_said_in_one_line(
    within: Within, arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    line = within.complaint("study", *arguments)
    assert all(word in line for word in words), line
    assert not (tmp_path / "results").exists()


def test_an_engine_that_looks_at_no_media_fails_the_sweep(within: Within, monkeypatch: pytest.MonkeyPatch) -> None:
    real = keys.make_engine
    monkeypatch.setattr(keys, "make_engine", lambda _, *rest: real("A", *rest))
    done = within.run("study", "--strategies", "C", "--requests", 200)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    results: dict[str, Any] = run_sweep(Stream(50), configurations("ABC", ["blake3"], [16], [None, 10_000_000]), 256)
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None, _environ={})
    print_sweep(results, console)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]
