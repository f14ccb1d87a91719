"""The pages in a real Chromium: what they say is what the JSON says, and they bear sorting, narrow screens and axe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

import browser
from browser import Visit
from mmkey.__main__ import main
from report_data import BENCH, SCENARIOS, let_models_judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser

PAGES = ["index", *SCENARIOS, "matrix", "sweep"]
WORDS = {
    "en": {"true_hit": "true hit", "false_hit": "false hit", "safe_miss": "safe miss", "missed_reuse": "missed reuse"},
    "zh": {"true_hit": "正确命中", "false_hit": "错误命中", "safe_miss": "安全未命中", "missed_reuse": "漏失复用"},
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    assert browser.why_not() is None, browser.why_not()
    with browser.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Everything that can be run, in both languages."""
    folders = {}
    for lang in ("en", "zh"):
        out = folders[lang] = tmp_path_factory.mktemp(lang)
        for what in ([], ["--matrix"], ["--strategies", "A,C", "--block-sizes", "16", "--requests", "60"]):
            assert main(["study", "--out", str(out), "--lang", lang, *what]) == 0
        (out / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
        assert main(["report", str(out), "--lang", lang]) == 0
    return folders


@pytest.fixture(scope="module")
def of_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a user's pictures, whose names try to be markup."""
    pictures, out = tmp_path_factory.mktemp("pictures"), tmp_path_factory.mktemp("results")
    names = [
        "<script>alert(1)<",
        '"><img src=x onerror=alert(2)>',
        "{{ 7*7 }}",
        "a\u202egnp",
        "line\nbreak",
        "&lt;b&gt;",
    ]
    names.append("plain")
    for n, name in enumerate(names):
        image = Image.new("RGB", (60 + n, 40), (30 * n, 255 - 30 * n, 90))
        image.paste((255, 255, 255), (n, n, n + 9, n + 9))
        image.save(pictures / f"{name}.png")
    assert main(["study", "--images", str(pictures), "--out", str(out)]) == 0
    return out


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_alone_without_complaint_and_fits_every_width(
    chromium: Any, results: dict[str, Path], page: str, lang: str
) -> None:
    path = results[lang] / f"{page}.html"
    for width in (360, 1440):
        with Visit(chromium, path, width=width) as visit:
            assert visit.complaints == []
            assert {url for url in visit.requests if not url.startswith("data:")} == {path.as_uri()}
            assert visit.overflow() == 0
            assert visit.page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[lang]
            for details in visit.page.locator("details > summary").all()[:5]:
                details.click()
            assert visit.overflow() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", PAGES)
def test_on_a_wide_screen_no_table_is_cut(chromium: Any, results: dict[str, Path], page: str, lang: str) -> None:
    with Visit(chromium, results[lang] / f"{page}.html", width=1440) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.outerHTML.slice(0, 99))"
        assert visit.page.locator(".scroll").evaluate_all(cut) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", ["index", "matrix", "sweep"])
def test_on_a_narrow_screen_a_figure_stands_below_its_label_and_none_out_of_sight(
    chromium: Any, results: dict[str, Path], page: str, lang: str
) -> None:
    with Visit(chromium, results[lang] / f"{page}.html", width=360) as visit:
        tables = visit.page.locator(".scroll:has(table.stack)")
        assert tables.count() > 0
        assert tables.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth).length") == 0
        cells = visit.page.locator("table.stack tbody td:not(.wide)")
        unnamed = "all => all.filter(e => getComputedStyle(e, '::before').content.length < 3).length"
        assert cells.evaluate_all(unnamed) == 0


