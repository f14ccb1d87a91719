"""``mmkey kernels`` and ``mmkey selftest``."""

from __future__ import annotations

import typer

from mmkey.cli.output import CliError, print_json

KERNELS_EXAMPLE = "Example: MMKEY_FORCE_KERNEL=portable mmkey kernels"
SELFTEST_EXAMPLE = "Example: mmkey selftest --json"
_JSON = typer.Option(False, "--json", help="Print JSON alone on stdout.")


def kernels(as_json: bool = _JSON) -> None:
    """Show which hash kernels run on this CPU."""
    import mmkey

    table = mmkey.kernels()
    if as_json:
        print_json(table)
        return
    for algorithm, uses in table.items():
        for use, found in uses.items():
            print(f"{algorithm:8}{use:8}{found['kernel']:12}of {', '.join(found['available'])}")


def selftest(as_json: bool = _JSON) -> None:
    """Check the hash kernels against known answers on this machine."""
    import time

    import mmkey

    begin = time.perf_counter()
    try:
        mmkey.selftest()
    except Exception as problem:
        if as_json:
            print_json({"ok": False, "problem": str(problem), "kernels": mmkey.kernels()})
        raise CliError(f"self-test failed: {problem}", exit_code=1) from problem
    milliseconds = (time.perf_counter() - begin) * 1e3
    if as_json:
        print_json({"ok": True, "milliseconds": round(milliseconds, 3), "kernels": mmkey.kernels()})
    else:
        print(f"ok: known answers hold ({milliseconds:.1f} ms)")
