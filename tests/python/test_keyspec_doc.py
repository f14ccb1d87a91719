"""The worked example of docs/keyspec.md: its bytes agree with hashlib, cbor2 and this library."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import cbor2
import pytest

import mmkey

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "keyspec.md").read_text(encoding="utf-8")
(EXAMPLE,) = (json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
(LISTING,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
LINES = LISTING.splitlines()
STEPS = {LINES[i]: (bytes.fromhex(LINES[i + 1]), bytes.fromhex(LINES[i + 2])) for i in range(0, len(LINES), 3)}


def engine(strategy: str) -> mmkey.KeyEngine:
    scope = dict(EXAMPLE["scope"])
    given = {"algorithm": EXAMPLE["algorithm"], "block_size": EXAMPLE["block_size"], "salt": scope.pop("salt")}
    if strategy == "C":
        given |= scope | {"adapter": tuple(scope["adapter"])}
    return mmkey.KeyEngine(strategy, **given)


def request() -> mmkey.Request:
    fields = dict(EXAMPLE["item"])
    content = mmkey.Content.from_bytes(fields.pop("file").encode())
    return mmkey.Request(EXAMPLE["token_ids"], [mmkey.Item(content, **fields)], [tuple(r) for r in EXAMPLE["layout"]])


@pytest.mark.parametrize("name", STEPS)
def test_each_digest_is_the_sha256_of_its_message(name: str) -> None:
    message, digest = STEPS[name]
    assert hashlib.sha256(message).digest() == digest


@pytest.mark.parametrize("name", STEPS)
def test_each_message_is_one_value_in_canonical_cbor(name: str) -> None:
    message, _ = STEPS[name]
    assert cbor2.dumps(cbor2.loads(message), canonical=True) == message


def test_the_messages_hold_the_values_of_the_example() -> None:
    tokens = cbor2.CBORTag(70, b"".join(t.to_bytes(4, "little") for t in EXAMPLE["token_ids"]))
    picture, scope = EXAMPLE["item"], EXAMPLE["scope"]
    content = ["bytes", "sha256", hashlib.sha256(picture["file"].encode()).digest()]
    salt = scope["salt"].encode()
    value: dict[str, Any] = {name: cbor2.loads(message) for name, (message, _) in STEPS.items()}
    digest = {name: digest for name, (_, digest) in STEPS.items()}
    assert value["item"] == [
        "mmkey/item/1", "image", content, picture["original_size"], picture["resized_size"],
        [1, *picture["patch_grid"]], picture["num_visual_tokens"], None, picture["processing"],
    ]  # fmt: skip
    assert value["scope"] == ["mmkey/scope/1", *(scope[k] for k in ("model_id", "revision", "config", "adapter")), salt]
    assert value["placed B"] == ["mmkey/placed/1", content, [[0, 4]]]
    assert value["placed C"] == ["mmkey/placed/1", digest["item"], [[0, 4]]]
    assert value["key A"] == ["mmkey/A/1", tokens, salt]
    assert value["key B"] == ["mmkey/B/1", tokens, [content], salt]
    assert value["key C"] == ["mmkey/C/1", digest["scope"], tokens, [digest["item"]], EXAMPLE["layout"], [0]]
    for strategy in "ABC":
        seed = digest["scope"] if strategy == "C" else salt
        assert value[f"root {strategy}"] == ["mmkey/chain/1", strategy, EXAMPLE["block_size"], seed]


@pytest.mark.parametrize("strategy", "ABC")
def test_parents_lie_whole_in_the_final_compression(strategy: str) -> None:
    parent = STEPS[f"root {strategy}"][1]
    for i in range(3):
        message, digest = STEPS[f"block {strategy} {i}"]
        assert message.endswith(parent)
        assert (len(message) - 32) % 64 <= 23
        assert (len(message) + 9 + 63) // 64 == (len(message) - 32) // 64 + 1  # with SHA-256's own padding
        parent = digest


@pytest.mark.parametrize("strategy", "ABC")
def test_the_library_gives_the_keys_of_the_example(strategy: str) -> None:
    maker = engine(strategy)
    assert maker.root == STEPS[f"root {strategy}"][1]
    assert maker.key(request()) == STEPS[f"key {strategy}"][1]
    blocks = maker.block_keys(request(), partial=True)
    assert [row.tobytes() for row in blocks] == [STEPS[f"block {strategy} {i}"][1] for i in range(len(blocks))]
    assert len(blocks) == 3


def test_the_library_gives_the_item_and_scope_of_the_example() -> None:
    maker = engine("C")
    assert maker.scope_text == f"mmkey1:scope:sha256:{STEPS['scope'][1].hex()}"
    assert maker.prepare(request()).item_texts == (f"mmkey1:item:sha256:{STEPS['item'][1].hex()}",)
