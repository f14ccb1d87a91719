"""A partial or damaged results folder is one line that names the file, or pages that say what is missing."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mmkey.study.report import make_pages, read_results
from report_data import BENCH, Page, edit, let_models_judge

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Within


@pytest.mark.parametrize("name", ["run.json", "media.json", "evidence.txt", "matrix_run.json"])
def test_a_page_says_which_file_is_missing(copy: Path, name: str) -> None:
    (copy / name).unlink()
    pages = make_pages(read_results(copy))
    shown = Page(pages["index.html"]).text + Page(pages["matrix.html"]).text
    assert f"{name} is missing from the results" in shown
    if name == "media.json":
        assert "no picture" in Page(pages["multi_image_same_order.html"]).text


@pytest.mark.parametrize(
    ("name", "of"), [("summary.json", "verdict-table"), ("matrix.json", "matrix"), ("media.json", None)]
)
def test_results_of_which_the_better_part_is_missing_are_not_told_as_never_run(
    copy: Path, name: str, of: str | None
) -> None:
    (copy / name).unlink()
    text = make_pages(read_results(copy))["index.html"]
    assert f"{name} is missing from the results" in Page(text).text
    assert "were not run" not in Page(text).text
    assert of is None or f'id="{of}"' not in text


def test_results_without_blocks_are_shown_without_strips(copy: Path) -> None:
    def older(summary: Any) -> None:
        for entry in summary:
            for case in entry["cases"]:
                for name in ("items", "prefix_blocks", "shared_tokens"):
                    del case[name]

    edit(copy / "summary.json", older)
    page = Page(make_pages(read_results(copy))["multi_image_same_order.html"])
    assert "do not say what stands in which block" in page.text
    assert not any(attrs.get("class") == "strip" for attrs in page.all("div"))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("summary.json", b"[{", "summary.json: damaged: line 1, column 3"),
        ("summary.json", b"", "summary.json: damaged: line 1, column 1"),
        ("summary.json", b"\xff\xfe", "summary.json: damaged: byte 0 is not UTF-8"),
        ("summary.json", b"{}", "summary.json: damaged: the whole: "),
        ("summary.json", b'[{"scenario": "../../x"}]', "[0].scenario: String should match"),
        ("run.json", b'{"acceptance": {"passed": "yes", "checks": []}}', "run.json: damaged: acceptance.passed: "),
        ("media.json", b'{"a": {"thumbnail": "javascript:alert(1)"}}', "media.json: damaged: a.thumbnail: "),
        ("media.json", b'{"a": {"thumbnail": "https://example.org/a.webp"}}', "media.json: damaged: a.thumbnail: "),
        ("matrix.json", b'[{"mutation": "x"}]', "matrix.json: damaged: [0].group: Field required"),
        ("bench.json", b"[" * 100_000, "bench.json: damaged: "),
        ("summary.json", b"[]", "summary.json: damaged: the whole: No scenario in it"),
        ("matrix.json", b"[]", "matrix.json: damaged: the whole: No mutation in it"),
        (
            "sweep.json",
            b'{"stream": {"requests": 1}, "results": []}',
            "damaged: the whole: No combination in it",
        ),
    ],
)
def test_a_damaged_file_is_one_line_that_names_it_and_writes_nothing(
    copy: Path, within: Within, name: str, content: bytes, says: str
) -> None:
    (copy / name).write_bytes(content)
    before = sorted(copy.rglob("*"))
    assert says in within.complaint("report", copy)
    assert sorted(copy.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("summary.json", lambda s: s[2].update(scenario="index"), "[2].scenario: A page of another kind has this name"),
        ("summary.json", lambda s: s[2].update(scenario="matrix"), "[2].scenario: A page of another kind"),
        ("summary.json", lambda s: s.append(s[1]), "the whole: 'same_text_different_image' is there twice"),
        ("summary.json", lambda s: s[1]["request"].pop("A"), "[1].request: Lacks A"),
        ("summary.json", lambda s: s[1]["prefix"].clear(), "[1].prefix: Lacks A, B, C"),
        ("summary.json", lambda s: s[0]["cases"][0]["verdicts"].pop("prefix"), "[0].cases[0].verdicts: Lacks prefix"),
        ("summary.json", lambda s: s[0]["cases"][0]["verdicts"]["request"].pop("B"), "verdicts.request: Lacks B"),
        ("summary.json", lambda s: s[0]["cases"][0]["prefix_blocks"].pop("C"), "cases[0].prefix_blocks: Lacks C"),
        ("run.json", lambda r: r["digests"].pop("summary.json"), "digests: Lacks summary.json"),
        ("matrix_run.json", lambda r: r["digests"].clear(), "digests: Lacks matrix.json"),
        ("run.json", lambda r: r["acceptance"]["checks"].clear(), "acceptance.checks: List should have at least 1"),
    ],
)  # fmt: skip
def test_results_that_would_fill_a_table_or_a_page_wrongly_are_refused(
    copy: Path, within: Within, name: str, change: Any, says: str
) -> None:
    edit(copy / name, change)
    before = sorted(copy.rglob("*"))
    line = within.complaint("report", copy)
    assert f"{name}: damaged: " in line
    assert says in line
    assert sorted(copy.rglob("*")) == before


def test_an_oracle_that_is_missing_is_named(copy: Path) -> None:
    let_models_judge(copy)
    (copy / "oracle.json").unlink()
    text = Page(make_pages(read_results(copy))["matrix.html"]).text
    assert "oracle.json is missing from the results" in text
    assert "FAIL" in text


def test_an_earlier_verdict_that_is_not_of_its_results_is_left_out_aloud(within: Within, tmp_path: Path) -> None:
    assert within.run("study", "--scenario", "same_text_same_image").returncode == 0
    edit(tmp_path / "results/run.json", lambda run: run["acceptance"]["checks"][-1].update(lookups=77))
    done = within.run("study", "--matrix")
    assert done.returncode == 0
    assert "left out of the pages: " in done.stderr
    text = (tmp_path / "results/index.html").read_text(encoding="utf-8")
    assert "run.json beside these results could not be read" in text
    assert 'id="verdict-table"' in text
    assert 'id="acceptance"' not in text


@pytest.mark.parametrize(
    ("put", "says"),
    [
        (lambda path: path.symlink_to("nothing"), "cannot read: No such file or directory"),
        (lambda path: path.symlink_to(path.name), "cannot read: Too many levels of symbolic links"),
        (lambda path: path.mkdir(), "a folder"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["a link to nothing", "a link to itself", "a folder", "a pipe"],
)
@pytest.mark.parametrize("name", ["summary.json", "run.json"])
def test_what_stands_in_the_place_of_a_file_is_said_and_not_waited_for(
    copy: Path, within: Within, name: str, put: Any, says: str
) -> None:
    (copy / name).unlink()
    put(copy / name)
    assert f"{name}: {says}" in within.complaint("report", copy)
    assert not list(copy.glob("*.html"))


def test_a_benchmark_may_come_through_a_pipe(copy: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps(BENCH), encoding="utf-8"))
    writer.start()
    found = read_results(copy, bench=pipe).bench
    writer.join()
    assert found is not None
    assert found.machine.cpu == BENCH["machine"]["cpu"]


@pytest.mark.parametrize("change", [
    lambda b: b["digests"][0].update(bytes=10**400),
    lambda b: b["digests"][0]["seconds"].update(mmkey=1e308),
    lambda b: b["requests"][0]["seconds"].update(A=5e-324),
])  # fmt: skip
def test_a_benchmark_that_no_plot_can_show_is_refused_and_beside_a_study_left_out(
    copy: Path, within: Within, change: Any
) -> None:
    bench = json.loads(json.dumps(BENCH))
    change(bench)
    (copy / "bench.json").write_text(json.dumps(bench), encoding="utf-8")
    assert "bench.json: damaged: " in within.complaint("report", copy)
    done = within.run("study", "--scenario", "same_text_same_image", "--out", copy)
    assert done.returncode == 0
    assert "left out of the pages: " in done.stderr


def test_a_verdict_that_is_none_is_named_with_its_place(copy: Path, within: Within) -> None:
    edit(copy / "summary.json", lambda s: s[3]["prefix"]["B"].update(verdict="perhaps"))
    line = within.complaint("report", copy)
    assert "summary.json: damaged: [3].prefix.B.verdict: " in line
    assert line.endswith("not 'perhaps'")


def test_a_folder_without_results_is_one_line(within: Within, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert "empty: no results in it" in within.complaint("report", "empty")
    assert "DIR: empty; name a folder" in within.complaint("report", "")
    assert "nowhere: no such folder" in within.complaint("report", "nowhere")
    assert "file: not a folder" in within.complaint("report", "file")
    assert not (tmp_path / "nowhere").exists()


def test_bad_options_are_named(copy: Path, within: Within) -> None:
    assert "--lang: 'fr' is none of en, zh" in within.complaint("report", copy, "--lang", "fr")
    assert "--lang: 'fr' is none of en, zh" in within.complaint("study", "--lang", "fr")
    assert "missing.json: cannot read: " in within.complaint("report", copy, "--bench", "missing.json")
