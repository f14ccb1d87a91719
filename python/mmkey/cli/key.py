"""``mmkey key``: the keys of a request file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mmkey.cli.output import CliError, at_least, choose, print_json
from mmkey.errors import MmkeyError

if TYPE_CHECKING:
    import mmkey
    from mmkey.cli.request_file import RequestFile

EXAMPLE = "Example: mmkey key docs/examples/request.json --strategy all --partial"


def key(
    file: str | None = typer.Argument(None, metavar="FILE", help="A request file, or - for stdin."),
    strategy: str = typer.Option("C", "--strategy", metavar="A|B|C|all", help="Whose keys to print."),
    algorithm: str | None = typer.Option(
        None, "--algorithm", metavar="NAME", help="sha256 or blake3; goes before the file's."
    ),
    block_size: int | None = typer.Option(
        None, "--block-size", metavar="N", help="Tokens of a block; goes before the file's."
    ),
    partial: bool = typer.Option(False, "--partial", help="Also the key of the partial block at the end."),
    schema: bool = typer.Option(False, "--schema", help="Print the JSON Schema of a request file and leave."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON alone on stdout."),
) -> None:
    """Print the request key and the block keys of a request file.

    The file is JSON: token ids; items, each with a path, data URI or digest and its metadata; layout; model. Relative
    paths start at the file's folder (for stdin: here).
    """
    from mmkey.cli.request_file import json_schema, read_request

    if schema:
        print_json(json_schema())
        return
    if file is None:
        raise CliError("FILE: missing; name a request file, or - for stdin")
    strategies = "ABC" if choose("--strategy", strategy, ("A", "B", "C", "all")) == "all" else strategy
    if algorithm is not None:
        choose("--algorithm", algorithm, ("sha256", "blake3"))
    if block_size is not None:
        at_least("--block-size", block_size, 1)
    data, folder = (_read_stdin(), Path()) if file == "-" else _read(Path(file))
    name = "stdin" if file == "-" else file
    try:
        loaded = read_request(data)
        request = loaded.request(folder)
        engines = {s: loaded.engine(s, algorithm, block_size) for s in strategies}
        found = {s: _keys(s, engine, request, loaded, partial=partial) for s, engine in engines.items()}
    except (CliError, MmkeyError) as problem:
        raise CliError(f"{name}: {problem}") from None
    if as_json:
        head = {
            "tokens": len(loaded.token_ids),
            "algorithm": algorithm or loaded.algorithm,
            "block_size": block_size or loaded.block_size,
        }
        print_json(head | {"keys": found})
    else:
        _print_text(found)


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise CliError("stdin: is closed")
    try:
        return sys.stdin.buffer.read()
    except OSError as problem:
        raise CliError(f"stdin: {problem.strerror or problem}") from None


def _read(path: Path) -> tuple[bytes, Path]:
    """A file's bytes, and the folder that it is in."""
    try:
        return path.read_bytes(), path.parent
    except (OSError, ValueError) as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
        raise CliError(f"{path}: {reason}") from None


def _keys(
    strategy: str, engine: mmkey.KeyEngine, request: mmkey.Request, loaded: RequestFile, *, partial: bool
) -> dict[str, Any]:
    """All that one strategy says of a request, in text forms."""
    import mmkey

    prepared = engine.prepare(request, placeholder_ids=loaded.placeholder_ids)
    algorithm = engine.algorithm
    out: dict[str, Any] = {
        "request": mmkey.format_key(engine.key(prepared), strategy, algorithm),
        "unsafe": list(prepared.unsafe),
        "root": engine.root.hex(),
    }
    if strategy == "C":
        out |= {"scope": engine.scope_text, "items": list(prepared.item_texts)}
    if strategy == "B" and loaded.layout is None and loaded.items:
        return out | {"blocks": None, "partial": None, "why_no_blocks": "block keys of B with items need a layout"}
    keys = [key.tobytes() for key in engine.block_keys(prepared, partial=partial)]
    full = len(loaded.token_ids) // engine.block_size
    return out | {
        "blocks": [mmkey.format_key(key, strategy, algorithm, "block") for key in keys[:full]],
        "partial": mmkey.format_key(keys[full], strategy, algorithm, "partial") if keys[full:] else None,
    }


def _print_text(found: dict[str, dict[str, Any]]) -> None:
    for strategy, keys in found.items():
        lines = [("request", keys["request"])]
        lines += [("scope", keys["scope"])] if "scope" in keys else []
        lines += [(f"item {i}", text) for i, text in enumerate(keys.get("items", ()))]
        lines += [(f"block {i}", text) for i, text in enumerate(keys["blocks"] or ())]
        lines += [("partial", keys["partial"])] if keys["partial"] else []
        lines += [("no blocks", keys["why_no_blocks"])] if "why_no_blocks" in keys else []
        lines += [("unsafe", reason) for reason in keys["unsafe"]]
        width = max(len(label) for label, _ in lines)
        print(f"strategy {strategy}")
        for label, text in lines:
            print(f"  {label:{width}}  {text}")
