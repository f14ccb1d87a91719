"""``mmkey study --matrix`` and ``--oracle``: what every single change does to the KV and to each strategy's keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmkey.cli.output import CliError, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.console import Console

    from mmkey.cli.report import Pages
    from mmkey.study.matrix import Cell
    from mmkey.study.oracle.results import Oracle
    from mmkey.study.simulator import Settings


def matrix(settings: Settings, out: Path, messages: Console, pages: Pages, *, with_oracle: bool, as_json: bool) -> int:
    """Runs the matrix, and with ``with_oracle`` the real models; writes the results; 0 for PASS, 1 for FAIL."""
    from mmkey.cli.terminal import bars
    from mmkey.study.acceptance import judge_matrix
    from mmkey.study.base_request import Workshop
    from mmkey.study.matrix import about_this_matrix, matrix_json, run_matrix
    from mmkey.study.mutations import MUTATIONS
    from mmkey.study.staging import Staging

    run_oracle, models = _oracle() if with_oracle else (None, 0)
    with Staging(out) as staging, bars(messages, shown=True) as progress:
        workshop = Workshop(staging.folder / "inputs" / "mutations")
        cells = run_matrix(workshop, settings, progress=progress.steps("mutations", len(MUTATIONS)))
        oracle = None
        if run_oracle is not None:
            step = progress.steps("real models", models * len(MUTATIONS))
            oracle = run_oracle(workshop, settings, progress=step)
            staging.write_json("oracle.json", oracle.to_json())
        rows = matrix_json(cells, None if oracle is None else oracle.opinions())
        verdict = judge_matrix(rows)
        passed = verdict.passed and (oracle is None or oracle.passed)
        staging.write_json("matrix.json", rows)
        about = about_this_matrix(settings, verdict, pages.command, passed=passed)
        staging.write_json("matrix_run.json", {**about, "digests": dict(staging.digests)})
        pages.add(staging, messages)
        staging.commit(last="matrix.json")
    if as_json:
        print_json(rows)
    lines = [*verdict.lines, *(oracle.lines() if oracle else ())]
    _conclude(cells, oracle, lines, out, messages if as_json else None, passed=passed)
    return 0 if passed else 1


def _conclude(
    cells: Sequence[Cell],
    oracle: Oracle | None,
    lines: Sequence[str],
    out: Path,
    beside: Console | None,
    *,
    passed: bool,
) -> None:
    """The tables on stdout (none where JSON is there: ``beside`` it, on stderr, the lines alone), and PASS or FAIL."""
    from mmkey.cli.terminal import console, say
    from mmkey.study.matrix_table import print_matrix
    from mmkey.study.oracle_table import print_oracle

    where = beside or console()
    if beside is None:
        print_matrix(cells, where)
        if oracle is not None:
            print_oracle(oracle.to_json(), where)
    for line in lines:
        say(where, line)
    say(where, f"Results are in {out}.")
    say(where, "PASS" if passed else "FAIL", "bold green" if passed else "bold red")


def _oracle() -> tuple[Callable[..., Oracle], int]:
    """The oracle's run, and of how many models; a CliError where the extra is not installed."""
    try:
        from mmkey.study.oracle.run import MODELS, run_oracle
    except ImportError as problem:
        raise CliError(f"--oracle needs the extra 'oracle': pip install 'mmkey[oracle]' ({problem})") from None
    return run_oracle, len(MODELS)
