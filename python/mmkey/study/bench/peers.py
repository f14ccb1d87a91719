"""The same work as it is usually done in Python: hashlib or blake3 over pickled or CBOR-encoded tuples."""

from __future__ import annotations

import functools
import hashlib
import pickle
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from mmkey.study.bench.workloads import BLOCK_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mmkey.study.bench.workloads import Prompt


class Hasher(Protocol):
    """What ``hashlib.sha256(data)`` gives."""

    def digest(self) -> bytes:
        """The digest."""


def installed(module: str) -> bool:
    """Whether an optional peer is there to be compared with."""
    return find_spec(module) is not None


def hash_of(algorithm: str) -> Callable[[Any], Hasher] | None:
    """``hashlib.sha256``, or PyPI's ``blake3`` where it is installed."""
    if algorithm == "sha256":
        return hashlib.sha256
    return import_module("blake3").blake3 if installed("blake3") else None


def pickled() -> Callable[[object], bytes]:
    """The encoder of vLLM's default block hash."""
    return functools.partial(pickle.dumps, protocol=pickle.HIGHEST_PROTOCOL)


def canonical_cbor() -> Callable[[object], bytes] | None:
    """The encoder of its portable one, where cbor2 is installed."""
    if not installed("cbor2"):
        return None
    return functools.partial(import_module("cbor2").dumps, canonical=True)


def chain_of_tuples(
    token_ids: Sequence[int],
    hasher: Callable[[Any], Hasher],
    encode: Callable[[object], bytes],
    extras: dict[int, tuple[bytes, ...]] | None = None,
) -> list[bytes]:
    """Block hashes: of a tuple (parent, ids, digests of the block's pictures) each. `token_ids` is a list of int."""
    extras = extras or {}
    parent = bytes(32)
    keys = []
    for block in range(len(token_ids) // BLOCK_SIZE):
        ids = tuple(token_ids[block * BLOCK_SIZE : (block + 1) * BLOCK_SIZE])
        parent = hasher(encode((parent, ids, extras.get(block)))).digest()
        keys.append(parent)
    return keys


def usual(prompt: Prompt, hasher: Callable[[Any], Hasher]) -> list[bytes]:
    """A request in the usual way: a digest of each picture's bytes, and block hashes of pickled tuples with them."""
    digests = [hasher(picture).digest() for picture in prompt.media]
    extras: dict[int, tuple[bytes, ...]] = {}
    for digest, (offset, length) in zip(digests, prompt.layout, strict=True):
        for block in range(offset // BLOCK_SIZE, (offset + length - 1) // BLOCK_SIZE + 1):
            extras[block] = (*extras.get(block, ()), digest)
    return chain_of_tuples(prompt.token_list, hasher, pickled(), extras)


def ready_messages(token_ids: Any, root: bytes) -> list[bytes]:
    """The very messages of a chain of strategy A, SHA-256, 16 tokens a block, as the key specification has them.

    `token_ids`: uint32 array. With them, a loop of hashlib has nothing to do but hash.
    """
    if BLOCK_SIZE != 16:
        raise ValueError("the opening and the pad below are those of blocks of 16")
    opening, end = b"\x84\xd8\x46\x58\x40", b"\x80\x40\x58\x20"
    raw = token_ids.astype("<u4").tobytes()
    messages = []
    parent = root
    for begin in range(0, len(raw) // 64 * 64, 64):
        message = opening + raw[begin : begin + 64] + end + parent
        parent = hashlib.sha256(message).digest()
        messages.append(message)
    return messages


def hash_each(messages: Sequence[bytes], hasher: Callable[[Any], Hasher]) -> bytes:
    """Hashes one message after the other; returns the last digest."""
    last = b""
    for message in messages:
        last = hasher(message).digest()
    return last
