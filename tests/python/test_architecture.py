"""Who may know whom, in Python and in C++: the rules of HACKING.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "mmkey"
BINDS_THE_CORE = {"__init__", "hashing", "content", "request", "engine", "index", "_pictures"}
OPTIONAL = [
    "PIL", "av", "blake3", "cbor2", "fastapi", "jinja2", "jsonschema", "matplotlib", "ml_dtypes", "msgpack", "openai",
    "pydantic", "rich", "tokenizers", "torch", "torchvision", "transformers", "typer", "vllm", "zmq",
]  # fmt: skip


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True)


# ---------------------------------------------------------------- Python


def imported(path: Path) -> set[str]:
    """Every module that a file of the package imports, at any depth, but for type checkers alone."""
    names: set[str] = set()
    package = ["mmkey", *path.relative_to(PACKAGE).parent.parts]

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return names


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_facade_imports_the_extension(path: Path) -> None:
    uses = any(name == "mmkey._core" or name.startswith("mmkey._core.") for name in imported(path))
    assert not uses or (path.parent == PACKAGE and path.stem in BINDS_THE_CORE)


@pytest.mark.parametrize("path", sorted((PACKAGE / "study" / "report").rglob("*.py")), ids=lambda p: p.stem)
def test_the_report_sees_results_only(path: Path) -> None:
    ours = {name for name in imported(path) if name == "mmkey" or name.startswith("mmkey.")}
    allowed = ("report", "errors", "verdicts", "acceptance", "digests")
    assert all(name.startswith(tuple(f"mmkey.study.{part}" for part in allowed)) for name in ours), ours


def test_layers_and_optional_dependencies_are_as_import_linter_has_them() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_mmkey_imports_nothing_optional() -> None:
    done = run_python(f"""
        import sys, mmkey
        print(sorted(set({OPTIONAL}) & set(sys.modules)), sorted(m for m in sys.modules if m.startswith("mmkey.")))
    """)
    assert done.returncode == 0, done.stderr
    optional, own = done.stdout.split("] [")
    assert optional == "["
    assert not re.search(r"mmkey\.(cli|study|integrations|fleet)", own)


def test_keys_are_made_with_every_optional_package_blocked() -> None:
    done = run_python(f"""
        import sys
        for name in {OPTIONAL}:
            sys.modules[name] = None  # importing it raises ImportError
        import mmkey
        content = mmkey.Content.from_bytes(b"a file")
        item = mmkey.Image(content, original_size=(2, 2), resized_size=(2, 2), patch_grid=(2, 2), num_visual_tokens=1)
        request = mmkey.Request([1, 2, 3], [item], [(1, 1)])
        for engine in (mmkey.KeyEngine("A"), mmkey.KeyEngine("B"), mmkey.KeyEngine("C", model_id="m", config={{}})):
            assert len(engine.key(request)) == 32
    """)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- C++

C_HEADERS = {"stdint.h", "stddef.h", "string.h", "cstdint", "cstddef", "cstring"}
INTRINSICS = {"immintrin.h", "x86intrin.h", "arm_neon.h", "arm_acle.h"}
# Public headers that each part of the core may include, besides its own and error.h.
MAY_KNOW = {
    "bytes": set(),
    "cpu": set(),
    "error": set(),
    "cbor": {"bytes"},
    "hash": {"bytes", "cpu"},
    "item": {"bytes", "cbor", "hash"},
    "request": {"bytes", "cbor", "hash", "item"},
    "keys": {"bytes", "cbor", "hash", "item", "request"},
    "block_chain": {"bytes", "cbor", "hash", "item", "request"},
    "radix": {"bytes", "request"},  # the parts of the index
    "radix_index": {"bytes", "request"},
    "radix_events": {"bytes", "request", "block_chain", "radix_index"},
}


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE)


def sources(*patterns: str) -> list[Path]:
    found = sorted(p for pattern in patterns for p in ROOT.glob(pattern))
    assert found, f"no file matches {patterns}"
    return found


def ident(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources("cpp/src/kernels/*"), ids=ident)
def test_kernels_include_their_siblings_intrinsics_and_c_headers_only(path: Path) -> None:
    siblings = {p.name for p in path.parent.iterdir() if p.suffix in {".h", ".inc"}}
    assert set(includes(path)) <= siblings | C_HEADERS | INTRINSICS


@pytest.mark.parametrize("path", sources("cpp/include/mmkey/*.h", "cpp/src/*.cpp", "cpp/src/*.h"), ids=ident)
def test_each_part_of_the_core_knows_what_it_may(path: Path) -> None:
    parts = [part for part in MAY_KNOW if path.stem == part or path.stem.startswith(f"{part}_")]
    if path.name == "mmkey.h":  # the C interface: no C++ in it
        assert set(includes(path)) <= C_HEADERS
        return
    if path.stem in {"mmkey", "c_api"}:
        return
    assert parts, f"{ident(path)} belongs to no known part of the core"
    part = max(parts, key=len)
    known = {Path(name).stem for name in includes(path) if name.startswith("mmkey/")}
    assert known <= MAY_KNOW[part] | {part, "error"}


@pytest.mark.parametrize("path", sources("cpp/include/mmkey/*.h", "cpp/src/**/*.cpp", "cpp/src/**/*.h"), ids=ident)
def test_the_core_knows_no_python_and_kernels_are_behind_the_hash(path: Path) -> None:
    names = includes(path)
    assert not [name for name in names if name.startswith(("Python", "pybind11"))]
    if not path.stem.startswith("hash") and path.parent.name != "kernels":
        assert not [name for name in names if "kernels" in name]
    if path.parent.name == "mmkey":
        assert not [name for name in names if name.startswith("..") or "/src/" in name]


@pytest.mark.parametrize("path", sources("src/*.cpp", "src/*.h"), ids=ident)
def test_bindings_include_public_headers_and_no_other_binding(path: Path) -> None:
    names = includes(path)
    public = {f"mmkey/{p.name}" for p in ROOT.glob("cpp/include/mmkey/*.h")}
    shared = {p.name for p in path.parent.glob("*.h") if not p.name.startswith("bind_")}
    local = [
        name for name in names if (path.parent / name).exists() or name.startswith(("mmkey/", ".")) or "cpp/" in name
    ]
    assert set(local) <= public | shared
    assert not [name for name in names if Path(name).stem.startswith("bind_") and name not in shared]
