"""``mmkey bench``: what hashing costs on this machine."""

from __future__ import annotations

import typer

from mmkey.cli.output import CliError, print_json

EXAMPLE = "Example: mmkey bench --json > bench.json"
_LONGEST = 3600


def bench(
    seconds: float = typer.Option(30.0, "--seconds", metavar="N", help="About how long to measure."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON alone on stdout."),
) -> None:
    """Measure digests, block keys and whole requests on this machine, beside hashlib, blake3 and the usual way.

    Each figure is a median of CPU time; what is compared runs in turns. With little time the figures are rough.
    """
    if not 0 < seconds <= _LONGEST:
        raise CliError(f"--seconds: {seconds:g} is not in (0, {_LONGEST}]")
    from mmkey.cli.terminal import bars, console
    from mmkey.study.bench.run import bench as measure
    from mmkey.study.bench.run import rows
    from mmkey.study.bench.table import print_tables

    with bars(console(stderr=True), shown=True) as progress:
        found = measure(seconds, progress.steps("measuring", len(rows())))
    if as_json:
        print_json(found)
    else:
        print_tables(found, console())
