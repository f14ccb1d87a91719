"""The study's table on the terminal: one table, fit for 80 columns, more at its ease in 120."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from mmkey.study.counts import Counts
    from mmkey.study.results import ScenarioResult

_HEADINGS = {"A": "text only", "B": "+ image hash", "C": "full"}
_WIDE = 110
_NARROW_CELL = 12
# the two rules of a table in ASCII, for where no other character may be
PLAIN = box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
_STYLES = {"true_hit": "green", "false_hit": "bold red", "safe_miss": "", "missed_reuse": "yellow"}


def print_table(results: Sequence[ScenarioResult], console: Console) -> None:
    """Prints the verdicts of every scenario, strategy and granularity, and what the marks mean."""
    table = build(results, wide=console.width >= _WIDE, plain=not console.is_terminal)
    write_trimmed(table, console)
    settings = results[0].settings
    notes = (
        f"{settings.algorithm}; blocks of {settings.block_size:,} tokens; {settings.kv_bytes:,} bytes of KV a token.",
        "! is a false hit, or blocks whose KV belongs to something else.",
        "unsafe: the same picture, but not the same KV; full identity tells.",
    )
    for note in notes:
        console.print(Text(note, style="dim"))


def write_trimmed(table: Table, console: Console) -> None:
    """Prints a table without spaces at the ends of its lines, and an empty line after it."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.write("\n")


def build(results: Sequence[ScenarioResult], *, wide: bool, plain: bool) -> Table:
    """A heading row for each scenario, below it a row for each thing that was counted."""
    table = Table(box=PLAIN if plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("scenario", no_wrap=True)
    strategies = list(results[0].settings.strategies)
    for strategy in strategies:
        heading = _HEADINGS[strategy]
        table.add_column(f"{strategy}: {heading}" if wide else f"{strategy}\n{heading}")
    for result in results:
        table.add_row(*_heading(result, result.scenario.name))
        for label, cells in _rows(result, wide=wide):
            table.add_row(f"  {label}", *cells)
        for variant in result.variants:
            table.add_row(*_heading(variant, f"  {variant.scenario.name}"))
            for label, cells in _rows(variant, wide=wide):
                table.add_row(f"    {label}", *cells)
    return table


def _heading(result: ScenarioResult, name: str) -> list[Text]:
    """The scenario's name, and the number of its cases where there are several."""
    cases = len(result.cases)
    others = [""] * len(result.settings.strategies)
    return [Text(name, style="bold"), *map(Text, [f"{cases:,} cases" if cases > 1 else "", *others[1:]])]


def _rows(result: ScenarioResult, *, wide: bool) -> Iterator[tuple[str, list[Text]]]:
    request = list(result.counts["request"].values())
    yield "request", [_verdict(counts) for counts in request]
    if any(counts.worst() != counts.worst("by_full") for counts in request):
        yield "request, full identity", [_verdict(counts, "by_full") for counts in request]
    yield from _saved_rows(result, wide=wide)
    prefix = list(result.counts["prefix"].values())
    yield f"prefix: blocks of {prefix[0].blocks:,}", [_blocks(counts) for counts in prefix]


def _saved_rows(result: ScenarioResult, *, wide: bool) -> Iterator[tuple[str, list[Text]]]:
    saved = [counts.to_json(result.settings.kv_bytes) for counts in result.counts["request"].values()]
    if not any(counts["prefill_tokens_saved"] for counts in saved):
        return

    def row(form: Callable[[dict[str, int]], str]) -> list[Text]:
        return [Text(form(counts) if counts["prefill_tokens_saved"] else "") for counts in saved]

    tokens, blocks, memory = "prefill_tokens_saved", "kv_blocks_reused", "memory_saved_bytes"
    if wide:
        yield "saved: tokens, blocks, bytes", row(lambda n: f"{n[tokens]:,}, {n[blocks]:,}, {n[memory]:,}")
        return
    both = row(lambda n: f"{n[tokens]:,}, {n[blocks]:,}")
    if max(map(len, both)) <= _NARROW_CELL:
        yield "saved: tokens, blocks", both
    else:
        yield "saved: tokens", row(lambda n: f"{n[tokens]:,}")
        yield "saved: blocks", row(lambda n: f"{n[blocks]:,}")
    yield "saved: bytes", row(lambda n: f"{n[memory]:,}")


def _verdict(counts: Counts, by: str = "by_image") -> Text:
    """The verdict, with a count where not all cases share it; a false hit has a mark beside its colour."""
    worst = counts.worst(by)
    count = getattr(counts, by)[worst]
    text = worst if count == counts.lookups else f"{worst} {count:,} of {counts.lookups:,}"
    style = _STYLES[worst]
    if worst == "false_hit":
        text = f"! {text}"
    elif by == "by_image" and worst == "true_hit" and counts.by_full["false_hit"]:
        text, style = f"{text}, unsafe", "bold yellow"
    return Text(text, style=style)


def _blocks(counts: Counts) -> Text:
    reused, wrong = counts.found_blocks, counts.wrong_blocks
    if wrong == 0:
        return Text(f"{reused:,}", style="green" if reused else "")
    return Text(f"! {wrong:,} wrong" if wrong == reused else f"! {reused:,}, {wrong:,} wrong", style="bold red")
