"""Block keys and the slots they stand for: the longest leading run of keys that are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import mmkey


@dataclass(frozen=True)
class Match:
    """The slots of the leading blocks that are stored, in order."""

    slots: list[int]


@dataclass
class PrefixIndex:
    """A table from block key to slot. A key binds all that comes before its block, so a run of keys is a prefix."""

    engine: mmkey.KeyEngine
    _slots: dict[bytes, int] = field(default_factory=dict)

    def insert(self, prepared: mmkey.Prepared, slots: Iterable[int]) -> None:
        """Stores a prepared request's full blocks, one slot each; a block that is there keeps its slot."""
        for key, slot in zip(self.engine.block_keys(prepared), slots, strict=True):
            self._slots.setdefault(key.tobytes(), slot)

    def match(self, prepared: mmkey.Prepared) -> Match:
        """The longest stored prefix of a prepared request."""
        found: list[int] = []
        for key in self.engine.block_keys(prepared):
            slot = self._slots.get(key.tobytes())
            if slot is None:
                break
            found.append(slot)
        return Match(found)
