"""The ``mmkey`` command: its list of commands, and what every error becomes.

A command is a module of this package with a function that Typer reads. It imports what is heavy inside that function,
so that ``mmkey --help`` loads Typer alone. A command raises CliError, or lets the library's own errors through: here
each becomes one line on stderr and an exit code.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from mmkey import errors
from mmkey.cli import bench, kernels, key, report, study
from mmkey.cli.output import CliError, complain
from mmkey.study.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Typer's usage errors derive from click's, which newer releases of Typer carry within themselves.
_ClickError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="mmkey",
    help="KV-cache keys for prompts with pictures, video and audio: safe, and fast.",
    epilog="Begin with: mmkey study",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("study", epilog=study.EXAMPLE)(study.study)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("key", epilog=key.EXAMPLE)(key.key)
app.command("bench", epilog=bench.EXAMPLE)(bench.bench)
app.command("kernels", epilog=kernels.KERNELS_EXAMPLE)(kernels.kernels)
app.command("selftest", epilog=kernels.SELFTEST_EXAMPLE)(kernels.selftest)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"mmkey {installed('mmkey')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


def _stdout_fails() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _drop_stdout() -> None:
    """Python flushes stdout once more at exit: let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(argv: Sequence[str]) -> int:
    """Runs one command line. 0: done; 1: the command's own verdict is no; 2: bad usage or input; 130: interrupted."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=list(argv), prog_name="mmkey", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # what Typer makes of Ctrl-C in a command
            complain("interrupted")
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return 130
    except CliError as problem:
        complain(str(problem))
        return problem.exit_code
    except (StudyError, errors.MmkeyError) as problem:
        complain(str(problem))
        return 2
    except BrokenPipeError:
        _drop_stdout()  # the reader has gone (mmkey ... | head)
        return 1
    except OSError as problem:
        where = problem.filename
        if where is None and _stdout_fails():
            where = "stdout"
            _drop_stdout()
        complain(f"{where or 'input or output'}: {problem.strerror or problem}")
        return 2
    except _ClickError as problem:
        complain(f"{problem.format_message()} (see mmkey --help)")  # type: ignore[attr-defined]
        return 2
