"""Results that contradict themselves, or parts of two studies side by side, are refused: no page shows a false PASS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mmkey.study.report import make_pages, read_results
from report_data import edit, let_models_judge

if TYPE_CHECKING:
    from command_line import Within


OPINION = {"kv_changes": True, "kv_changes_from": None, "verdict": "safe_miss", "right": True}


def case(summary: Any, scenario: int) -> Any:
    return summary[scenario]["cases"][0]


def of(scenario: int, granularity: str, strategy: str, **values: Any) -> Any:
    return lambda summary: summary[scenario][granularity][strategy].update(values)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("summary.json", of(1, "request", "A", false_hits=0), "[1].request.A: 0 + 0 + 0 verdicts, of 1 lookups"),
        ("summary.json", of(1, "request", "A", lookups=2), "0 + 1 + 0 verdicts, of 2 lookups"),
        ("summary.json", of(1, "request", "A", verdict="safe_miss"), "verdict is safe_miss, and the counts say false"),
        ("summary.json", of(1, "prefix", "C", full_identity_verdict="true_hit"), "full_identity_verdict is true_hit"),
        ("summary.json", of(1, "request", "C", unsafe=True), "unsafe is true, and the false hits by either standard"),
        ("summary.json", of(0, "prefix", "C", blocks_reused=99), "kv_blocks_reused is"),
        ("summary.json", of(0, "prefix", "C", blocks_missed=99), "and 99 missed"),
        ("summary.json", of(0, "request", "C", memory_saved_bytes=1), "C.memory_saved_bytes is not the tokens saved x"),
        ("summary.json", lambda s: s[0]["cases"].append(s[0]["cases"][0]), "A does not count the verdicts of its 2 c"),
        ("summary.json", lambda s: s[0]["cases"].clear(), "A does not count the verdicts of its 0 cases"),
        ("summary.json", lambda s: case(s, 0)["verdicts"]["prefix"].update(B=["safe_miss", "missed_reuse"]),
         "[0].cases[0]: prefix_blocks.B are not what the verdicts safe_miss and missed_reuse say"),
        ("summary.json", lambda s: case(s, 0)["prefix_blocks"]["C"].update(wrong=9_000), "9000 of them wrongly"),
        ("summary.json", lambda s: s[0].update(block_size=13), "full blocks of 13"),
        ("summary.json", lambda s: case(s, 0)["items"]["first"][0]["ranges"].append([10**9, 1]), "tokens 10000"),
        ("summary.json", of(1, "prefix", "C", blocks_reused=21, blocks_wrongly_reused=21), "hits and blocks_reused"),
        ("summary.json", of(1, "request", "C", prefill_tokens_wrongly_reused=261), "tokens wrongly reused are 0"),
        ("summary.json", of(1, "prefix", "A", blocks_wrongly_reused=0, kv_blocks_reused=21), "are 1 and 0: both"),
        ("summary.json", of(1, "prefix", "C", blocks=999), "prefix.C.blocks is 999, and 21 in its cases"),
        ("summary.json", of(0, "request", "C", prefill_tokens_saved=262, memory_saved_bytes=262 * 256),
         "[0]: request.C.prefill_tokens_saved is 262, and 261 in its cases"),
        ("summary.json", of(0, "request", "C", prefill_tokens_saved=10**19), "Input should be less than 9223372036854"),
        ("summary.json", lambda s: case(s, 1)["prefix_blocks"]["C"].update(reused=21, wrong=21),
         "[1].cases[0]: prefix_blocks.C are not what the verdicts safe_miss and safe_miss say"),
        ("summary.json", lambda s: case(s, 1)["differences"].clear(), "[1].cases[0]: a false hit, and no difference"),
        ("summary.json", lambda s: case(s, 1)["differences"].append("items[1].media"), "names nothing of these"),
        ("summary.json", lambda s: case(s, 1)["differences"].append("token_ids[262]"), "names nothing of these"),
        ("summary.json", lambda s: case(s, 1)["differences"].append("moon.phase"), "names nothing of these"),
        ("summary.json", lambda s: s[3]["variants"][0].update(variants=[{**s[3]["variants"][0], "scenario": "deeper"}]),
         "[3]: a variant of a variant"),
        ("summary.json", lambda s: s[0].update(about="x" * 5000), "[0].about: String should have at most 4096"),
        ("matrix.json", lambda m: m[0].update(kv_changes=True, differences=["x"]), "true, from token None"),
        ("matrix.json", lambda m: m[0].update(kv_changes=True), "the KV changes, and no field differs"),
        ("matrix.json", lambda m: m[0].update(blocks_with_same_kv=10**6), "blocks 1000000 with the same KV"),
        ("matrix.json", lambda m: m[0].update(blocks_with_same_kv=3, blocks_missed=0), "blocks 3 with the same KV"),
        ("sweep.json", lambda w: w["stream"].update(requests="x"), "stream.requests: Input should be a valid integer"),
        ("sweep.json", lambda w: w["stream"].update(requests=7), "20 lookups of a stream of 7"),
        ("sweep.json", lambda w: w["results"][0]["prefix"].update(tokens=1), "results[0].prefix: of 1 tokens "),
        ("sweep.json", lambda w: w["results"][0]["request"].update(hashing_seconds=1e308), "hashing_seconds: Input"),
        ("matrix.json", lambda m: m.pop(7), "is there 0 times for "),
        ("matrix.json", lambda m: m.append(m[7]), "is there 2 times for "),
        ("matrix.json", lambda m: m[7].update(why="another"), "do not say the same of the KV"),
        ("matrix.json", lambda m: m[7].update(oracle={"one": OPINION}), "were not judged by the same models"),
        ("matrix.json", lambda m: m[0].update(right=False), "[0]: true_hit, not right: "),
        ("matrix.json", lambda m: m[0].update(verdict="safe_miss"), "[0]: safe_miss, right: "),
        ("matrix.json", lambda m: m[0].update(blocks=0), "[0]: of 0 blocks "),
        ("sweep.json", lambda w: w["results"].append(w["results"][0]), "'C, sha256, 16, None' is there twice"),
        ("sweep.json", lambda w: w["results"][0]["prefix"].update(true_hits=10**6), "results[0].prefix: 1000000 + "),
    ],
)  # fmt: skip
def test_numbers_that_contradict_each_other_are_not_shown(
    copy: Path, within: Within, name: str, change: Any, says: str
) -> None:
    if name == "sweep.json":
        assert within.run("study", "--strategies", "C", "--block-sizes", 16, "--requests", 20).returncode == 0
        (copy / name).write_bytes(Path("results", name).read_bytes())
    edit(copy / name, change)
    line = within.complaint("report", copy)
    assert f"{name}: damaged: " in line
    assert says in line
    assert not list(copy.glob("*.html"))


def checks(run: Any) -> Any:
    return run["acceptance"]["checks"]


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("run.json", lambda r: r["acceptance"].update(passed=False), "acceptance.passed is not what its checks say"),
        ("run.json", lambda r: checks(r)[0]["false_hits"].update(A=7),
         "checks[0] is 'PASS same_text_different_image, request: false hits A 7, B 0, C 0 of 1'; of summary.json "),
        ("run.json", lambda r: checks(r)[0].update(lookups=9), "C 0 of 9'; of summary.json it is 'PASS"),
        ("run.json", lambda r: checks(r)[0].update(scenario="gone"), "checks[0] is 'PASS gone, request"),
        ("run.json", lambda r: checks(r)[0].update(passed=None), "is 'same_text_different_image: not run"),
        ("run.json", lambda r: checks(r).pop(), "checks[4] is not there; of summary.json it is 'PASS"),
        ("run.json", lambda r: checks(r).append(checks(r)[0]), "it is not there"),
        ("run.json", lambda r: r.update(block_size=16), "block_size is 16, and 12 in summary.json: [0]"),
        ("run.json", lambda r: r.update(algorithm="blake3"), "algorithm is 'blake3', and 'sha256' in summary.json"),
        ("summary.json", lambda s: s.pop(1), "of summary.json it is 'same_text_different_image: not run'"),
        ("summary.json", lambda s: s.pop(), "false hits C 0 of 16'; of summary.json it is"),
        ("matrix_run.json", lambda r: r["checks"][1].update(passed=False), "checks[1] is 'explained failed'; of"),
        ("matrix_run.json", lambda r: r["checks"][0].update(against=["x"]), "checks[0] is 'safe passed for x'; of"),
        ("matrix.json", lambda m: [row.update(oracle={"one": OPINION}) for row in m], "digests name no oracle.json"),
        ("matrix_run.json", lambda r: r["checks"].pop(), "checks[2] is not there; of matrix.json it is 'container"),
        ("matrix_run.json", lambda r: r.update(passed=False), "passed is false, and the checks"),
        ("matrix.json", lambda m: [row.update(by_full="false_hit") for row in m], "it is 'safe failed for adapter, "),
    ],
)  # fmt: skip
def test_a_pass_is_not_shown_over_results_of_another_study(
    copy: Path, within: Within, name: str, change: Any, says: str
) -> None:
    edit(copy / name, change)
    line = within.complaint("report", copy)
    about = {"summary.json": "run.json", "matrix.json": "matrix_run.json"}.get(name, name)
    assert f"{about}: not of these results: " in line
    assert says in line


def test_a_verdict_follows_the_counts_and_not_the_word_of_a_run(copy: Path, within: Within) -> None:
    def serve_wrongly(summary: Any) -> None:
        """B serves another's KV, told alike by all that summary.json says of it."""
        summary[1]["request"]["B"] = summary[1]["request"]["A"]
        summary[1]["cases"][0]["verdicts"]["request"]["B"] = ["false_hit", "false_hit"]

    edit(copy / "summary.json", serve_wrongly)
    line = within.complaint("report", copy)
    assert "checks[0] is 'PASS same_text_different_image, request: false hits A 1, B 0, C 0 of 1'" in line
    edit(copy / "run.json", lambda r: checks(r)[0]["false_hits"].update(B=1))
    line = within.complaint("report", copy)
    assert "it is 'FAIL same_text_different_image, request: false hits A 1, B 1, C 0 of 1'" in line
    edit(copy / "run.json", lambda r: checks(r)[0].update(passed=False))
    assert "acceptance.passed is not what its checks say" in within.complaint("report", copy)
    edit(copy / "run.json", lambda r: r["acceptance"].update(passed=False))
    assert within.run("report", copy).returncode == 0
    assert 'data-passed="false"' in (copy / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("oracle.json", lambda o: o["models"].pop(), "its models are not those of its comparisons"),
        ("oracle.json", lambda o: o["models"].append(o["models"][0]), "its models are not those of its comparisons"),
        ("oracle.json", lambda o: o["comparisons"].clear(), "comparisons: List should have at least 1 item"),
        ("oracle.json", lambda o: o["false_hits"][0].update(model="ghost"), "no model was asked about: 'ghost'"),
        ("oracle.json", lambda o: o["false_hits"][0].update(decoded_tokens_changed=99), "99 of 8 decoded tokens"),
        ("matrix.json", lambda m: m[0]["oracle"]["three"].update(right=True), "[0].oracle.three: false_hit, and right"),
    ],
)  # fmt: skip
def test_what_models_said_does_not_contradict_itself(
    copy: Path, within: Within, name: str, change: Any, says: str
) -> None:
    let_models_judge(copy)
    edit(copy / name, change)
    line = within.complaint("report", copy)
    assert f"{name}: damaged: " in line
    assert says in line


