"""The models' verdicts on the terminal."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from mmkey.study.mutations import MUTATIONS
from mmkey.study.table import PLAIN, write_trimmed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


def print_oracle(results: Mapping[str, Any], console: Console) -> None:
    """``results`` is what oracle.json holds: a row for each mutation, and what false hits do."""
    plain = not console.is_terminal
    console.print()
    console.print(Text("Real KV: from which token on it differs, and C's blocks", style="bold"))
    write_trimmed(_opinions(results, plain=plain), console)
    for note in (
        "same: no bit of the KV differs. C: blocks that C reuses; ! n: n of them wrong;",
        "m/n: m of n that could be reused. ?: the mutation's tag says otherwise.",
    ):
        console.print(Text(note, style="dim"))
    if results["false_hits"]:
        console.print()
        console.print(Text("Decoding on another's KV", style="bold"))
        write_trimmed(_decoded(results, plain=plain), console)


def _table(*, plain: bool) -> Table:
    return Table(box=PLAIN if plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)


def _opinions(results: Mapping[str, Any], *, plain: bool) -> Table:
    models = [(m["model"], m["title"]) for m in results["models"]]
    table = _table(plain=plain)
    table.add_column("mutation", no_wrap=True)
    for _, title in models:
        table.add_column(title, no_wrap=True)
    said = {(c["mutation"], c["model"]): c for c in results["comparisons"]}
    names = {name for name, _ in said}
    for mutation in (m.name for m in MUTATIONS if m.name in names):
        table.add_row(mutation, *(_opinion(said.get((mutation, model))) for model, _ in models))
    return table


def _opinion(comparison: Mapping[str, Any] | None) -> Text:
    if comparison is None:
        return Text("n/a", style="dim")
    start = comparison["kv_changes_from"]
    text = Text("same" if start is None else f"{start:4}")
    if not comparison["agrees"]:
        text.append(" ?", style="bold red")
    figures = comparison["strategies"].get("C")
    if figures is None:
        return text
    text.append(" C ", style="dim")
    reused = figures["reused"]
    if figures["wrong"]:
        text.append(f"! {figures['wrong']}", style="bold red")
    elif figures["missed"]:
        text.append(f"{reused}/{reused + figures['missed']}", style="yellow")
    else:
        text.append(str(reused), style="green" if reused else "dim")
    return text


def _decoded(results: Mapping[str, Any], *, plain: bool) -> Table:
    table = _table(plain=plain)
    table.add_column("model", no_wrap=True)
    for heading in (
        "false\nhits",
        "logits moved\n(median)",
        "their\nspread",
        "next token\nchanged",
        "later tokens\nchanged",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in results["models"]:
        hits = [hit for hit in results["false_hits"] if hit["model"] == model["model"]]
        if not hits:
            continue
        tokens = sum(hit["decoded_tokens"] for hit in hits)
        changed = sum(hit["decoded_tokens_changed"] for hit in hits)
        table.add_row(
            model["title"],
            str(len(hits)),
            f"{median(hit['logits_moved'] for hit in hits):.2g}",
            f"{median(hit['logits_spread'] for hit in hits):.2g}",
            f"{sum(hit['next_token_changed'] for hit in hits)} of {len(hits)}",
            f"{changed} of {tokens}",
        )
    return table
