"""The pages of a report, by their file names."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mmkey.study.acceptance import false_hits_of_c
from mmkey.study.report.blocks import Difference, Strip, differences, strip
from mmkey.study.report.cases import Limits, ThumbnailBook, to_draw
from mmkey.study.report.catalogue import HTML_LANG, PUNCTUATION, load
from mmkey.study.report.matrix import SEVERITY, Matrix, heat_map
from mmkey.study.report.plots import draw
from mmkey.study.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mmkey.study.report.catalogue import Catalogue
    from mmkey.study.report.models import Case, Scenario
    from mmkey.study.report.reader import Results

MOST_BYTES = 1_900_000  # of a page
_TEMPLATES = Path(__file__).parent / "templates"
_GLYPHS = {"true_hit": "✓", "false_hit": "✗", "safe_miss": "\u2013", "missed_reuse": "◌"}
_STATE_GLYPHS = {"right": "✓", "false_hit": "✗", "missed_reuse": "◌"}
_VERDICT_SEVERITY = {"safe_miss": 0, "true_hit": 1, "missed_reuse": 2, "false_hit": 3}
_FIGURES = ["verdict", "full_identity_verdict", "unsafe", "request", "prefix", "block"]
_FIGURES += ["prefill_tokens_saved", "kv_blocks_reused", "memory_saved_bytes", "prefill_tokens_wrongly_reused"]
_FIGURES += ["blocks", "blocks_reused", "blocks_wrongly_reused", "blocks_missed"]
DEFINED: Mapping[str, Sequence[str]] = {
    "index.html": [*_FIGURES[:6], "lookups", *_FIGURES[6:]],
    "scenario": _FIGURES,
    "matrix.html": ["state", "kv_changes_from", "models", "request", "prefix", "block", *_FIGURES[-3:]],
    "sweep.html": [
        "request", "prefix", "block", "lookups", "prefill_tokens_saved", "prefill_tokens_wrongly_reused",
        "blocks_missed", "hashing_seconds", "matching_seconds", "storing_seconds",
    ],
}  # fmt: skip


@dataclass(frozen=True)
class CaseView:
    """One case as it is drawn."""

    number: int
    case: Case
    strip: Strip | None
    differences: Sequence[Difference]
    where: str
    what: str
    description: str


@dataclass(frozen=True)
class CaseRow:
    """One case as it is listed."""

    number: int
    case: Case


@dataclass(frozen=True)
class Part:
    """A scenario, or a variant of one, on its page."""

    name: str
    scenario: Scenario
    views: Sequence[CaseView]
    rows: Sequence[CaseRow]
    unsafe_reasons: Sequence[tuple[str, str]]
    file: str


@dataclass(frozen=True)
class Entry:
    """A scenario, or a variant of one, on the index page."""

    name: str
    scenario: Scenario
    page: str


@dataclass(frozen=True)
class _Link:
    href: str
    text: str


def make_pages(results: Results, lang: str = "en") -> dict[str, str]:
    """Every page as HTML, by its file name; ``lang`` is one of LANGUAGES. No page is larger than MOST_BYTES."""
    return _Maker(results, load(lang)).pages()


class _Maker:
    def __init__(self, results: Results, say: Catalogue) -> None:
        self.results = results
        self.say = say
        self.matrix: Matrix | None = None if results.matrix is None else heat_map(results.matrix, results.oracle)
        script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        self.environment = Environment(
            loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_fit_to_print,
        )
        self.environment.filters |= {"n": _number, "us": _microseconds, "listed": _listed}
        self.environment.globals |= PUNCTUATION[say.lang]
        self.environment.globals |= {
            "t": say,
            "tr": say.sentence,
            "html_lang": HTML_LANG[say.lang],
            "version": version("mmkey"),
            "style": Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 (our own file)
            "script": Markup(script),  # noqa: S704 (our own file)
            "script_hash": f"sha256-{digest}",
            "glyph": _GLYPHS,
            "state_glyph": _STATE_GLYPHS,
            "severity": _VERDICT_SEVERITY,
            "state_severity": SEVERITY,
            "results": results,
            "matrix": self.matrix,
            "title_of": self._title,
            "kernels": _kernels,
            "say_difference": self._say_difference,
            "navigation": self._navigation(),
        }

    def pages(self) -> dict[str, str]:
        """All pages."""
        found = {"index.html": self._index()}
        for scenario in self.results.scenarios or ():
            found[f"{scenario.scenario}.html"] = self._scenario(scenario)
        if self.matrix is not None:
            found["matrix.html"] = self._render("matrix.html", matrix_totals=self._totals)
        if self.results.sweep is not None:
            entries = [entry.model_dump() for entry in self.results.sweep.results]
            found["sweep.html"] = self._render("sweep.html", false_hits_of_c=false_hits_of_c(entries))
        return found

    def _render(self, page: str, template: str = "", **context: Any) -> str:
        name = template or page
        made = self.environment.get_template(f"{name}.j2")
        return made.render(page=page, defined=DEFINED.get(page, DEFINED["scenario"]), **context)

    def _totals(self) -> Markup:
        return Markup(self.environment.get_template("totals.html.j2").render())  # noqa: S704 (escaped by Jinja)

    # ------------------------------------------------------------ the index

    def _index(self) -> str:
        entries = None
        if self.results.scenarios is not None:
            entries = [
                Entry(part.scenario, part, f"{scenario.scenario}.html")
                for scenario in self.results.scenarios
                for part in (scenario, *scenario.variants)
            ]
        plots = None if self.results.bench is None else draw(self.results.bench, self.say)

        def costs() -> Markup:
            return Markup(self.environment.get_template("costs.html.j2").render(plots=plots))  # noqa: S704 (as above)

        return self._render("index.html", scenarios=entries, matrix_totals=self._totals, costs_section=costs)

    def _navigation(self) -> list[_Link]:
        links = [_Link("index.html", self.say("index.nav"))]
        links += [_Link(f"{s.scenario}.html", self._title(s.scenario)) for s in self.results.scenarios or ()]
        if self.results.matrix is not None:
            links.append(_Link("matrix.html", self.say("matrix.title")))
        if self.results.sweep is not None:
            links.append(_Link("sweep.html", self.say("sweep.title")))
        return links

    def _title(self, name: str) -> str:
        return self.say(f"title.{name}") if self.say.has(f"title.{name}") else name

    # ------------------------------------------------------------ a scenario

    def _scenario(self, scenario: Scenario) -> str:
        """With less and less of a long study, until the page is small enough."""
        limits = Limits()
        while True:
            page = self._scenario_within(scenario, limits)
            if len(page.encode()) <= MOST_BYTES or limits.rows == 0:
                return page
            limits = limits.halved()

    def _scenario_within(self, scenario: Scenario, limits: Limits) -> str:
        book = ThumbnailBook(self.results.media, limits.thumbnails)
        every = (scenario, *scenario.variants)
        share = Limits(max(1, limits.strips // len(every)), limits.rows // len(every))
        parts = [self._part(part, share, f"{scenario.scenario}.json") for part in every]
        for part in parts:  # the thumbnails must be known before the first template line that defines them
            for view in part.views:
                for name in (*view.case.first, *view.case.second):
                    book.id_of(name)
        for part in parts:
            for row in part.rows:
                for name in (*row.case.first, *row.case.second):
                    book.id_of(name)
        left_out = book.left_out
        return self._render(
            f"{scenario.scenario}.html",
            "scenario.html",
            parts=parts,
            thumbnail=book.id_of,
            symbols=book.symbols,
            unpictured=lambda: left_out,
        )

    def _part(self, scenario: Scenario, limits: Limits, file: str) -> Part:
        drawn = to_draw(scenario.cases, limits.strips)
        listed = range(min(len(scenario.cases), limits.rows)) if len(scenario.cases) > 1 else ()
        reasons = {
            (strategy, reason): None
            for figures in (scenario.request, scenario.prefix)
            for strategy, counted in sorted(figures.items())
            for reason in counted.unsafe_reasons
        }
        return Part(
            scenario.scenario,
            scenario,
            [self._view(place + 1, scenario.cases[place], scenario.block_size) for place in drawn],
            [CaseRow(place + 1, scenario.cases[place]) for place in listed],
            list(reasons),
            file,
        )

    def _view(self, number: int, case: Case, block_size: int) -> CaseView:
        say, differing, blocks = self.say, differences(case), strip(case, block_size)
        where, what = "", ""
        if differing:
            first = differing[0]
            where = say("block_n", n=first.position // block_size, token=first.position)
            what = self._say_difference(first)
        description = ""
        if blocks is not None:
            reuse = [
                say("strip_alt.reuse", strategy=s, reused=b.reused, full=b.blocks, wrong=b.wrong, missed=b.missed)
                for s, b in sorted((case.prefix_blocks or {}).items())
            ]
            difference = say("no_difference")
            if differing:
                difference = say("strip_alt.difference", block=differing[0].position // block_size, what=what)
            description = say("strip_alt", blocks=blocks.blocks, reuse=" ".join(reuse), difference=difference)
        return CaseView(number, case, blocks, differing, where, what, description)

    def _say_difference(self, difference: Difference) -> str:
        field = difference.field
        if self.say.has(f"field.{field}"):
            field = self.say(f"field.{field}")
        return self.say(f"diff.{difference.part}", n=difference.number, field=field)


def _fit_to_print(value: Any) -> Any:
    """Text from outside on one line: control characters, direction marks and halves of pairs are written out."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(value)


def _listed(values: Iterable[Any], between: str = ", ") -> str:
    """Jinja's own ``join`` gives markup, which is not looked at again."""
    return between.join(printable(str(value)) for value in values)


def _number(value: int) -> str:
    return f"{value:,}"


def _microseconds(seconds: float | None) -> str:
    """Three figures and a unit; a dash where nothing was measured."""
    if seconds is None:
        return "\u2013"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _kernels(table: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """sha256 stream shani, sha256 many avx512, ..."""
    return ", ".join(
        f"{algorithm} {use} {found.get('kernel', '?')}"
        for algorithm, uses in table.items()
        for use, found in uses.items()
    )