def test_models_that_found_c_wrong_did_not_pass(copy: Path, within: Within) -> None:
    let_models_judge(copy)
    assert within.run("report", copy).returncode == 0
    edit(copy / "oracle.json", lambda oracle: oracle.update(passed=True))
    assert "passed, and a comparison or a false hit of C speaks against it" in within.complaint("report", copy)
    edit(copy / "oracle.json", lambda oracle: [c.update(agrees=True) for c in oracle["comparisons"]])
    assert "oracle.json passed, and matrix.json has a false hit of C by a model" in within.complaint("report", copy)
    edit(copy / "oracle.json", lambda oracle: oracle.update(passed=False))
    edit(copy / "matrix_run.json", lambda run: run.update(passed=True))
    assert "matrix_run.json: not of these results: passed is true" in within.complaint("report", copy)


# ---------------------------------------------------------------- files of one run


def rewrite(path: Path, change: Any) -> None:
    """As a person does it, or another program: no run knows of it."""
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("summary.json", lambda s: s[1]["prefix"]["C"].update(tokens_missed=12)),
        ("summary.json", lambda s: s[0].update(about="another")),
        ("media.json", lambda m: m.popitem()),
        ("same_text_same_image.json", lambda s: s.update(about="another")),
        ("matrix.json", lambda m: m[0].update(differences=["another"])),
    ],
)
def test_a_file_that_was_changed_since_its_run_is_named(copy: Path, within: Within, name: str, change: Any) -> None:
    rewrite(copy / name, change)
    run = "matrix_run.json" if name == "matrix.json" else "run.json"
    line = within.complaint("report", copy)
    assert f"{name}: not what {run} was written with: changed since, or of another run" in line
    assert not list(copy.glob("*.html"))


