"""``mmkey study`` as it comes: the seven scenarios, on drawn pictures or the user's own, and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmkey.cli.output import CliError, choose, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from mmkey.cli.report import Pages
    from mmkey.cli.terminal import Bars
    from mmkey.study.acceptance import Acceptance
    from mmkey.study.clips import ClipFile
    from mmkey.study.results import ScenarioResult
    from mmkey.study.scenarios import Scenario
    from mmkey.study.simulator import Settings
    from mmkey.study.sources import Source


def scenarios(
    settings: Settings,
    wanted: Sequence[str],
    images: Path | None,
    video: Path | None,
    out: Path,
    messages: Console,
    pages: Pages,
    *,
    as_json: bool,
) -> int:
    """Runs the scenarios and writes the results; 0 for PASS, 1 for FAIL."""
    from mmkey.cli.terminal import bars, console
    from mmkey.study.acceptance import accept
    from mmkey.study.results import write_all
    from mmkey.study.run import about_this_run, expected_cases, run_study
    from mmkey.study.scenarios import BY_NAME
    from mmkey.study.staging import Staging
    from mmkey.study.thumbnails import Thumbnails

    names = {choose("--scenario", name, tuple(BY_NAME)) for name in wanted} or set(BY_NAME)
    chosen = [s for s in BY_NAME.values() if s.name in names]
    with Staging(out) as staging, bars(messages, shown=images is not None) as progress:
        inputs = staging.folder / "inputs"
        source, skipped = _source(images, chosen, inputs, progress, messages)
        clip = _clip(video, chosen, inputs)
        step = progress.steps("judging", expected_cases(chosen, source))
        thumbnails = Thumbnails()
        results = run_study(chosen, source, clip, settings, step, thumbnails)
        summary = [result.to_json() for result in results]
        acceptance = accept(summary)
        about = about_this_run(settings, source, skipped, acceptance, pages.command)
        write_all(staging, summary, acceptance, about, thumbnails.by_name)
        pages.add(staging, messages)
        staging.commit(last="evidence.txt")
    if as_json:
        print_json(summary)
    _conclude(results, acceptance, out, messages if as_json else console())
    return 0 if acceptance.passed else 1


def _conclude(results: Sequence[ScenarioResult], acceptance: Acceptance, out: Path, where: Console) -> None:
    """The table on stdout (none beside JSON), where the files are, and PASS or FAIL as the last line."""
    from mmkey.cli.terminal import say
    from mmkey.study.table import print_table

    if not where.stderr:
        print_table(results, where)
    for line in acceptance.lines:
        say(where, line)
    say(where, f"Results are in {out}.")
    say(where, "PASS" if acceptance.passed else "FAIL", "bold green" if acceptance.passed else "bold red")


def _source(
    images: Path | None, chosen: Sequence[Scenario], inputs: Path, progress: Bars, messages: Console
) -> tuple[Source, list[tuple[str, str]]]:
    """The drawn pictures, or the user's folder looked through once; and what was skipped of it, told as it is found."""
    from mmkey.cli.terminal import say
    from mmkey.study.sources import DrawnPictures, FolderOfPictures, list_folder

    if images is None:
        return DrawnPictures(inputs), []
    try:
        paths = list_folder(images)
    except (OSError, ValueError) as problem:
        raise CliError(f"--images {images}: {_reason(problem)}") from None
    skipped: list[tuple[str, str]] = []

    def skip(name: str, reason: str) -> None:
        skipped.append((name, reason))
        say(messages, f"skipped {name}: {reason}")

    source = FolderOfPictures.scan(images, progress.over("looking at pictures", paths), skip)
    source.require(chosen)
    return source, skipped


def _clip(video: Path | None, chosen: Sequence[Scenario], inputs: Path) -> ClipFile | None:
    from mmkey.study.clips import open_clip
    from mmkey.study.run import drawn_clip

    with_clip = [scenario for scenario in chosen if scenario.clip]
    if not with_clip:
        if video is not None:
            raise CliError(f"--video {video}: none of the scenarios chosen shows a clip")
        return None
    if video is None:
        return drawn_clip(inputs / with_clip[0].name)
    try:
        return open_clip(video, video.name)
    except (OSError, ValueError) as problem:
        raise CliError(f"--video {video}: {_reason(problem)}") from None


def _reason(problem: Exception) -> str:
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
