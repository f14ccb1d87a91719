"""The request file of ``mmkey key``: its fields as pydantic models, and the engine's request made of them.

The models decide shapes and types, strictly; what values mean together (a layout that fits, a grid where one is
needed) is the engine's to check. ``docs/request.schema.json`` is the schema of these models.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

import mmkey
from mmkey.cli.output import CliError, shown
from mmkey.cli.strict_json import member, parse

if TYPE_CHECKING:
    from pathlib import Path

_ANY_VALUE: dict[str, Any] = {"title": "Value"}  # where the schema says this, json_schema refers to _VALUE_SCHEMA
_VALUE_SCHEMA: dict[str, Any] = {
    "description": "Any JSON value. 1, 1.0 and true are three values. "
    'NaN and infinity are {"$float": "nan"}, bytes {"$bytes": "00ff"}.',
    "anyOf": [
        {"type": ["null", "boolean", "integer", "number", "string"]},
        {"type": "array", "items": {"$ref": "#/$defs/Value"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Value"}},
    ],
}
_BYTES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"$bytes": {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$"}},
    "required": ["$bytes"],
    "additionalProperties": False,
}

TokenId = Annotated[int, Field(ge=0, lt=2**32)]
Size = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)]
Grid = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=3)]
Range = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]
Values = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": _ANY_VALUE})]
Salt = Annotated[str | bytes, WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _BYTES_SCHEMA]})]


_UNION_BRANCH = re.compile(r"(str|bytes|list\[.*\])\Z")  # how pydantic's places name the branch that was tried


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=())


class Digest(_Model):
    """A digest that was made elsewhere: of an encoded file, unless `kind` says otherwise."""

    kind: Literal["bytes", "array", "frames", "opaque"] = "bytes"
    algorithm: Literal["sha256", "blake3"]
    hex: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="64 lowercase hexadecimal digits")]


class Opaque(_Model):
    """An identifier that the caller vouches for, within a namespace."""

    identifier: Annotated[str, Field(min_length=1)]
    namespace: str = ""


class Source(_Model):
    """What something is: exactly one of these fields."""

    path: Annotated[
        str | None,
        Field(min_length=1, description="An encoded file; a relative path starts at the request file's folder"),
    ] = None
    data: Annotated[str | None, Field(description="A data URI of an encoded file: data:image/png;base64,...")] = None
    digest: Digest | None = None
    opaque: Opaque | None = None
    frames: Annotated[list[Source] | None, Field(description="Ordered frames of a video")] = None


class ItemModel(Source):
    """A picture, video, sound or embedding of the prompt: one source, and its metadata."""

    modality: Literal["image", "video", "audio", "embeds"] = "image"
    original_size: Annotated[Size | None, Field(description="[height, width] in pixels")] = None
    resized_size: Annotated[Size | None, Field(description="[height, width] after the processor's resizing")] = None
    patch_grid: Annotated[Grid | None, Field(description="[t, h, w] in patches; an image may leave out t")] = None
    num_visual_tokens: Annotated[
        int | None, Field(ge=1, description="The prompt positions that the item fills, for every modality")
    ] = None
    sampling: Annotated[
        Values | None,
        Field(
            description="For a video: frame_indices, source_fps, sampled_fps, total_frames and what else was sampled by"
        ),
    ] = None
    processing: Annotated[
        Values | None, Field(description="Whatever else determines the item's embeddings: processor, version, options")
    ] = None


class RequestFile(_Model):
    """A prompt and the engine whose keys are wanted.

    Strategy A looks at token_ids and salt alone, B at the items' contents too; C needs model_id, config, a layout and
    the items' metadata.
    """

    schema_: Annotated[str | None, Field(alias="$schema", description="Ignored; for editors")] = None
    token_ids: Annotated[list[TokenId], Field(description="The tokenizer's ids, placeholders included")]
    items: list[ItemModel] = []
    layout: Annotated[
        list[Range] | None,
        Field(
            description="The items' ranges [offset, length], ascending; null: no layout, hence no block keys with media"
        ),
    ] = []
    order: Annotated[
        list[Annotated[int, Field(ge=0)]] | None, Field(description="The item of each range; null: 0, 1, 2, ...")
    ] = None
    placeholder_ids: Annotated[
        list[TokenId],
        Field(description="Ids that may stand inside the layout's ranges only, so that no user typed one"),
    ] = []
    model_id: Annotated[str | None, Field(min_length=1)] = None
    revision: str | None = None
    config: Annotated[Values | None, Field(description="What changes the KV of a text token: rope, kv_dtype, ...")] = (
        None
    )
    adapter: Annotated[
        str | list[str | None] | None,
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "null"},
                    {"type": "string", "minLength": 1},
                    {
                        "type": "array",
                        "prefixItems": [{"type": "string", "minLength": 1}, {"type": ["string", "null"]}],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                ],
                "description": "A LoRA adapter: its name, or [name, revision or null]",
            }
        ),
    ] = None
    salt: Annotated[Salt | None, Field(description='Text, or {"$bytes": "hex"}: keeps tenants apart')] = None
    algorithm: Literal["sha256", "blake3"] = "sha256"
    block_size: Annotated[int, Field(ge=1)] = 16

    def request(self, folder: Path) -> mmkey.Request:
        """The engine's request; relative paths start at ``folder``."""
        items = [_item(item, f"items[{i}]", folder) for i, item in enumerate(self.items)]
        layout = None if self.layout is None else [tuple(r) for r in self.layout]
        return mmkey.Request(self.token_ids, items, layout, self.order)

    def engine(self, strategy: str, algorithm: str | None = None, block_size: int | None = None) -> mmkey.KeyEngine:
        """An engine of a strategy; an algorithm or block size given here goes before the file's."""
        scope: dict[str, Any] = {}
        if strategy == "C":
            adapter = tuple(self.adapter) if isinstance(self.adapter, list) else self.adapter
            scope = {"model_id": self.model_id, "config": self.config, "revision": self.revision, "adapter": adapter}
        return mmkey.KeyEngine(
            strategy,
            algorithm=algorithm or self.algorithm,
            block_size=block_size or self.block_size,
            salt=self.salt,
            **scope,
        )


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a request file."""

    def with_values(part: object) -> object:
        if part == _ANY_VALUE:
            return {"$ref": "#/$defs/Value"}
        if isinstance(part, dict):
            return {name: with_values(inner) for name, inner in part.items() if name != "title"}
        return [with_values(inner) for inner in part] if isinstance(part, list) else part

    schema = RequestFile.model_json_schema(by_alias=True)
    parts = {name: with_values(part) for name, part in schema.items() if name not in {"title", "$defs"}}
    definitions = {name: with_values(part) for name, part in schema["$defs"].items()} | {"Value": _VALUE_SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmkey request",
        **parts,
        "$defs": definitions,
    }


def read_request(data: bytes) -> RequestFile:
    """Reads a request file; CliError names the field, its value and what is allowed."""
    document = parse(data)
    if not isinstance(document, dict):
        raise CliError(f"the document: {shown(document)} is not an object")
    try:
        return RequestFile.model_validate(document)
    except ValidationError as problem:
        raise CliError(_one_line(problem)) from None


# ---------------------------------------------------------------- errors


def _one_line(problem: ValidationError) -> str:
    """The first error as ``field: value, what is allowed``."""
    error = problem.errors(include_url=False)[0]
    place = ""
    for step in error["loc"]:
        if isinstance(step, int):
            place = f"{place}[{step}]"
        elif not _UNION_BRANCH.match(step):
            place = member(place, step)
    if error["type"] == "extra_forbidden":
        return f"{place}: no such field; allowed are {', '.join(_fields_at(error['loc'][:-1]))}"
    if error["type"] == "missing":
        return f"{place}: missing"
    return f"{place}: {shown(error['input'])}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _fields_at(loc: tuple[int | str, ...]) -> list[str]:
    last = next((step for step in reversed(loc) if isinstance(step, str)), None)
    models: dict[str | None, type[BaseModel]] = {
        None: RequestFile,
        "items": ItemModel,
        "frames": Source,
        "digest": Digest,
        "opaque": Opaque,
    }
    model = models[last]
    return [field.alias or name for name, field in model.model_fields.items()]


# ---------------------------------------------------------------- contents


_SOURCES = ("path", "data", "digest", "opaque", "frames")
_DATA_URI = re.compile(r"data:(?P<type>[^,]*?)(?P<base64>;base64)?,(?P<data>.*)\Z", re.IGNORECASE | re.DOTALL)


def _item(item: ItemModel, place: str, folder: Path) -> mmkey.Item:
    content = _content(item, place, folder)
    try:
        return mmkey.Item(
            content,
            modality=item.modality,
            original_size=item.original_size,
            resized_size=item.resized_size,
            patch_grid=item.patch_grid,
            num_visual_tokens=item.num_visual_tokens,
            sampling=item.sampling,
            processing=item.processing,
        )
    except (mmkey.InvalidRequest, mmkey.UnsupportedType) as problem:
        raise problem.within(f"{place}.{problem.field}") from None


def _content(source: Source, place: str, folder: Path) -> mmkey.Content:
    given = [name for name in _SOURCES if getattr(source, name) is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise CliError(f"{place}: exactly one of {', '.join(_SOURCES)} is wanted, given: {got}")
    if source.path is not None:
        return _from_path(source.path, f"{place}.path", folder)
    if source.data is not None:
        return mmkey.Content.from_bytes(_from_data_uri(source.data, f"{place}.data"))
    if source.digest is not None:
        return mmkey.Content.from_digest(source.digest.kind, source.digest.algorithm, bytes.fromhex(source.digest.hex))
    if source.opaque is not None:
        return mmkey.Content.opaque(source.opaque.identifier, namespace=source.opaque.namespace)
    frames = source.frames or []
    if not frames:
        raise CliError(f"{place}.frames: no frames")
    return mmkey.Content.from_frames([_content(f, f"{place}.frames[{i}]", folder) for i, f in enumerate(frames)])


def _from_data_uri(uri: str, place: str) -> bytes:
    parts = _DATA_URI.match(uri)
    if parts is None:
        raise CliError(f"{place}: {shown(uri)} is not a data URI (data:image/png;base64,...)")
    try:
        if parts["base64"]:
            data = base64.b64decode(unquote_to_bytes(parts["data"]), validate=True)
        else:
            data = unquote_to_bytes(parts["data"])
    except binascii.Error as problem:
        raise CliError(f"{place}: {shown(uri)} is not valid base64: {problem}") from None
    if not data:
        raise CliError(f"{place}: {shown(uri)} holds no bytes")
    return data


def _from_path(path: str, place: str, folder: Path) -> mmkey.Content:
    full = folder / path
    try:
        mode = full.stat().st_mode
        if not stat.S_ISREG(mode):
            raise CliError(f"{place}: {shown(path)} is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}")
        if not os.access(full, os.R_OK):
            raise CliError(f"{place}: {shown(path)}: permission denied")
        if full.stat().st_size == 0:
            raise CliError(f"{place}: {shown(path)} is empty")
        return mmkey.Content.from_file(full)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise CliError(f"{place}: {shown(path)}: {reason}") from None
