"""The tables of ``mmkey bench`` on the terminal, fit for 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

# the two rules of a table in ASCII, for where no other character may be
_PLAIN = box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
_NOTES = (
    "CPU time of a call, median; x: how many times as fast as that peer mmkey (of a request: C) is, in the same run.",
    "pictures: encoded as JPEG (enc) or as arrays of pixels (arr).",
    "A, B, C: from ids and pictures that nobody has hashed to request key and block keys.",
    "usual: a digest of each picture, and of a pickled tuple for each block, in Python.",
)


def print_tables(found: dict[str, Any], console: Console) -> None:
    """Prints what ``run.bench`` found."""
    machine = found["machine"]
    _say(console, f"{machine['cpu']}; Python {machine['python']}; blocks of 16 tokens")
    for algorithm, operations in found["kernels"].items():
        chosen = ", ".join(f"{operation} {choice['kernel']}" for operation, choice in operations.items())
        _say(console, f"kernels of {algorithm}: {chosen}")
    for algorithm, peer in (("sha256", "hashlib"), ("blake3", "blake3")):
        of = _picker(found, algorithm)
        digests = [(_bytes(row), row) for row in of("digests")]
        batches = [(f"{row['messages']:,} of {_bytes(row)}", row) for row in of("batches")]
        _table(f"{algorithm} of", [*digests, *batches], ["mmkey", peer], console)
        chains = [(f"{row['tokens']:,} tokens", row) for row in of("block_keys")]
        _table(f"block keys, {algorithm}", chains, ["mmkey", "pickle", "cbor2"], console)
        _table(f"a request, {algorithm}", [(_load(row), row) for row in of("requests")], [*"ABC", "usual"], console)
    absent = [name for name, there in machine["peers"].items() if not there]
    for note in (*_NOTES, *(f"{name} is not installed: pip install {name} to compare with it." for name in absent)):
        _say(console, note, "dim")


def _picker(found: dict[str, Any], algorithm: str) -> Callable[[str], list[dict[str, Any]]]:
    return lambda group: [row for row in found[group] if row["algorithm"] == algorithm]


def _table(title: str, rows: Sequence[tuple[str, dict[str, Any]]], names: Sequence[str], console: Console) -> None:
    """A row's label, its times in microseconds, and after each peer's the ratio."""
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else _PLAIN, pad_edge=False, padding=(0, 1), show_edge=False
    )
    table.add_column(title, no_wrap=True)
    for name in names:
        table.add_column(f"{name}, us", justify="right", no_wrap=True)
        if name not in {"mmkey", *"ABC"}:
            table.add_column("x", justify="right", no_wrap=True)
    for label, row in rows:
        cells = [Text(label)]
        for name in names:
            time = row["seconds"].get(name)
            cells.append(Text("" if time is None else microseconds(time)))
            if name not in {"mmkey", *"ABC"}:
                ratio = row["speedup"].get(name)
                cells.append(
                    Text("" if ratio is None else f"{ratio:.2f}", style="green" if ratio and ratio >= 1 else "")
                )
        table.add_row(*cells)
    with console.capture() as captured:
        console.print(table)
    console.file.write("\n")
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")


def microseconds(seconds: float) -> str:
    """Three digits that count, or all before the point."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _bytes(row: dict[str, Any]) -> str:
    return f"{row['bytes']:,} bytes"


def _load(row: dict[str, Any]) -> str:
    tokens = f"{row['tokens']:,} tokens"
    return f"{tokens}, {row['pictures']} {row['size']} {row['form'][:3]}" if row["pictures"] else tokens


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)