@pytest.mark.parametrize(("lang", "scheme"), [("en", "light"), ("en", "dark"), ("zh", "light"), ("zh", "dark")])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_no_fault(chromium: Any, results: dict[str, Path], page: str, lang: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with Visit(chromium, results[lang] / f"{page}.html", scheme=scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach((d, i) => { d.open = i < 3 })")
        found = Axe().run(visit.page).response["violations"]
        assert [(v["id"], v["impact"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found] == []


def test_axe_would_find_a_fault(chromium: Any, results: dict[str, Path]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with Visit(chromium, results["en"] / "index.html") as visit:
        visit.page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input>')")
        assert [v["id"] for v in Axe().run(visit.page).response["violations"]] == ["label"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_verdicts_on_the_index_are_those_of_the_json(chromium: Any, results: dict[str, Path], lang: str) -> None:
    summary = load(results[lang] / "summary.json")
    entries = [part for entry in summary for part in (entry, *entry.get("variants", ()))]
    with Visit(chromium, results[lang] / "index.html") as visit:
        assert visit.page.locator("#acceptance").get_attribute("data-passed") == "true"
        assert visit.page.locator("#verdict-table td").count() == len(entries) * 6
        for entry in entries:
            for granularity in ("request", "prefix"):
                for strategy, figures in entry[granularity].items():
                    cell = visit.page.locator(
                        f'#verdict-table td[data-scenario="{entry["scenario"]}"]'
                        f'[data-granularity="{granularity}"][data-strategy="{strategy}"]'
                    )
                    said = cell.locator(".v").all_inner_texts()
                    expected = [figures["verdict"]]
                    if figures["full_identity_verdict"] != figures["verdict"]:
                        expected.append(figures["full_identity_verdict"])
                    assert len(said) == len(expected)
                    for text, verdict in zip(said, expected, strict=True):
                        assert WORDS[lang][verdict] in text
                    text = cell.inner_text().replace(",", "")
                    if figures["prefill_tokens_saved"]:
                        for name in ("prefill_tokens_saved", "kv_blocks_reused", "memory_saved_bytes"):
                            assert str(figures[name]) in text


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_strip_shows_every_block_and_what_each_strategy_did_with_it(
    chromium: Any, results: dict[str, Path], name: str
) -> None:
    entry = load(results["en"] / f"{name}.json")
    parts = [entry, *entry.get("variants", ())]
    with Visit(chromium, results["en"] / f"{name}.html") as visit:
        strips = visit.page.locator(".strip")
        assert strips.count() == len(parts)
        for n, part in enumerate(parts):
            (case,) = part["cases"]
            columns = strips.nth(n).locator(".col:not(.lanes):not(.shown)")
            size = part["block_size"]
            assert columns.count() == -(-max(case["tokens"]) // size)
            for strategy, blocks in case["prefix_blocks"].items():
                said = [t.strip() for t in strips.nth(n).locator(".s").all_inner_texts()]
                right = blocks["reused"] - blocks["wrong"]
                assert (said.count(f"{strategy}✓"), said.count(f"{strategy}✗")) == (right, blocks["wrong"])
            pictures = strips.nth(n).locator(".shown svg use").count()
            assert pictures == len(case["first"]) + len(case["second"])
            assert strips.nth(n).locator(".differs").count() == (1 if case["differences"] else 0)


def test_the_heat_map_says_what_the_matrix_says(chromium: Any, results: dict[str, Path]) -> None:
    rows = load(results["en"] / "matrix.json")
    words = {"right": "right", "false_hit": "false hit", "missed_reuse": "misses some"}
    with Visit(chromium, results["en"] / "matrix.html") as visit:
        assert visit.page.locator("#heat tbody tr").count() == len({row["mutation"] for row in rows})
        shown = visit.page.evaluate(
            """() => [...document.querySelectorAll('#heat td.cell')].map((cell) => [
                 cell.closest('tr').dataset.mutation, cell.dataset.granularity, cell.dataset.strategy,
                 cell.dataset.verdict, cell.dataset.right, cell.textContent])"""
        )
        found = {tuple(cell[:3]): cell[3:] for cell in shown}
        assert len(found) == len(rows)
        for row in rows:
            verdict, right, text = found[row["mutation"], row["granularity"], row["strategy"]]
            assert (verdict, right) == (row["verdict"], str(row["right"]).lower())
            state = "false_hit" if row["verdict"] == "false_hit" else "right" if row["right"] else "missed_reuse"
            assert [word for word in words.values() if word in text] == [words[state]]


def test_the_heat_map_is_filtered_by_outcome_strategy_group_and_text(chromium: Any, results: dict[str, Path]) -> None:
    rows = load(results["en"] / "matrix.json")

    def expected(**wanted: str) -> int:
        return len({r["mutation"] for r in rows if all(r[name] == value for name, value in wanted.items())})

    with Visit(chromium, results["en"] / "matrix.html") as visit:
        page = visit.page

        def choose(**values: str) -> int:
            for name in ("state", "strategy", "granularity", "group"):
                page.select_option(f'[data-filter="{name}"]', values.get(name, ""))
            page.fill('[data-filter="text"]', values.get("text", ""))
            shown = page.locator("#heat tbody tr:visible").count()
            assert page.locator("form.filters output").inner_text().startswith(f"{shown} of ")
            return int(shown)

        assert choose() == expected()
        assert choose(state="false_hit", strategy="C") == 0
        assert choose(state="false_hit", strategy="A", granularity="request") == expected(
            verdict="false_hit", strategy="A", granularity="request"
        )
        assert choose(group="scope") == expected(group="scope") > 0
        assert choose(text="  PNG FILE ") == len({r["mutation"] for r in rows if "PNG file" in r["about"]}) > 0


def test_headings_sort_with_the_keyboard_and_say_how(chromium: Any, results: dict[str, Path]) -> None:
    with Visit(chromium, results["en"] / "matrix.html") as visit:
        page = visit.page
        for column in range(9):
            header = page.locator("#heat th[data-sort]").nth(column)
            for order in ("ascending", "descending"):
                header.locator("button").focus()
                page.keyboard.press("Enter")
                assert header.get_attribute("aria-sort") == order
                assert page.locator("#heat th[aria-sort]").count() == 1
                keys = page.evaluate(
                    "(n) => [...document.querySelectorAll('#heat tbody tr')].map((row) =>"
                    " row.cells[n].dataset.key ?? row.cells[n].textContent.trim())",
                    column,
                )
                if column >= 2:
                    keys = [float(key) for key in keys]
                assert len(set(keys)) > 1
                assert keys == sorted(keys, reverse=order == "descending")


def test_without_scripts_everything_is_there_but_the_filters(chromium: Any, results: dict[str, Path]) -> None:
    with Visit(chromium, results["en"] / "matrix.html", java_script_enabled=False) as visit:
        assert visit.page.locator("#heat tbody tr").count() == 72
        assert not visit.page.locator("form.filters").is_visible()


def test_a_page_prints(chromium: Any, results: dict[str, Path]) -> None:
    with Visit(chromium, results["en"] / "index.html", scheme="dark", width=800) as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not visit.page.locator("nav").is_visible()
        assert visit.overflow() == 0
        assert visit.page.pdf().startswith(b"%PDF-")


def test_a_page_prints_in_the_same_colours_whatever_the_reader_s_setting(
    chromium: Any, results: dict[str, Path]
) -> None:
    names = ["--ink", "--a", "--b", "--c", "--peer", "--good-bar", "--bad-bar", "--warn-bar", "--bad-ink"]
    printed = []
    for scheme in ("light", "dark"):
        with Visit(chromium, results["en"] / "index.html", scheme=scheme) as visit:
            read = "(names) => names.map((name) => getComputedStyle(document.documentElement).getPropertyValue(name))"
            on_screen = visit.page.evaluate(read, names)
            visit.page.emulate_media(media="print", color_scheme=scheme)
            printed.append(visit.page.evaluate(read, names))
            assert (on_screen[1:] == printed[-1][1:]) == (scheme == "light")
    assert printed[0] == printed[1]


@pytest.mark.parametrize("width", [1030, 1440])
def test_headings_of_the_heat_map_stay_in_sight(chromium: Any, results: dict[str, Path], width: int) -> None:
    with Visit(chromium, results["en"] / "matrix.html", width=width) as visit:
        visit.page.locator("#heat tbody tr").nth(60).scroll_into_view_if_needed()
        heading = visit.page.locator("#heat thead").bounding_box()
        assert 0 <= heading["y"] < heading["y"] + heading["height"] < 200
        assert visit.overflow() == 0


def test_on_a_narrow_screen_every_verdict_of_a_case_is_in_sight(chromium: Any, of_pictures: Path) -> None:
    with Visit(chromium, of_pictures / "multi_image_different_order.html", width=360) as visit:
        page = visit.page
        rows = page.locator("table.cases tbody tr")
        for n in range(rows.count()):
            boxes = [cell.bounding_box() for cell in rows.nth(n).locator("td .v").all()]
            assert len(boxes) == 6
            assert all(box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
        page.fill('[data-filter="text"]', "plain")
        assert 0 < page.locator("table.cases tbody tr:visible").count() < rows.count()
        page.locator("table.cases th[data-sort] button").first.click()
        assert page.locator("table.cases th[aria-sort=ascending]").count() == 1


@pytest.mark.parametrize("width", [360, 1440])
def test_axe_finds_no_fault_in_a_study_of_a_user_s_pictures(chromium: Any, of_pictures: Path, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for name in ("index", "multi_image_different_order"):
        with Visit(chromium, of_pictures / f"{name}.html", width=width) as visit:
            found = Axe().run(visit.page).response["violations"]
            assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found] == []


@pytest.mark.parametrize(("lang", "scheme", "width"), [("en", "light", 1440), ("zh", "dark", 360)])
def test_a_matrix_that_models_judged_fits_and_axe_finds_no_fault(
    chromium: Any, results: dict[str, Path], tmp_path: Path, lang: str, scheme: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for name in ("matrix.json", "matrix_run.json"):
        (tmp_path / name).write_bytes((results[lang] / name).read_bytes())
    let_models_judge(tmp_path)
    assert main(["report", str(tmp_path), "--lang", lang]) == 0
    with Visit(chromium, tmp_path / "matrix.html", scheme=scheme, width=width) as visit:
        assert visit.complaints == []
        assert visit.overflow() == 0
        assert visit.page.locator("#heat .models").count() == visit.page.locator("#heat td.cell").count() > 400
        found = Axe().run(visit.page).response["violations"]
        assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found] == []


def test_names_that_look_like_markup_stay_text(chromium: Any, of_pictures: Path) -> None:
    for path in sorted(of_pictures.glob("*.html")):
        with Visit(chromium, path, width=360) as visit:
            assert visit.complaints == []
            assert visit.overflow() == 0
            assert visit.page.locator("script").count() == 1
            assert visit.page.locator("img").count() == 0
            if path.stem == "same_text_different_image":
                shown = set(visit.texts("table.cases bdi"))
                assert shown >= {"<script>alert(1)<.png", '"><img src=x onerror=alert(2)>.png', "{{ 7*7 }}.png"}
                assert shown >= {"a\\u202egnp.png", "line\\nbreak.png", "&lt;b&gt;.png", "plain.png"}


def test_the_cases_of_a_folder_are_filtered_and_sorted(chromium: Any, of_pictures: Path) -> None:
    cases = load(of_pictures / "same_text_different_image.json")["cases"]
    with Visit(chromium, of_pictures / "same_text_different_image.html") as visit:
        page = visit.page
        assert page.locator("table.cases tbody tr:visible").count() == len(cases) == 7
        page.select_option('[data-filter="state"]', "false_hit")
        page.select_option('[data-filter="strategy"]', "C")
        assert page.locator("table.cases tbody tr:visible").count() == 0
        page.select_option('[data-filter="strategy"]', "A")
        assert page.locator("table.cases tbody tr:visible").count() == 7
        page.fill('[data-filter="text"]', "onerror")
        assert page.locator("table.cases tbody tr:visible").count() == 2  # as the first and as the second picture


def test_what_keys_cost_is_drawn_and_told_with_the_machine(chromium: Any, results: dict[str, Path]) -> None:
    with Visit(chromium, results["en"] / "index.html") as visit:
        plots = visit.page.locator(".plot > svg")
        assert plots.count() == 2
        assert all(plots.nth(n).bounding_box()["height"] > 200 for n in range(2))
        assert "A <b>CPU</b> & more" in visit.page.locator("section:has(> #costs)").inner_text()
        inks = [visit.page.evaluate("getComputedStyle(document.querySelector('.plot text')).fill")]
        visit.page.emulate_media(color_scheme="dark")
        inks.append(visit.page.evaluate("getComputedStyle(document.querySelector('.plot text')).fill"))
        assert inks[0] != inks[1]
