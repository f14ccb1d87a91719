"""A sweep on the terminal: what each cache saves, and what it gets wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from mmkey.study.table import PLAIN, write_trimmed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

_HEADINGS = ("reused", "wrong", "missed", "hash\nus", "match\nus", "store\nus")


def print_sweep(results: Mapping[str, Any], console: Console) -> None:
    """``results`` is what sweep.json holds: a table for each granularity."""
    requests = results["stream"]["requests"]
    for granularity, words in (
        ("prefix", "prefix: the longest stored run of full blocks; percent of their tokens"),
        ("request", "request: one key for the whole request; percent of all tokens"),
    ):
        console.print(Text(words, style="bold"))
        write_trimmed(_table(results, granularity, plain=not console.is_terminal), console)
    console.print(
        Text(f"{requests:,} requests in {results['elapsed_seconds']:.1f} s, all caches together.", style="dim")
    )
    for note in (
        "reused: right KV. ! wrong: another's KV. missed: it was there under another key.",
        "us: microseconds a request, to hash (prepare, and key), to match, to store.",
    ):
        console.print(Text(note, style="dim"))


def _table(results: Mapping[str, Any], granularity: str, *, plain: bool) -> Table:
    table = Table(box=PLAIN if plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("strategy", no_wrap=True)
    table.add_column("hash", no_wrap=True)
    for heading in ("block\nsize", "capacity", *_HEADINGS):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in results["results"]:
        counts = entry[granularity]
        wrong = Text(_percent(counts, "tokens_wrongly_reused"))
        if counts["tokens_wrongly_reused"]:
            wrong = Text(f"! {wrong}", style="bold red")
        table.add_row(
            entry["strategy"],
            entry["algorithm"],
            f"{entry['block_size']:,}",
            "-" if entry["capacity"] is None else f"{entry['capacity']:,}",
            _percent(counts, "prefill_tokens_saved"),
            wrong,
            _percent(counts, "tokens_missed"),
            *(
                f"{counts[f'{n}_seconds'] / max(1, counts['lookups']) * 1e6:.1f}"
                for n in ("hashing", "matching", "storing")
            ),
        )
    return table


def _percent(counts: Mapping[str, Any], name: str) -> str:
    return f"{100 * counts[name] / max(1, counts['tokens']):.2f}"
