"""The mutation matrix on the terminal: fit for 80 columns, with the change in words from 120 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from mmkey.study.table import PLAIN, write_trimmed
from mmkey.study.verdicts import FALSE_HIT, GRANULARITIES, MISSED_REUSE, SAFE_MISS, TRUE_HIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from mmkey.study.matrix import Cell

_WIDE = 120
_WORDS = {
    TRUE_HIT: ("hit", "green"),
    FALSE_HIT: ("! false", "bold red"),
    SAFE_MISS: ("miss", "dim"),
    MISSED_REUSE: ("missed", "yellow"),
}


def print_matrix(cells: Sequence[Cell], console: Console) -> None:
    """Prints a row for each mutation, what the marks mean, and what C's safety costs."""
    plain, wide = not console.is_terminal, console.width >= _WIDE
    write_trimmed(_matrix(cells, wide=wide, plain=plain), console)
    for note in (
        "KV from: the first token whose KV the change alters.",
        "request: one key. ! false: another's KV. missed: it was there under another key.",
        "prefix: blocks reused. ! n: n are another's. m/n: m of n that could be reused.",
    ):
        console.print(Text(note, style="dim"))
    missed = [cell for cell in cells if cell.strategy == "C" and cell.missed]
    if missed:
        console.print()
        console.print(Text("Reuse that C misses, and why", style="bold"))
        write_trimmed(_missed(missed, plain=plain), console)


def _matrix(cells: Sequence[Cell], *, wide: bool, plain: bool) -> Table:
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    table = _table(plain=plain, gap=int(wide))
    table.add_column("mutation", no_wrap=True)
    if wide:
        table.add_column("one change")
    table.add_column("KV\nfrom", justify="right", no_wrap=True)
    for granularity in GRANULARITIES:
        for n, strategy in enumerate(strategies):
            table.add_column(f"{granularity if n == 0 else ''}\n{strategy}", no_wrap=True)
    group = ""
    for row in _by_mutation(cells):
        mutation = row[0].mutation
        if mutation.group != group:
            group = mutation.group
            table.add_row(Text(group, style="bold"))
        start = "same" if row[0].kv_from is None else str(row[0].kv_from)
        texts = [_request(c) if c.granularity == "request" else _prefix(c) for c in row]
        table.add_row(f" {mutation.name}", *([mutation.about] if wide else []), start, *texts)
    return table


def _table(*, plain: bool, gap: int) -> Table:
    look = PLAIN if plain else box.SIMPLE_HEAD
    return Table(box=look, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)


def _by_mutation(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    rows: dict[str, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.mutation.name, []).append(cell)
    yield from rows.values()


def _request(cell: Cell) -> Text:
    return Text(*_WORDS[cell.verdict])


def _prefix(cell: Cell) -> Text:
    if cell.wrong:
        return Text(f"! {cell.wrong}", style="bold red")
    if cell.missed:
        return Text(f"{cell.lookup.found_blocks}/{cell.same}", style="yellow")
    return Text(str(cell.same), style="green") if cell.same else Text("-", style="dim")


def _missed(cells: Sequence[Cell], *, plain: bool) -> Table:
    table = _table(plain=plain, gap=1)
    table.add_column("mutation", no_wrap=True)
    table.add_column("blocks", justify="right", no_wrap=True)
    table.add_column("why")
    for row in _by_mutation(cells):
        blocks = next((c.missed for c in row if c.granularity == "prefix"), 0)
        table.add_row(row[0].mutation.name, str(blocks), row[0].missed_reason)
    return table
