"""``mmkey study --strategies ... --block-sizes ...``: one stream through caches of every combination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmkey.cli.output import CliError, at_least, choose, print_json, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from mmkey.cli.report import Pages
    from mmkey.study.caches import Configuration
    from mmkey.study.stream import Stream


def names(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    """A comma-separated list of names, each once."""
    return list(dict.fromkeys(choose(option, part.strip(), allowed) for part in text.split(",")))


def counts(option: str, text: str) -> list[int]:
    """A comma-separated list of whole numbers of at least 1, each once."""
    found = []
    for part in text.split(","):
        if not part.strip().isascii() or not part.strip().isdigit():
            raise CliError(f"{option}: {shown(part.strip())} is not a whole number")
        found.append(at_least(option, int(part), 1))
    return list(dict.fromkeys(found))


def sweep(
    stream: Stream,
    chosen: Sequence[Configuration],
    kv_bytes: int,
    out: Path,
    messages: Console,
    pages: Pages,
    *,
    as_json: bool,
) -> int:
    """Runs the sweep and writes sweep.json. 1 where strategy C served another's KV, else 0."""
    from mmkey.cli.terminal import bars, console, say
    from mmkey.study.acceptance import false_hits_of_c
    from mmkey.study.machine import about_this_machine
    from mmkey.study.staging import Staging
    from mmkey.study.sweep import run_sweep
    from mmkey.study.sweep_table import print_sweep

    with Staging(out) as staging, bars(messages, shown=True) as progress:
        results = run_sweep(stream, chosen, kv_bytes, progress.steps("requests", stream.requests))
        results |= about_this_machine(pages.command)
        staging.write_json("sweep.json", results)
        pages.add(staging, messages)
        staging.commit(last="sweep.json")
    wrong = false_hits_of_c(results["results"])
    where = messages if as_json else console()
    if as_json:
        print_json(results)
    else:
        print_sweep(results, where)
    if wrong is not None:
        say(where, f"{'FAIL' if wrong else 'PASS'}  false hits of strategy C: {wrong:,}")
    say(where, f"Results are in {out}.")
    if wrong is None:
        say(where, "No verdict: strategy C was not run")
    else:
        say(where, "FAIL" if wrong else "PASS", "bold red" if wrong else "bold green")
    return 1 if wrong else 0
