"""``mmkey bench``: what it prints, not how long anything took."""

from __future__ import annotations

import hashlib
import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

import mmkey as library
from command_line import complaint, mmkey_json
from mmkey.__main__ import main
from mmkey.study.bench import peers, run, workloads
from mmkey.study.bench.run import LOADS
from mmkey.study.bench.table import microseconds, print_tables
from mmkey.study.bench.timing import take_turns
from mmkey.study.bench.workloads import Load


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All that the command measures, in as little time as it takes."""
    return mmkey_json("bench", "--seconds", 0.01, cwd=tmp_path_factory.mktemp("bench"))


@pytest.fixture
def quick(monkeypatch):
    """Makes this process measure small things alone."""
    for name, value in {"MESSAGES": (96,), "BATCHES": ((10, 96),), "CHAINS": (512,), "LOADS": LOADS[:1]}.items():
        monkeypatch.setattr(run, name, value)


def shown(found, width=80):
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    print_tables(found, console)
    return console.file.getvalue()


# ---------------------------------------------------------------- what is found


def test_every_strategy_and_algorithm_is_measured_on_every_load(found):
    media = [(n, s, f) for n in (1, 8) for s in ("336x336", "1920x1080") for f in ("encoded", "array")]
    expected = [(t, 0, None, None) for t in (512, 8192, 131_072)] + [(8192, *m) for m in media]
    for algorithm in ("sha256", "blake3"):
        of = [row for row in found["requests"] if row["algorithm"] == algorithm]
        assert [(r["tokens"], r["pictures"], r["size"], r["form"]) for r in of] == expected
        assert all(set(r["seconds"]) == {"A", "B", "C", "usual"} and set(r["speedup"]) == {"usual"} for r in of)


def test_digests_stand_beside_hashlib_and_blake3(found):
    for group in ("digests", "batches"):
        for row in found[group]:
            peer = {"sha256": "hashlib", "blake3": "blake3"}[row["algorithm"]]
            assert set(row["seconds"]) == {"mmkey", peer}
            assert set(row["speedup"]) == {peer}
    assert {row["bytes"] for row in found["digests"]} == {96, 1024, 336 * 336 * 3, 1920 * 1080 * 3}


def test_block_keys_stand_beside_pickled_and_cbor_tuples(found):
    assert {(row["algorithm"], row["tokens"]) for row in found["block_keys"]} == {
        (algorithm, tokens) for algorithm in ("sha256", "blake3") for tokens in (8192, 131_072)
    }
    assert all(set(row["seconds"]) == {"mmkey", "pickle", "cbor2"} for row in found["block_keys"])


def test_times_and_ratios_are_positive(found):
    assert list(found) == ["machine", "kernels", "digests", "batches", "block_keys", "requests"]
    for group in ("digests", "batches", "block_keys", "requests"):
        for row in found[group]:
            assert all(time > 0 for time in (*row["seconds"].values(), *row["speedup"].values()))
    assert found["kernels"] == json.loads(json.dumps(library.kernels()))


def test_each_row_counts_as_a_step(quick):
    steps = []
    run.bench(0.01, lambda: steps.append(None))
    assert len(steps) == len(run.rows()) == 2 * 4


def test_a_peer_that_is_not_installed_is_left_out_and_named(monkeypatch, quick, found):
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    without = run.bench(0.01)
    assert without["machine"]["peers"] == {"blake3": False, "cbor2": False}
    assert all(set(row["seconds"]) == {"mmkey"} for row in without["digests"] if row["algorithm"] == "blake3")
    assert all(row["speedup"] == {} for row in without["requests"] if row["algorithm"] == "blake3")
    assert all("cbor2" not in row["seconds"] for row in without["block_keys"])
    text = shown(without)
    assert "blake3 is not installed: pip install blake3" in text
    assert "is not installed" not in shown(found)


# ---------------------------------------------------------------- the tables


def test_the_tables_fit_80_columns_and_name_kernels_and_strategies(found):
    text = shown(found)
    tables = [line for line in text.splitlines() if re.search(r"\d$|, us", line)]
    assert tables
    assert max(map(len, tables)) <= 80
    for choices in library.kernels().values():
        for operation, choice in choices.items():
            assert f"{operation} {choice['kernel']}" in text
    for heading in ("sha256 of", "blake3 of", "block keys, sha256", "a request, blake3", "A, us", "B, us", "C, us"):
        assert heading in text
    assert len(re.findall(r"^8,192 tokens, 8 1920x1080 arr", text, re.MULTILINE)) == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.134e-7, "0.21"), (1.23e-6, "1.23"), (1.26e-5, "12.6"), (3.4567e-4, "346"), (0.0379, "37,900")],
)
def test_times_show_three_digits(seconds, text):
    assert microseconds(seconds) == text


# ---------------------------------------------------------------- the command


def test_the_command_prints_tables_and_draws_no_progress_where_there_is_no_terminal(quick, capsys):
    assert main(["bench", "--seconds", "0.01"]) == 0
    printed = capsys.readouterr()
    assert "a request, sha256" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "3601"])
def test_a_time_that_cannot_be_is_refused(tmp_path, seconds):
    assert "--seconds" in complaint("bench", f"--seconds={seconds}", cwd=tmp_path)


def test_a_time_that_is_no_number_is_refused(tmp_path):
    assert "--seconds" in complaint("bench", "--seconds", "soon", cwd=tmp_path)


# ---------------------------------------------------------------- that the right thing is measured


@pytest.mark.parametrize("load", [Load(512), Load(512, 8, "336x336", "encoded"), Load(512, 1, "1920x1080", "array")])
def test_a_request_is_hashed_from_scratch_each_time(load):
    prompt = workloads.prompt(load)
    first, second = prompt.request(), prompt.request()
    assert first == second
    for a, b in zip(first.items, second.items, strict=True):
        assert a.content is not b.content
    for strategy in "ABC":
        key, blocks = workloads.serve(workloads.engine(strategy), prompt)
        assert len(key) == 32
        assert blocks.shape == (load.tokens // 16, 32)


def test_pictures_differ_from_one_another_and_decode_to_their_size():
    from PIL import Image

    for size, shape in workloads.SIZES.items():
        assert workloads.draw(size, 0).shape == (*shape, 3)
        assert Image.open(io.BytesIO(workloads.encode(size, 0))).size == shape[::-1]
    assert not np.array_equal(workloads.draw("336x336", 0), workloads.draw("336x336", 1))


def test_the_ready_messages_of_the_hashlib_loop_are_those_of_the_block_keys():
    prompt = workloads.prompt(Load(8192))
    engine = library.KeyEngine("A", block_size=16)
    messages = peers.ready_messages(prompt.token_ids, engine.root)
    digests = [hashlib.sha256(message).digest() for message in messages]
    assert digests == [key.tobytes() for key in engine.block_keys(prompt.request())]
    assert peers.hash_each(messages, hashlib.sha256) == digests[-1]


def test_the_usual_way_sees_pictures_and_the_whole_prefix():
    plain = peers.usual(workloads.prompt(Load(512)), hashlib.sha256)
    with_picture = peers.usual(workloads.prompt(Load(512, 1)), hashlib.sha256)
    shared = [a == b for a, b in zip(plain, with_picture, strict=True)]
    begin = workloads.prompt(Load(512, 1)).layout[0][0] // 16
    assert shared == [True] * begin + [False] * (32 - begin)


def test_turns_are_taken_and_the_clock_decides():
    order = []
    now = iter(range(10**9))  # each look at the clock is a second later: every case takes one second
    timing = take_turns(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, clock=lambda: float(next(now))
    )
    assert timing.medians() == {"a": 1.0, "b": 1.0}
    assert timing.ratio("a", to="b") == 1.0
    assert order[-6:] == ["a", "b", "a", "b", "a", "b"]


def test_three_rounds_are_taken_however_short_the_time():
    timing = take_turns({"a": lambda: None}, rounds=9, seconds=0)
    assert len(timing.samples["a"]) == 3
