"""Keys do not depend on the process that makes them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import logical
import reference

PRINT_KEYS = """
import json, logical, random
vectors = logical.load_vectors()
random.shuffle(vectors)  # nor on what was asked before
found = {}
for vector in vectors:
    for strategy in "CAB":
        keys = vector.plain.keys(strategy)
        found[f"{vector.number}{strategy}"] = [keys.request.hex(), [k.hex() for k in keys.blocks]]
print(json.dumps(found))
"""


def run(script: str, **environment: str | None) -> str:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)} | environment
    env = {k: v for k, v in env.items() if v is not None}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("seed", [None, "0", "1", "random"])
def test_keys_are_equal_in_every_process_whatever_the_hash_seed(seed):
    expected = {}
    for vector in logical.load_vectors():
        for strategy in reference.STRATEGIES:
            keys = vector.keys(strategy)
            expected[f"{vector.number}{strategy}"] = [keys.request.hex(), [k.hex() for k in keys.blocks]]
    assert json.loads(run(PRINT_KEYS, PYTHONHASHSEED=seed)) == expected


@pytest.mark.parametrize("settings", [{"LC_ALL": "C"}, {"PYTHONUTF8": "0", "LANG": "C"}, {"PYTHONOPTIMIZE": "2"}])
def test_keys_do_not_depend_on_locale_or_optimisation(settings):
    script = """
import mmkey
engine = mmkey.KeyEngine("C", model_id="m\\u00e9", config={"x": 0.1, "\\u56fe": [1.5, "\\u00fc"]})
print(engine.scope_text)
"""
    scope = reference.scope_digest("sha256", "m\u00e9", {"x": 0.1, "\u56fe": [1.5, "\u00fc"]})
    assert run(script, **settings).strip() == f"mmkey1:scope:sha256:{scope.hex()}"


def test_these_keys_never_move():
    """Written down once, and by hand: H(enc(["mmkey/A/1", tokens])) for no tokens and for 1, 2, 3."""
    import mmkey

    empty = bytes.fromhex("82 69") + b"mmkey/A/1" + bytes.fromhex("d846 40")
    three = bytes.fromhex("82 69") + b"mmkey/A/1" + bytes.fromhex("d846 4c 01000000 02000000 03000000")
    assert mmkey.text_only_cache_key([]) == hashlib.sha256(empty).digest()
    assert mmkey.text_only_cache_key([1, 2, 3]) == hashlib.sha256(three).digest()
