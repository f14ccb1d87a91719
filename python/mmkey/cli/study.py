"""``mmkey study``: seven scenarios, or the user's own pictures; every single change; or a sweep of caches."""

from __future__ import annotations

from pathlib import Path

import typer

from mmkey.cli import study_matrix, study_scenarios, study_sweep
from mmkey.cli.output import CliError, at_least, choose, command_line
from mmkey.cli.report import LANGUAGES, Pages

_NOT_THE_RUN = ("--out", "--json", "--lang", "--no-html")  # options that change where results go, not what they are

EXAMPLE = "Example: mmkey study --images ~/photos --out results"


def study(
    context: typer.Context,
    out_dir: str = typer.Option("results", "--out", metavar="DIR", help="Where the results go."),
    scenario: list[str] = typer.Option([], "--scenario", metavar="NAME", help="Run this one only; may be repeated."),
    images: Path | None = typer.Option(
        None, "--images", metavar="DIR", help="Use the JPEG, PNG and WebP files of this folder, not drawn ones."
    ),
    video: Path | None = typer.Option(
        None, "--video", metavar="FILE", help="Use this clip, not a drawn one (needs the extra 'video')."
    ),
    matrix: bool = typer.Option(False, "--matrix", help="Run every single change of one request instead."),
    oracle: bool = typer.Option(
        False, "--oracle", help="The matrix, and tiny real models as its judge (needs the extra 'oracle')."
    ),
    strategies: str = typer.Option("", "--strategies", metavar="A,B,C", help="Sweep: a stream through these caches."),
    algorithms: str = typer.Option("", "--algorithms", metavar="NAME,...", help="Sweep: sha256, blake3 or both."),
    block_sizes: str = typer.Option("", "--block-sizes", metavar="N,...", help="Sweep: tokens of a block."),
    capacity: str = typer.Option("", "--capacity", metavar="N,...", help="Sweep: the most blocks stored."),
    requests: int | None = typer.Option(None, "--requests", metavar="N", help="Sweep: requests of the stream (5000)."),
    seed: int | None = typer.Option(None, "--seed", metavar="N", help="Sweep: what the stream is drawn from (0)."),
    algorithm: str = typer.Option("sha256", "--algorithm", metavar="NAME", help="sha256 or blake3."),
    block_size: int = typer.Option(12, "--block-size", metavar="N", help="Tokens of a KV block."),
    kv_bytes: int = typer.Option(256, "--kv-bytes", metavar="N", help="Bytes of KV of one token."),
    no_html: bool = typer.Option(False, "--no-html", help="Write no pages beside the JSON."),
    lang: str = typer.Option("en", "--lang", metavar="en|zh", help="The language of the pages."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON alone on stdout."),
) -> int:
    """Run seven scenarios through the three strategies: which of them serves another picture's KV?

    Writes the inputs, a JSON file for each scenario, summary.json, run.json, media.json and evidence.txt. With --matrix
    or --oracle matrix.json and oracle.json; with any of the sweep's lists sweep.json. And pages: open index.html.
    Ends with PASS or FAIL, and exits with 1 on FAIL.
    """
    from mmkey.cli.terminal import console
    from mmkey.study.interrupts import ends_by_unwinding
    from mmkey.study.keys import ALGORITHMS
    from mmkey.study.simulator import Settings
    from mmkey.study.stream import Stream
    from mmkey.study.sweep import configurations
    from mmkey.study.verdicts import STRATEGIES

    settings = Settings(
        choose("--algorithm", algorithm, ALGORITHMS),
        at_least("--block-size", block_size, 1),
        at_least("--kv-bytes", kv_bytes, 1),
    )
    if not out_dir:
        raise CliError("--out: empty; name a folder")
    lists = {
        "--strategies": strategies,
        "--algorithms": algorithms,
        "--block-sizes": block_sizes,
        "--capacity": capacity,
    }
    kinds: tuple[dict[str, object], ...] = (
        {"--matrix": matrix, "--oracle": oracle},
        {"--scenario": scenario, "--images": images, "--video": video},
        {**lists},
    )
    asked = [next(name for name, value in kind.items() if value) for kind in kinds if any(kind.values())]
    if len(asked) > 1:
        raise CliError(f"{asked[1]}: not together with {asked[0]}")
    for name, number in (("--requests", requests), ("--seed", seed)):
        if number is not None and not any(lists.values()):
            raise CliError(f"{name}: only with one of {', '.join(lists)}")
    out, messages = Path(out_dir), console(stderr=True)
    pages = Pages(None if no_html else choose("--lang", lang, LANGUAGES), command_line(context, *_NOT_THE_RUN))
    with ends_by_unwinding():
        if matrix or oracle:
            return study_matrix.matrix(settings, out, messages, pages, with_oracle=oracle, as_json=as_json)
        if any(lists.values()):
            chosen = configurations(
                study_sweep.names("--strategies", strategies or ",".join(STRATEGIES), STRATEGIES),
                study_sweep.names("--algorithms", algorithms or algorithm, ALGORITHMS),
                study_sweep.counts("--block-sizes", block_sizes or str(block_size)),
                study_sweep.counts("--capacity", capacity) if capacity else [None],
            )
            stream = Stream(at_least("--requests", 5000 if requests is None else requests, 1), seed or 0)
            return study_sweep.sweep(stream, chosen, kv_bytes, out, messages, pages, as_json=as_json)
        return study_scenarios.scenarios(settings, scenario, images, video, out, messages, pages, as_json=as_json)
