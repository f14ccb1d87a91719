"""mmkey: safe and fast KV-cache keys for prompts with pictures, video and audio."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    # Ahead of all else: the core refuses a kernel that this CPU does not run.
    from .hashing import blake3, digest, digest_file, digest_many, kernels, new, selftest, sha256
except ImportError as problem:
    from ._startup import end_command

    end_command(problem)
    raise
from .content import Content
from .engine import (
    BlockChain,
    KeyEngine,
    KeyText,
    Prepared,
    format_key,
    full_multimodal_cache_key,
    parse_key,
    short_id,
    text_only_cache_key,
    text_plus_image_hash_cache_key,
)
from .errors import CapacityError, HoldError, InvalidRequest, MmkeyError, UnsupportedType
from .index import BlocksRemoved, BlocksStored, Inserted, Match, RadixIndex
from .request import Audio, Image, Item, Request, Video

__all__ = [
    "Audio",
    "BlockChain",
    "BlocksRemoved",
    "BlocksStored",
    "CapacityError",
    "Content",
    "HoldError",
    "Image",
    "Inserted",
    "InvalidRequest",
    "Item",
    "KeyEngine",
    "KeyText",
    "Match",
    "MmkeyError",
    "Prepared",
    "RadixIndex",
    "Request",
    "UnsupportedType",
    "Video",
    "blake3",
    "digest",
    "digest_file",
    "digest_many",
    "errors",
    "format_key",
    "full_multimodal_cache_key",
    "kernels",
    "new",
    "parse_key",
    "selftest",
    "sha256",
    "short_id",
    "text_only_cache_key",
    "text_plus_image_hash_cache_key",
]

if TYPE_CHECKING:
    __version__: str


def __getattr__(name: str) -> str:
    # What reads the version takes longer to import than all the rest, and few ask for it.
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("mmkey")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
