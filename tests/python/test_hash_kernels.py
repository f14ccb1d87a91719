"""Each kernel, forced in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmkey import hashing

ISAS = sorted({isa for rows in hashing.kernels().values() for row in rows.values() for isa in row["available"]})
TESTS = Path(__file__).with_name("test_hash.py")


def run(script: str, isa: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MMKEY_FORCE_KERNEL": isa}
    return subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600, check=False
    )


def test_the_table_says_what_runs() -> None:
    table = hashing.kernels()
    assert set(table) == {"sha256", "blake3"}
    for rows in table.values():
        for row in rows.values():
            assert row["kernel"] in row["available"]
            assert row["available"][-1] == "portable"
    json.dumps(table)
    assert hashing.selftest() is None


@pytest.mark.parametrize("isa", ISAS)
def test_a_forced_kernel_serves_wherever_it_exists(isa: str) -> None:
    script = "import json; from mmkey import hashing; hashing.selftest(); print(json.dumps(hashing.kernels()))"
    result = run(script, isa)
    assert result.returncode == 0, result.stderr
    for rows in json.loads(result.stdout).values():
        for row in rows.values():
            assert (row["kernel"] == isa) == (isa in row["available"])


@pytest.mark.parametrize("isa", ISAS)
def test_a_forced_kernel_gives_the_digests_of_the_standard(isa: str) -> None:
    names = "standard or recipe or pieces or batch or whatever_the_threads or c_order or position"
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, str(TESTS)]
    env = {**os.environ, "MMKEY_FORCE_KERNEL": isa}
    result = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:]


def test_a_kernel_that_is_not_there_fails_the_import_and_says_what_is() -> None:
    result = run("import mmkey.hashing", "avx1024")
    assert result.returncode != 0
    assert "MMKEY_FORCE_KERNEL" in result.stderr
    assert "avx1024" in result.stderr
    assert "portable" in result.stderr
