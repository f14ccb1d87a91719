"""Logical requests in plain values, and the two things to do with one: ask the library, or ask the reference twin.

A content is ("bytes", data), ("array", dtype, shape, attrs, data), ("frames", contents), ("opaque", identifier,
namespace) or ("digest", kind, algorithm, digest).
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import mmkey
import reference

VECTORS = Path(__file__).parent.parent / "vectors"

DTYPES = {
    "u1": np.uint8,
    "u2": np.uint16,
    "u4": np.uint32,
    "u8": np.uint64,
    "i1": np.int8,
    "i2": np.int16,
    "i4": np.int32,
    "i8": np.int64,
    "f2": np.float16,
    "bf2": ml_dtypes.bfloat16,
    "f4": np.float32,
    "f8": np.float64,
    "b1": np.bool_,
}


def ndarray(dtype: str, shape: Any, data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=DTYPES[dtype]).reshape(shape)


def made_content(plain: tuple[Any, ...]) -> mmkey.Content:
    match plain:
        case ("bytes", data):
            return mmkey.Content.from_bytes(data)
        case ("array", dtype, shape, attrs, data):
            return mmkey.Content.from_array(ndarray(dtype, shape, data), attrs or None)
        case ("frames", frames):
            return mmkey.Content.from_frames([made_content(f) for f in frames])
        case ("opaque", identifier, namespace):
            return mmkey.Content.opaque(identifier, namespace=namespace)
        case ("digest", kind, algorithm, digest):
            return mmkey.Content.from_digest(kind, algorithm, digest)
    raise TypeError(plain)


def twin_content(algorithm: str, plain: tuple[Any, ...]) -> reference.Content:
    match plain:
        case ("bytes", data):
            return reference.of_bytes(algorithm, data)
        case ("array", dtype, shape, attrs, data):
            return reference.of_array(algorithm, dtype, shape, data, attrs)
        case ("frames", frames):
            return reference.of_frames(algorithm, [twin_content(algorithm, f) for f in frames])
        case ("opaque", identifier, namespace):
            return reference.of_identifier(algorithm, identifier, namespace)
        case ("digest", kind, made_with, digest):
            return [kind, made_with, digest]
    raise TypeError(plain)


@dataclass(frozen=True)
class PlainItem:
    content: tuple[Any, ...]
    fields: dict[str, Any] = field(default_factory=dict)

    def made(self) -> mmkey.Item:
        return mmkey.Item(made_content(self.content), **self.fields)

    def twin(self, algorithm: str) -> list[Any]:
        return reference.item(twin_content(algorithm, self.content), **self.fields)

    def but(self, **changed: Any) -> PlainItem:
        return PlainItem(changed.pop("content", self.content), self.fields | changed)


@dataclass(frozen=True)
class Plain:
    """One logical request and the engine that it goes to."""

    token_ids: list[int]
    items: list[PlainItem] = field(default_factory=list)
    layout: Any = ()
    order: Any = None
    model_id: str = "Qwen/Qwen2-VL-7B-Instruct"
    config: dict[str, Any] = field(default_factory=dict)
    revision: str | None = None
    adapter: Any = None
    salt: bytes | None = None
    algorithm: str = "sha256"
    block_size: int = 16

    def but(self, **changed: Any) -> Plain:
        return dataclasses.replace(self, **changed)

    def engine(self, strategy: str = "C", **more: Any) -> mmkey.KeyEngine:
        scope = {}
        if strategy == "C":
            scope = {
                "model_id": self.model_id,
                "config": self.config,
                "revision": self.revision,
                "adapter": self.adapter,
            }
        settings = {"algorithm": self.algorithm, "block_size": self.block_size, "salt": self.salt}
        return mmkey.KeyEngine(strategy, **(settings | scope | more))

    def request(self) -> mmkey.Request:
        return mmkey.Request(self.token_ids, [i.made() for i in self.items], self.layout, self.order)

    def scope(self) -> bytes:
        adapter = None if self.adapter is None else list(self.adapter)
        return reference.scope_digest(self.algorithm, self.model_id, self.config, self.revision, adapter, self.salt)

    def twin(self, strategy: str = "C") -> reference.Keys:
        return reference.keys(
            strategy,
            self.algorithm,
            self.token_ids,
            self.block_size,
            items=[i.twin(self.algorithm) for i in self.items],
            layout=self.layout,
            order=self.order,
            scope=self.scope(),
            salt=self.salt,
        )

    def keys(self, strategy: str = "C") -> reference.Keys:
        """The library's keys, in the twin's form."""
        engine = self.engine(strategy)
        prepared = engine.prepare(self.request())
        return reference.Keys(engine.key(prepared), blocks_of(engine, prepared, partial=True))

    def key(self, strategy: str = "C") -> bytes:
        engine = self.engine(strategy)
        return engine.key(self.request())

    def blocks(self, strategy: str = "C") -> list[bytes]:
        return blocks_of(self.engine(strategy), self.request())


def rows(keys: Any) -> list[bytes]:
    """Keys, from an array of [n, 32] bytes, as a list."""
    keys = np.asarray(keys)
    assert keys.dtype == np.uint8
    assert keys.ndim == 2 and keys.shape[1] == 32
    return [row.tobytes() for row in keys]


def blocks_of(engine: mmkey.KeyEngine, request: Any, *, partial: bool = False) -> list[bytes]:
    return rows(engine.block_keys(request, partial=partial))


def uncoded(value: Any) -> Any:
    """A value of the vector files: {"$float": text} and {"$bytes": hex} stand for what JSON cannot say."""
    if isinstance(value, list):
        return [uncoded(v) for v in value]
    if isinstance(value, dict):
        if value.keys() == {"$float"}:
            return float(value["$float"])
        if value.keys() == {"$bytes"}:
            return bytes.fromhex(value["$bytes"])
        return {k: uncoded(v) for k, v in value.items()}
    return value


def vector_item(algorithm: str, coded: dict[str, Any]) -> PlainItem:
    fields = uncoded(dict(coded))
    kind = fields.pop("kind")
    fields.pop("content_algorithm", None)
    if kind == "bytes":
        made_with = coded.get("content_algorithm", algorithm)
        data = bytes.fromhex(fields.pop("data"))
        content = ("bytes", data)
        if made_with != algorithm:
            content = ("digest", "bytes", made_with, reference.digest(made_with, data))
    elif kind == "array":
        content = ("array", *(fields.pop(k) for k in ("dtype", "shape", "attrs")), bytes.fromhex(fields.pop("data")))
    elif kind == "frames":
        content = ("frames", [("bytes", bytes.fromhex(f)) for f in fields.pop("frames")])
    elif kind == "opaque":
        content = ("opaque", fields.pop("identifier"), fields.pop("namespace"))
    else:
        raise AssertionError(kind)
    return PlainItem(content, fields)


def vector_request(coded: dict[str, Any]) -> Plain:
    plain = {k: uncoded(v) for k, v in coded.items()}
    plain["items"] = [vector_item(coded["algorithm"], i) for i in coded["items"]]
    plain["salt"] = None if coded["salt"] is None else bytes.fromhex(coded["salt"])
    return Plain(**plain)


@dataclass(frozen=True)
class Vector:
    number: int
    plain: Plain
    expect: dict[str, Any]

    def __str__(self) -> str:
        return f"case-{self.number}"

    def keys(self, strategy: str) -> reference.Keys:
        return reference.Keys(
            bytes.fromhex(self.expect[strategy]), [bytes.fromhex(k) for k in self.expect["blocks_partial"][strategy]]
        )


def load_vectors() -> list[Vector]:
    cases = json.loads((VECTORS / "keys-v1.json").read_text())["cases"]
    return [Vector(n, vector_request(c["request"]), c["expect"]) for n, c in enumerate(cases)]
