"""What is counted of many lookups of one cache, and what each figure means."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmkey.study.verdicts import FALSE_HIT, MISSED_REUSE, SAFE_MISS, TRUE_HIT, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmkey.study.caches import Lookup

DEFINITIONS: Mapping[str, str] = {
    "verdict": "by image identity: true_hit (key found, pictures the same), false_hit (key found, pictures differ) or "
    "safe_miss (key not found); of several lookups the worst: any false_hit, else any true_hit, else safe_miss",
    "full_identity_verdict": "the same by full identity: all that the reused KV depends on is the same; a miss is "
    "missed_reuse where that KV was stored under another key; it stands for several lookups only if none was found",
    "unsafe": "a hit that is true by image identity and false by full identity",
    "request": "one key for the whole request; A and B are given the text ids alone (B also the contents), C the "
    "expanded prompt with its layout",
    "prefix": "the longest leading run of full blocks that are stored, by RadixIndex; every strategy is given the "
    "expanded prompt",
    "lookups": "requests looked up; true hits, false hits, safe misses and missed reuse by full identity add up to it",
    "true_hits": "lookups that found something, by image identity: with the pictures of what was stored all the same",
    "false_hits": "lookups that found something, by image identity: with another picture in it",
    "safe_misses": "lookups that found nothing",
    "full_identity_true_hits": "lookups that found something, all of it with the KV that they would have computed",
    "full_identity_false_hits": "lookups that found something, with a block whose KV is another's",
    "full_identity_safe_misses": "lookups that found nothing, and whose KV was not stored",
    "missed_reuse": "lookups that found nothing, and whose KV, or first block's, was stored under another key",
    "prefill_tokens_saved": "request: tokens of the expanded prompts whose lookup is a true hit by both standards; "
    "prefix: tokens of blocks reused that are not wrong",
    "kv_blocks_reused": "blocks of those prompts: tokens / block size, rounded up; prefix: blocks reused but the wrong",
    "memory_saved_bytes": "prefill_tokens_saved x KV bytes of one token",
    "prefill_tokens_wrongly_reused": "tokens of the expanded prompts whose lookup is a false hit by full identity; "
    "prefix: tokens of the blocks wrongly reused",
    "blocks": "blocks of the requests looked up: full ones; at request granularity the last one too, though not full",
    "blocks_reused": "blocks that the lookups found",
    "blocks_wrongly_reused": "of these, blocks whose own KV depends on something that differs: the scope, a token up "
    "to the block's end, an item begun by then (content, sizes, grid, sampling, processing, places)",
    "blocks_missed": "blocks that were not found though their KV, and that of all before, was stored by other keys",
    "tokens": "tokens in blocks",
    "tokens_reused": "tokens in blocks_reused",
    "tokens_wrongly_reused": "tokens in blocks_wrongly_reused",
    "tokens_missed": "tokens in blocks_missed",
    "unsafe_reasons": "what the engine itself said against the keys, e.g. that strategy A was given media",
    "hashing_seconds": "time to prepare the requests (validate, hash what is not hashed yet, normal form) and, at "
    "request granularity, to make the key",
    "matching_seconds": "time to look up: in a dict, or in the RadixIndex",
    "storing_seconds": "time to store: in a dict, or in the RadixIndex",
}


@dataclass
class Counts:
    """The lookups of one cache, added up. DEFINITIONS says what each figure of ``to_json`` means."""

    lookups: int = 0
    by_image: Counter[str] = field(default_factory=Counter)
    by_full: Counter[str] = field(default_factory=Counter)
    unsafe: int = 0
    blocks: int = 0
    tokens: int = 0
    found_blocks: int = 0
    found_tokens: int = 0
    wrong_blocks: int = 0
    wrong_tokens: int = 0
    missed_blocks: int = 0
    missed_tokens: int = 0
    unsafe_reasons: set[str] = field(default_factory=set)
    hashing: int = 0
    matching: int = 0
    storing: int = 0

    def add(self, lookup: Lookup) -> None:
        """Counts one lookup."""
        self.lookups += 1
        self.by_image[lookup.by_image] += 1
        self.by_full[lookup.by_full] += 1
        self.blocks += lookup.blocks
        self.tokens += lookup.tokens
        self.found_blocks += lookup.found_blocks
        self.found_tokens += lookup.found_tokens
        self.wrong_blocks += lookup.wrong_blocks
        self.wrong_tokens += lookup.wrong_tokens
        self.missed_blocks += lookup.missed_blocks
        self.missed_tokens += lookup.missed_tokens
        self.unsafe_reasons.update(lookup.unsafe)
        self.hashing += lookup.hashing
        self.matching += lookup.matching
        if lookup.by_image == TRUE_HIT and lookup.by_full == FALSE_HIT:
            self.unsafe += 1

    def worst(self, by: str = "by_image") -> str:
        """The verdict that stands for all lookups."""
        counter: Counter[str] = getattr(self, by)
        return worst(counter)

    def to_json(self, kv_bytes: int, *, times: bool = False) -> dict[str, Any]:
        """The figures, by the names that DEFINITIONS explains. Times differ from run to run: only where asked for."""
        saved_tokens = self.found_tokens - self.wrong_tokens
        out: dict[str, Any] = {
            "verdict": self.worst(),
            "full_identity_verdict": self.worst("by_full"),
            "unsafe": self.unsafe > 0,
            "lookups": self.lookups,
            "true_hits": self.by_image[TRUE_HIT],
            "false_hits": self.by_image[FALSE_HIT],
            "safe_misses": self.by_image[SAFE_MISS],
            "full_identity_true_hits": self.by_full[TRUE_HIT],
            "full_identity_false_hits": self.by_full[FALSE_HIT],
            "full_identity_safe_misses": self.by_full[SAFE_MISS],
            "missed_reuse": self.by_full[MISSED_REUSE],
            "prefill_tokens_saved": saved_tokens,
            "kv_blocks_reused": self.found_blocks - self.wrong_blocks,
            "memory_saved_bytes": saved_tokens * kv_bytes,
            "prefill_tokens_wrongly_reused": self.wrong_tokens,
            "blocks": self.blocks,
            "blocks_reused": self.found_blocks,
            "blocks_wrongly_reused": self.wrong_blocks,
            "blocks_missed": self.missed_blocks,
            "tokens": self.tokens,
            "tokens_reused": self.found_tokens,
            "tokens_wrongly_reused": self.wrong_tokens,
            "tokens_missed": self.missed_tokens,
            "unsafe_reasons": sorted(self.unsafe_reasons),
        }
        if times:
            spent = {"hashing": self.hashing, "matching": self.matching, "storing": self.storing}
            out |= {f"{name}_seconds": nanoseconds / 1e9 for name, nanoseconds in spent.items()}
        return out
