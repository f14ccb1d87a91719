"""Every check of the project by name: `nox -l` lists them, `nox -s lint types` runs two."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.sessions = ["lint", "types", "tests-3.11", "cpp(dev)"]
nox.options.error_on_missing_interpreters = "CI" in os.environ

PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
STUBTEST = ["mypy.stubtest", "mmkey._core", "--mypy-config-file", "pyproject.toml", "--allowlist"]
PRESETS = ["dev", "asan-ubsan", "tsan", "portable", "clang"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the Python tests against an installed build."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def oracle(session: nox.Session) -> None:
    """Run the tests of the keys before tiny real models, and of tensors; installs torch and Transformers."""
    session.install(".[test,oracle]")
    tests = ["tests/python/test_study_oracle.py", "tests/python/test_containers.py"]
    session.run("pytest", *tests, *session.posargs, env={"MMKEY_REQUIRE_ORACLE": "1"})


@nox.session
def browser(session: nox.Session) -> None:
    """Open the pages in Chromium (Debian: chromium), which must be there."""
    session.install(".[test,browser]")
    session.run("pytest", "-m", "browser", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Run every pre-commit hook on every file."""
    session.install(".[dev]")
    session.run("pre-commit", "run", "--all-files", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly, and the stubs against the extension."""
    session.install(".[dev]")
    session.run("mypy")
    session.run("python", "-m", *STUBTEST, "tests/stubtest-allowlist.txt")


@nox.session
def imports(session: nox.Session) -> None:
    """Check who may import and include whom."""
    session.install(".[test]")
    session.run("pytest", "tests/python/test_architecture.py", *session.posargs)


def preset(session: nox.Session, name: str) -> None:
    """Configure, build and test one CMake preset."""
    session.run("cmake", "--preset", name, external=True)
    session.run("cmake", "--build", "--preset", name, "-j2", external=True)
    session.run("ctest", "--preset", name, *session.posargs, external=True)


@nox.session(venv_backend="none")
@nox.parametrize("preset_name", PRESETS, ids=PRESETS)
def cpp(session: nox.Session, preset_name: str) -> None:
    """Run the C++ tests under each preset; needs cmake, ninja, doctest and nlohmann-json."""
    preset(session, preset_name)


@nox.session(venv_backend="none")
def aarch64(session: nox.Session) -> None:
    """Cross-build for 64-bit Arm and run the C++ tests in QEMU; needs g++-aarch64-linux-gnu and qemu-user-static."""
    preset(session, "aarch64")


@nox.session
def tidy(session: nox.Session) -> None:
    """Run clang-tidy over the core, with the dev preset's compile commands."""
    session.install("clang-tidy==23.1.4")
    session.run("cmake", "--preset", "dev", external=True)
    sources = sorted(str(p) for p in Path("cpp/src").glob("*.cpp"))
    session.run("run-clang-tidy", "-quiet", "-j2", "-p", "build-dev", *(session.posargs or sources))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure; JSON goes to .benchmarks, to be compared with `pytest-benchmark compare`."""
    session.install(".[test]")
    session.run(
        "pytest", "benchmarks", "--benchmark-enable", "--benchmark-only", "--benchmark-autosave", *session.posargs
    )


@nox.session
def bench_index(session: nox.Session) -> None:
    """Measure the prefix index against its yardsticks, Dynamo's RadixTree among them; takes 3 GB and two minutes."""
    session.install(".", "ai-dynamo-runtime")
    session.run("python", "benchmarks/bench_index.py", *session.posargs)


@nox.session(python=PYTHONS)
def dist(session: nox.Session) -> None:
    """Build sdist and wheel, install each into an environment of its own, and run the tests on each."""
    session.install("build")
    out = Path(session.create_tmp())
    session.run("python", "-m", "build", "--outdir", str(out), external=False)
    for made in (max(out.glob("*.whl")), max(out.glob("*.tar.gz"))):
        session.run("python", "-m", "venv", "--clear", str(out / "venv"))
        python = str(out / "venv" / "bin" / "python")
        session.run(python, "-m", "pip", "install", "--quiet", f"{made}[test]", external=True)
        session.run(python, "-m", "pytest", *session.posargs, external=True)
