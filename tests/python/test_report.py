"""The report is made of the JSON alone, says what is missing, escapes what it shows, and speaks two languages whole."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest

from mmkey.study import report
from mmkey.study.report import make_pages, plots, read_results
from mmkey.study.report.catalogue import LANGUAGES, load
from mmkey.study.report.models import Scenario
from report_data import BENCH, MODELS, SCENARIOS, Page, edit, let_models_judge, seal

if TYPE_CHECKING:
    from command_line import Within

PACKAGE = Path(report.__file__).parent
PREFIX = "data:image/webp;base64,"


# ---------------------------------------------------------------- the files


def test_a_study_writes_an_index_and_a_page_for_each_scenario(out: Path) -> None:
    assert {p.name for p in out.glob("*.html")} == {"index.html", "matrix.html", *(f"{s}.html" for s in SCENARIOS)}


def test_no_html_leaves_the_pages_out_and_nothing_else(out: Path, within: Within, tmp_path: Path) -> None:
    assert within.run("study", "--no-html").returncode == 0
    assert within.run("study", "--matrix", "--no-html").returncode == 0
    left = {p.name for p in out.iterdir()} - {p.name for p in (tmp_path / "results").iterdir()}
    assert left == {p.name for p in out.glob("*.html")}


def test_report_makes_the_same_pages_from_the_json_alone(out: Path, copy: Path, within: Within) -> None:
    made = within.json("report", copy)
    assert {Path(entry["page"]).name for entry in made} == {p.name for p in out.glob("*.html")}
    for path in out.glob("*.html"):
        assert (copy / path.name).read_bytes() == path.read_bytes()


def test_a_later_run_into_the_same_folder_keeps_the_earlier_ones_on_the_index(within: Within, tmp_path: Path) -> None:
    assert within.run("study", "--matrix").returncode == 0
    alone = (tmp_path / "results/index.html").read_text(encoding="utf-8")
    assert 'id="verdict-table"' not in alone
    assert "summary.json is not among these results" in alone
    assert within.run("study", "--scenario", "same_text_same_image").returncode == 0
    both = (tmp_path / "results/index.html").read_text(encoding="utf-8")
    assert 'id="verdict-table"' in both
    assert 'href="matrix.html"' in both


def test_a_later_run_takes_away_the_pages_of_scenarios_that_it_did_not_run(within: Within, tmp_path: Path) -> None:
    out = tmp_path / "results"
    for name in ("same_text_same_image", "same_text_different_image"):
        assert within.run("study", "--scenario", name).returncode == 0
        (out / "notes.html").write_text("<p>the user's own</p>", encoding="utf-8")
        pages = {path.name for path in out.glob("*.html")}
        assert pages == {"index.html", f"{name}.html", "notes.html"}
    assert within.run("study", "--no-html", "--scenario", name).returncode == 0
    assert {path.name for path in out.glob("*.html")} == {"notes.html"}
    assert within.run("report", "results").returncode == 0
    assert {path.name for path in out.glob("*.html")} == pages
    edit(out / "summary.json", lambda summary: summary[0].update(scenario="another_one"))
    (out / "run.json").unlink()  # it would tell of the scenario that is no longer there
    assert within.run("report", "results").returncode == 0
    assert {path.name for path in out.glob("*.html")} == {"index.html", "another_one.html", "notes.html"}


def test_a_damaged_file_of_an_earlier_run_is_left_out_aloud(within: Within, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/matrix.json").write_text('[{"mutation": 7}]', encoding="utf-8")
    done = within.run("study", "--scenario", "same_text_same_image")
    assert done.returncode == 0
    assert "left out of the pages: " in done.stderr
    index = Page((tmp_path / "results/index.html").read_text(encoding="utf-8"))
    assert "matrix.json beside these results could not be read" in index.text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_is_well_formed_and_needs_nothing_from_elsewhere(copy: Path, lang: str) -> None:
    (copy / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
    pages = make_pages(read_results(copy), lang)
    for name, text in pages.items():
        page = Page(text)
        assert page.all("html") == [{"lang": {"en": "en", "zh": "zh-CN"}[lang]}]
        assert len(page.all("script")) == 1
        for _, attrs in page.elements:
            assert not any(key.startswith("on") for key in attrs)
            for key in ("src", "href", "xlink:href", "action", "data"):
                target = attrs.get(key) or "#"
                assert target.startswith(("#", "data:image/webp;base64,")) or target in pages, (name, attrs)
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids)), name


# ---------------------------------------------------------------- real models


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_model_s_verdict_stands_at_its_place_in_every_cell(copy: Path, lang: str) -> None:
    rows = let_models_judge(copy)
    text = make_pages(read_results(copy), lang)["matrix.html"]
    legend = text[: text.index('<table class="sortable')]
    order = re.findall(r"Model (?:One|Three|&lt;b&gt;Two)", legend)
    assert sorted(order) == ["Model &lt;b&gt;Two", "Model One", "Model Three"]
    cells = re.findall(r'<span class="models"><span aria-hidden="true">(.*?)</span><span class="hide">(.*?)</td>', text)
    assert len(cells) == len(rows)
    clips = 0
    for seen, said in cells:
        marks = dict(zip(order, re.findall(r">(.)<", seen + "<"), strict=True))
        assert marks["Model Three"] == "✗"
        clips += marks["Model &lt;b&gt;Two"] == "·"
        assert marks["Model &lt;b&gt;Two"] in ("·", marks["Model One"])
        assert [name for name in order if name in said] == order
    assert clips == sum(row["group"] == "video" for row in rows)
    shown = Page(text).text
    assert all(title in shown for title in MODELS.values())
    assert load(lang)("decoded", model=MODELS["two"], strategies="A, B", changed=5, tokens=8) in shown
    assert "torch 2.0" in shown


def test_an_oracle_of_an_earlier_run_is_not_shown_with_a_matrix_that_no_model_judged(copy: Path) -> None:
    of_no_model = {name: (copy / name).read_bytes() for name in ("matrix.json", "matrix_run.json")}
    let_models_judge(copy)
    for name, content in of_no_model.items():
        (copy / name).write_bytes(content)
    text = Page(make_pages(read_results(copy))["matrix.html"]).text
    assert "No real model judged this run" in text
    assert "Model One" not in text


# ---------------------------------------------------------------- escaping


HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)> \" ' {{ 7*7 }} \u202e \x00 \ud800 &amp;"


def test_text_from_outside_stays_text_wherever_it_is_shown(copy: Path) -> None:
    def spoil(value: Any) -> Any:
        """Every free text of the results."""
        if isinstance(value, dict):
            return {key: spoil_under(key, v) for key, v in value.items()}
        if isinstance(value, list):
            return [spoil(v) for v in value]
        return HOSTILE.replace("\ud800", "") if isinstance(value, str) and value not in WORDS else value

    def spoil_under(key: str, value: Any) -> Any:
        if key == "mutation":  # mutations are told apart by their names
            return f"{spoil(value)} {value}"
        return value if key in KEPT else spoil(value)

    for name in ("summary.json", "run.json", "matrix.json", "matrix_run.json"):
        value = spoil(json.loads((copy / name).read_text(encoding="utf-8")))
        (copy / name).write_text(json.dumps(value), encoding="utf-8")
    seal(copy)
    (copy / "bench.json").write_text(json.dumps(spoil(BENCH)), encoding="utf-8")
    (copy / "media.json").unlink()
    for lang in LANGUAGES:
        for name, text in make_pages(read_results(copy), lang).items():
            page = Page(text)
            assert len(page.all("script")) == 1, name
            assert page.all("img") == []
            assert "{{ 7*7 }}" in page.text
            assert not re.search(r"[\x00-\x08\u202e]", text)


KEPT = {
    "scenario", "verdict", "full_identity_verdict", "by_image", "by_full", "granularity", "strategy", "verdicts",
    "check", "differences",
}  # fmt: skip
WORDS = {"A", "B", "C", "request", "prefix", "true_hit", "false_hit", "safe_miss", "missed_reuse"}


def test_a_study_of_five_hundred_pictures_with_long_names_stays_small(copy: Path) -> None:
    random.seed(5)
    media = {}

    def grow(summary: Any) -> None:
        for entry in summary:
            for part in (entry, *entry.get("variants", ())):
                (case,) = part["cases"]
                part["request"], part["prefix"] = (times_500(part[g]) for g in ("request", "prefix"))
                part["cases"] = []
                for n in range(500):
                    name = f"{n:03} " + "&<" * 60 + ".jpg"
                    media[name] = {"thumbnail": PREFIX + base64.b64encode(random.randbytes(3000)).decode()}
                    items = {k: [{**item, "name": name} for item in v] for k, v in case["items"].items()}
                    names = {k: [name] * len(case[k]) for k in ("first", "second")}
                    part["cases"].append({**case, **names, "items": items})

    def times_500(counts: Any) -> Any:
        if isinstance(counts, dict):
            return {name: times_500(count) for name, count in counts.items()}
        return counts * 500 if type(counts) is int else counts

    edit(copy / "summary.json", grow)
    edit(copy / "run.json", lambda run: run["acceptance"].update(checks=[*map(times_500, run["acceptance"]["checks"])]))
    (copy / "media.json").write_text(json.dumps(media), encoding="utf-8")
    seal(copy)
    for name, text in make_pages(read_results(copy)).items():
        assert len(text.encode()) < 2_000_000, name
        if name in {f"{s}.html" for s in SCENARIOS}:
            page = Page(text)
            assert re.search(r"Strips of \d+ of 500 cases are drawn", page.text)
            rows = len(re.findall(r'<th role="rowheader" scope="row">\d+</th>', text))
            assert rows >= 100
            told = re.findall(r"(\d+) of 500 cases are listed", page.text)
            assert told == ([] if rows == 500 else [str(rows)]) or "variant" in text.lower()
            assert "some pictures are shown by name alone" in page.text


# ---------------------------------------------------------------- what keys cost


def test_without_matplotlib_the_numbers_stand_in_tables(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
    drawn = Page(make_pages(read_results(copy))["index.html"])
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    told = Page(make_pages(read_results(copy))["index.html"])
    for page in (drawn, told):
        assert "A <b>CPU</b> & more" in page.text
        assert "sha256 stream shani" in page.text
        assert "338,688" in page.text
        assert "439 ns" not in page.text
        assert "339 µs" in page.text  # 338,688 x 1 ns + 100 ns
    assert "mmkey[report]" in told.text
    assert "mmkey[report]" not in drawn.text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_plots_are_the_same_bytes_each_time_and_take_the_colours_of_the_page(copy: Path, lang: str) -> None:
    (copy / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
    first, second = (make_pages(read_results(copy), lang)["index.html"] for _ in range(2))
    assert first == second
    drawn = "".join(re.findall(r"<svg xmlns:xlink.*?</svg>", first, re.DOTALL))
    assert "var(--ink)" in drawn
    assert not re.search(r"#0[1-6]0[1-6]0[1-6]", drawn)


# ---------------------------------------------------------------- languages


def words(lang: str) -> dict[str, str]:
    return json.loads((PACKAGE / "languages" / f"{lang}.json").read_text(encoding="utf-8"))


def braces(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_words_with_the_same_places_to_fill() -> None:
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert text.strip()
        assert chinese[key].strip()
        assert braces(text) == braces(chinese[key]), key
        assert text.count("#") == chinese[key].count("#"), key


def test_chinese_words_are_chinese() -> None:
    same = {key for key, text in words("en").items() if words("zh")[key] == text}
    assert same == set()
    for key, text in words("zh").items():
        assert re.search(r"[\u4e00-\u9fff]", text) or text == "token", key


def test_every_word_is_used_and_every_word_used_is_there() -> None:
    used = set()
    for path in [*PACKAGE.glob("templates/*.j2"), *PACKAGE.glob("*.py")]:
        used |= set(re.findall(r"\b(?:t|say)\(f?[\"']([\w.]+[\w])[\"']", path.read_text(encoding="utf-8")))
    english = set(words("en"))
    assert used <= english, used - english
    # what is put together of a part of its own and of what the results say
    made = [
        "define",
        "diff",
        "field",
        "form",
        "granularity",
        "group",
        "lane",
        "legend",
        "matrix.check",
        "state",
        "strategy",
        "title",
        "verdict",
        "why_kv",
    ]
    rest = {key for key in english - used if not key.startswith(tuple(made))}
    assert rest <= {f"model_kv_{what}" for what in ("from", "changes", "stays")} | {
        "kv_changes",
        "kv_stays",
        "unbounded",
    }


def test_chinese_knows_every_sentence_that_a_study_says() -> None:
    from mmkey.study.mutations import MUTATIONS
    from mmkey.study.scenarios import SCENARIOS as RUN

    said = {s.about for scenario in RUN for s in (scenario, *scenario.variants)}
    said |= {text for m in MUTATIONS for text in (m.about, m.why, m.missed) if text}
    catalogue = load("zh")
    assert {text for text in said if catalogue.sentence(text).lang} == set()
    assert {f"title.{s.name}" for scenario in RUN for s in (scenario, *scenario.variants)} <= words("en").keys()
    assert {f"group.{m.group}" for m in MUTATIONS} <= words("en").keys()


def test_chinese_pages_have_no_english_sentence_but_what_is_marked(copy: Path) -> None:
    for name, text in make_pages(read_results(copy), "zh").items():
        assert 'lang="en"' not in text, name
        said = re.sub(r"<(style|script|code|title)\b.*?</\1>|<dd>mmkey .*?</dd>", " ", text, flags=re.DOTALL)
        said = re.sub(r"<[^>]*>", "\n", said)
        english = [line for line in said.splitlines() if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{3,}", line)]
        assert [line for line in english if not re.search(r"sha256 (stream|many)|frame", line)] == [], name


def test_chinese_pages_are_punctuated_as_chinese(copy: Path) -> None:
    (copy / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
    skipped = [{"file": "notes.txt", "reason": "not a JPEG, PNG or WebP picture"}]
    edit(copy / "run.json", lambda run: run.update(skipped=skipped))
    for name, text in make_pages(read_results(copy), "zh").items():
        shown = Page(text).text
        assert re.findall(r".{0,9}[\u4e00-\u9fff\uff09][,;:.](?!\w).{0,9}", shown) == [], name
        assert re.findall(r".{0,9}\uff1a .{0,9}", shown) == [], name


def test_a_sentence_that_is_not_known_is_shown_in_english_and_marked(copy: Path) -> None:
    edit(copy / "summary.json", lambda s: s[0].update(about="a scenario of the future"))
    page = make_pages(read_results(copy), "zh")["index.html"]
    assert '<span lang="en">a scenario of the future</span>' in page


def test_every_figure_on_a_page_is_defined_on_it(copy: Path) -> None:
    english = words("en")
    for name, text in make_pages(read_results(copy)).items():
        defined = re.findall(r"<dt>([^<]*)</dt><dd>", text)
        for figure in ("request", "prefix", "block"):
            assert english[f"define.{figure}.name"] in defined, name
        if name in {"index.html", *(f"{s}.html" for s in SCENARIOS)}:
            for figure in ("verdict", "unsafe", "prefill_tokens_saved", "memory_saved_bytes", "blocks_wrongly_reused"):
                assert english[f"define.{figure}.name"] in defined, name


def test_the_footer_names_the_command_the_versions_and_the_kernels(copy: Path) -> None:
    run = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    text = Page(make_pages(read_results(copy))["index.html"]).text
    assert run["command"] == "mmkey study"
    for said in (run["command"], *(f"{k} {v}" for k, v in run["versions"].items())):
        assert said in text
    for algorithm, uses in run["kernels"].items():
        for use, found in uses.items():
            assert f"{algorithm} {use} {found['kernel']}" in text


def test_the_command_is_told_as_it_was_given_but_for_where_results_go(within: Within, tmp_path: Path) -> None:
    options = ["--scenario", "same_text_same_image", "--block-size", "16", "--scenario", "same_text_different_image"]
    assert within.run("study", *options, "--out", "else where", "--lang", "zh").returncode == 0
    run = json.loads((tmp_path / "else where/run.json").read_text(encoding="utf-8"))
    assert run["command"] == (
        "mmkey study --scenario same_text_same_image --scenario same_text_different_image --block-size 16"
    )


def test_a_scenario_of_the_results_is_what_the_model_reads(copy: Path) -> None:
    for entry in json.loads((copy / "summary.json").read_text(encoding="utf-8")):
        read = Scenario.model_validate_json(json.dumps(entry))
        for granularity in ("request", "prefix"):
            for strategy, figures in entry[granularity].items():
                shown = read.figures(granularity)[strategy].model_dump()
                assert {name: figures[name] for name in shown} == shown