def test_evidence_of_another_run_is_named(copy: Path, within: Within) -> None:
    (copy / "evidence.txt").write_text("FAIL\n", encoding="utf-8")
    assert "evidence.txt: not what run.json was written with" in within.complaint("report", copy)


def test_a_file_may_be_laid_out_anew(copy: Path) -> None:
    pages = make_pages(read_results(copy))
    for path in copy.glob("*.json"):
        value = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
    assert make_pages(read_results(copy)) == pages


def test_a_run_of_another_matrix_is_refused(copy: Path, within: Within) -> None:
    assert within.run("study", "--matrix", "--no-html", "--out", "other", "--block-size", 16).returncode == 0
    (copy / "matrix_run.json").write_bytes(Path("other/matrix_run.json").read_bytes())
    assert "matrix.json: not what matrix_run.json was written with" in within.complaint("report", copy)


def test_a_file_that_a_run_has_written_and_that_is_gone_is_named(copy: Path) -> None:
    (copy / "same_text_same_image.json").unlink()
    assert read_results(copy).missing == ("same_text_same_image.json",)


def test_what_was_changed_beside_a_new_study_is_left_out_with_its_verdict(within: Within, tmp_path: Path) -> None:
    assert within.run("study").returncode == 0
    rewrite(tmp_path / "results/summary.json", lambda s: s[0].update(about="another"))
    done = within.run("study", "--matrix")
    assert done.returncode == 0
    assert "summary.json: not what run.json was written with" in done.stderr
    assert 'id="acceptance"' not in (tmp_path / "results/index.html").read_text(encoding="utf-8")


def test_an_object_that_says_a_thing_twice_is_refused(copy: Path, within: Within) -> None:
    text = (copy / "run.json").read_text(encoding="utf-8")
    (copy / "run.json").write_text(text.replace('"passed": true', '"passed": false, "passed": true', 1), "utf-8")
    assert "run.json: damaged: 'passed' is there twice in one object" in within.complaint("report", copy)
