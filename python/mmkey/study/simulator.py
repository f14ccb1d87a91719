"""The simulator: a stream of logical requests goes through any number of caches at once, and every hit is judged.

Two granularities. *Request*: one key for the whole request; a hit saves its whole prefill. *Prefix*: the longest
leading run of full blocks that are stored. Keys come from the engine alone, verdicts from the logical fields alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mmkey.study.caches import Cache, Configuration, Lookup, PrefixCache, RequestCache
from mmkey.study.counts import Counts
from mmkey.study.identity import Identities
from mmkey.study.keys import KeyMaker
from mmkey.study.verdicts import GRANULARITIES, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mmkey.study.logical import LogicalRequest

_CACHES: dict[str, type[RequestCache | PrefixCache]] = {"request": RequestCache, "prefix": PrefixCache}


@dataclass(frozen=True)
class Settings:
    """What a study is run with; ``kv_bytes`` is the KV of one token."""

    algorithm: str = "sha256"
    block_size: int = 12
    kv_bytes: int = 256
    strategies: tuple[str, ...] = STRATEGIES

    @property
    def configurations(self) -> list[Configuration]:
        """One unbounded cache for each strategy."""
        return [Configuration(strategy, self.algorithm, self.block_size) for strategy in self.strategies]


class Simulator:
    """Caches of many configurations side by side, each empty at first, at one granularity or both.

    ``counts[granularity, configuration]`` adds up what :meth:`look_up` and :meth:`serve` found.
    """

    def __init__(self, configurations: Iterable[Configuration], granularities: Iterable[str] = GRANULARITIES) -> None:
        places = [(g, c) for g in granularities for c in dict.fromkeys(configurations)]
        self._caches: dict[tuple[str, Configuration], Cache] = {(g, c): _CACHES[g](c) for g, c in places}
        self.counts: dict[tuple[str, Configuration], Counts] = {place: Counts() for place in places}
        self._identities = Identities(c.block_size for _, c in places)
        self._maker = KeyMaker()

    def store(self, request: LogicalRequest) -> None:
        """Stores a request in every cache."""
        keyed, identity = self._maker.open(request), self._identities.of(request)
        for place, cache in self._caches.items():
            self.counts[place].storing += cache.store(keyed, identity)

    def look_up(self, request: LogicalRequest) -> dict[tuple[str, Configuration], Lookup]:
        """Looks a request up in every cache; what each says, judged."""
        keyed, identity = self._maker.open(request), self._identities.of(request)
        found = {place: cache.look_up(keyed, identity) for place, cache in self._caches.items()}
        for place, lookup in found.items():
            self.counts[place].add(lookup)
        return found

    def serve(self, request: LogicalRequest) -> None:
        """Looks a request up, then stores it, as a server does: in every cache."""
        keyed, identity = self._maker.open(request), self._identities.of(request)
        for place, cache in self._caches.items():
            counts = self.counts[place]
            counts.add(cache.look_up(keyed, identity))
            counts.storing += cache.store(keyed, identity)
