"""What keys cost, drawn by matplotlib as SVG in the page's own colours; without matplotlib there are no plots."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mmkey.study.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mmkey.study.report.models import Bench, BenchRequest

# matplotlib takes colours, a page has variables: each stands for one, and is replaced in the SVG
_VARIABLES = {
    "#010101": "var(--ink)",
    "#020202": "var(--line)",
    "#030303": "var(--a)",
    "#040404": "var(--b)",
    "#050505": "var(--c)",
    "#060606": "var(--peer)",
}
_INK, _LINE, _A, _B, _C, _PEER = _VARIABLES
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # a dollar sign in a name is one
    "font.size": 10.0,
    "ytick.labelsize": 8.5,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.grid.which": "major",
    "grid.color": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_BARS = {"A": _A, "B": _B, "C": _C, "usual": _PEER}
_HATCHES = {"A": "", "B": "//", "C": "xx", "usual": ".."}


@dataclass(frozen=True)
class Plots:
    """Two drawings, safe to put into a page as they are."""

    digests: Markup
    requests: Markup


def draw(bench: Bench, say: Callable[..., str]) -> Plots | None:
    """The plots of a benchmark, in the language of ``say``; None where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return None
    return Plots(_svg(_digests, 4.4, bench, say, "d"), _svg(_requests, 6.4, bench, say, "r"))


def _svg(
    fill: Callable[[Any, Bench, Callable[..., str]], None], height: float, bench: Bench, say: Any, prefix: str
) -> Markup:
    import matplotlib as mpl  # noqa: PLC0415 (where a plot needs it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    buffer = io.StringIO()
    with mpl.rc_context(_STYLE | {"svg.hashsalt": f"mmkey-{prefix}"}), warnings.catch_warnings():
        # Its fonts measure Chinese as boxes; the reader's browser draws the text with fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(6.4, height), layout="constrained")
        figure.patch.set_alpha(0)
        fill(figure, bench, say)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    return Markup(text)  # noqa: S704 (matplotlib escapes what it is given)


def _plain(value: float, _: object) -> str:
    """A power of ten written out: 0.1, 10, 1,000."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _label(text: str) -> str:
    """A name from outside, short enough for a label."""
    shown = printable(text)
    return shown if len(shown) <= 32 else f"{shown[:29]}..."


def _digests(figure: Any, bench: Bench, say: Callable[..., str]) -> None:
    """Microseconds against bytes, both logarithmic: a line for each algorithm and implementation."""
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for digest in bench.digests:
        for who, seconds in digest.seconds.items():
            if digest.bytes and seconds:
                lines.setdefault((digest.algorithm, who), []).append((digest.bytes, seconds * 1e6))
    for (algorithm, who), points in lines.items():
        ours = who == "mmkey"
        axes.plot(
            *zip(*sorted(points), strict=True),
            color={"sha256": _B, "blake3": _C}.get(algorithm, _A),
            linestyle="-" if ours else ":",
            marker={"sha256": "o", "blake3": "s"}.get(algorithm, "d"),
            markerfacecolor="none" if not ours else None,
            label=_label(f"{algorithm}, {who}"),
        )
    axes.set(xscale="log", yscale="log", xlabel=say("costs.bytes"), ylabel=say("costs.us"))
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    axes.legend()


def _requests(figure: Any, bench: Bench, say: Callable[..., str]) -> None:
    """Microseconds a request, a group of bars for each kind of request, a panel for each algorithm."""
    algorithms = list(dict.fromkeys(r.algorithm for r in bench.requests)) or ["sha256"]
    panels = figure.subplots(1, len(algorithms), sharey=True, sharex=True, squeeze=False)[0]
    for axes, algorithm in zip(panels, algorithms, strict=True):
        axes.patch.set_alpha(0)
        chosen = [r for r in bench.requests if r.algorithm == algorithm]
        for k, (who, colour) in enumerate(_BARS.items()):
            values = [r.seconds.get(who, 0.0) * 1e6 for r in chosen]
            places = [i + (k - 1.5) * 0.2 for i in range(len(chosen))]
            label = say("costs.usual") if who == "usual" else who
            axes.barh(
                places, values, 0.2, color=colour, hatch=_HATCHES[who], edgecolor=_INK, linewidth=0.4, label=label
            )
        axes.set(xscale="log", title=_label(algorithm), xlabel=say("costs.us"))
        axes.xaxis.set_major_formatter(_plain)
        axes.set_yticks(range(len(chosen)), _kinds(chosen, say))
        axes.grid(visible=False, axis="y")
    if not panels[0].yaxis_inverted():
        panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)


def _kinds(requests: Sequence[BenchRequest], say: Callable[..., str]) -> list[str]:
    kinds = []
    for request in requests:
        kind = say("costs.tokens_n", n=request.tokens)
        if request.pictures:
            form = say(f"form.{request.form}") if request.form in {"encoded", "array"} else str(request.form)
            kind = f"{request.pictures} \u00d7 {_label(str(request.size))}\n{_label(form)}"
        kinds.append(kind)
    return kinds
