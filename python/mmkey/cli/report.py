"""``mmkey report``: the pages of a results folder, made anew from its JSON; and the same for ``mmkey study``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mmkey.cli.output import CliError, choose, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from mmkey.study.staging import Staging

EXAMPLE = "Example: mmkey report results --lang zh --bench bench.json"
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Pages:
    """What a study does about pages: their language, or None where it makes none; and its own command line."""

    lang: str | None
    command: str

    def add(self, staging: Staging, messages: Console) -> None:
        """Adds the pages of what is staged, and of other results that are in the folder already."""
        if self.lang is None:
            staging.replace_pages({})  # those of an earlier run would tell of other results
            return
        from mmkey.cli.terminal import say
        from mmkey.study.report import make_pages, read_results

        results = read_results(staging.folder, beside=staging.out)
        for _, problem in results.damaged:
            say(messages, f"left out of the pages: {problem}")
        staging.replace_pages(make_pages(results, self.lang))


def report(
    folder: str = typer.Argument(..., metavar="DIR", help="A results folder of mmkey study."),
    lang: str = typer.Option("en", "--lang", metavar="en|zh", help="The language of the pages."),
    bench: Path | None = typer.Option(
        None, "--bench", metavar="FILE", help="What mmkey bench --json printed; else DIR/bench.json, if it is there."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the pages and their sizes as JSON alone on stdout."),
) -> None:
    """Make the pages of a results folder anew, from its JSON files alone.

    Writes index.html and a page for each scenario, and one for the matrix and for the sweep if they were run.
    """
    choose("--lang", lang, LANGUAGES)
    from mmkey.study.interrupts import ends_by_unwinding
    from mmkey.study.report import make_pages, read_results
    from mmkey.study.staging import Staging

    if not folder:
        raise CliError("DIR: empty; name a folder")
    out = Path(folder)
    pages = make_pages(read_results(out, bench=bench), lang)
    with ends_by_unwinding(), Staging(out) as staging:
        staging.replace_pages(pages)
        staging.commit(last="index.html")
    if as_json:
        print_json([{"page": str(out / name), "bytes": len(page.encode())} for name, page in pages.items()])
    else:
        print(f"{len(pages)} pages: open {out / 'index.html'}")
