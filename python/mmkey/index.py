"""The prefix index: which leading blocks of a request are cached, and in which slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from . import _core
from ._core import Inserted, Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._core import Prepared

__all__ = ["BlocksRemoved", "BlocksStored", "Inserted", "Match", "RadixIndex"]

_ALL_BITS = 2**64 - 1


class BlocksStored(NamedTuple):
    """Consecutive blocks of one prompt were stored."""

    keys: NDArray[np.uint8]  #: the blocks' keys, shape (blocks, 32): what ``KeyEngine.block_keys`` gives
    parent_key: bytes  #: the key of the block before the first, or the engine's root
    token_ids: NDArray[np.uint32]  #: the blocks' token ids, shape (blocks * block_size,)
    slots: NDArray[np.int64]  #: shape (blocks,)


class BlocksRemoved(NamedTuple):
    """Blocks were evicted, removed or cleared; of two of one prompt the later comes first."""

    keys: NDArray[np.uint8]  #: shape (blocks, 32)
    slots: NDArray[np.int64]  #: shape (blocks,)


class RadixIndex:
    """Finds the longest stored prefix of a request, and the slots of its blocks. Least recently used goes first.

    A slot is the caller's number of a block of KV memory; the index says which to reuse and which to free, and never
    touches the memory. It holds the blocks' token ids and media and compares them whole, so no collision of a hash can
    make a hit. Requests of engines that differ in anything (model, adapter, salt, strategy, ...) share no block.

    Blocks are used when they are matched, inserted, and when a hold on them is released. Of the blocks that nothing
    follows and nobody holds, the one whose last use is longest ago is evicted first; so a prefix outlives what follows
    it, and all that is not held can be evicted.

    Any number of threads may use one index. Large operations give up the GIL.

    Args:
        block_size: tokens a block, at least 1: that of the engines whose requests it gets.
        capacity: the most blocks stored, at least 1, or None. Above it, insert evicts.
        events: whether to record what is stored and removed, for :meth:`events`. They gather until they are drained.

    Raises:
        InvalidRequest, UnsupportedType: naming the argument. All methods that take a request raise InvalidRequest for
            one of another block size (``block_size``), or with media and no layout (``layout``).
    """

    __slots__ = ("__weakref__", "_core")

    def __init__(
        self, block_size: int = 16, *, capacity: int | None = None, events: bool = False, _hash_mask: int = _ALL_BITS
    ) -> None:
        self._core = _core.Index(block_size, capacity, bool(events), _hash_mask)

    def __copy__(self) -> NoReturn:
        raise TypeError("an index cannot be copied: its slots are one pool's")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("an index cannot be copied: its slots are one pool's")

    def match(
        self, prepared: Prepared, *, limit: int | None = None, hold: bool = False, whole_items: bool = False
    ) -> Match:
        """The longest stored prefix of a request.

        Args:
            prepared: what ``KeyEngine.prepare`` returned. One of another engine is a miss.
            limit: the most tokens to match, rounded down to blocks; one less than the request has leaves a token to
                compute.
            hold: keep the matched blocks stored until ``release()``, from this very step on: no other thread can evict
                them in between. Use the match as a context manager, or release it; one that is dropped without keeps
                its blocks for good, with a ResourceWarning.
            whole_items: a match that would end inside an item, between its first and its last position, ends before the
                block in which the item begins instead. For models whose image tokens see each other.

        Returns:
            A :class:`Match` with ``blocks``, ``tokens`` and ``slots``.
        """
        return self._core.match(prepared, limit, bool(hold), bool(whole_items))

    def insert(self, prepared: Prepared, slots: Any, *, hold: bool = False) -> Inserted:
        """Stores the full blocks of a request.

        Args:
            prepared: what ``KeyEngine.prepare`` returned.
            slots: one for each full block, in [0, 2**63): a list, tuple, range or integer array. A block that is stored
                already stays in its slot. For a block that is not, the slot must not be another block's.
            hold: keep all blocks of the request stored until ``release()``.

        Returns:
            An :class:`Inserted` with ``new``, ``duplicates`` and ``evicted``.

        Raises:
            InvalidRequest: ``slots`` or ``slots[i]``; nothing was changed.
            CapacityError: what is held leaves no room; nothing was changed.
        """
        return self._core.insert(prepared, slots, bool(hold))

    def evict(self, blocks: int) -> NDArray[np.int64]:
        """Frees that many blocks, or as many as are not held: their slots, least recently used first."""
        return self._core.evict(blocks)

    def remove(self, prepared: Prepared, from_block: int = 0) -> NDArray[np.int64]:
        """Removes a block of a request, and whatever follows it in any prompt: without it that could not be found.

        Returns:
            The slots freed, of two of one prompt the later first; none where the block is not stored.

        Raises:
            HoldError: one of them is held; nothing was changed.
        """
        return self._core.remove(prepared, from_block)

    def clear(self) -> NDArray[np.int64]:
        """Removes everything, of all engines: the slots freed. HoldError, with nothing changed, if a block is held."""
        return self._core.clear()

    def __len__(self) -> int:
        """Blocks stored."""
        return len(self._core)

    def stats(self) -> dict[str, Any]:
        """Exact counts, as of one moment.

        ``block_size``, ``capacity``; ``blocks`` stored, of which ``held`` and ``evictable``; ``holds`` that were taken
        on at least one block and not released; ``nodes`` (runs of blocks in which no prompt parts from another),
        ``roots`` (engines with blocks stored); ``bytes`` asked of the allocator; ``collisions`` of the short hash, each
        of which cost a compare.
        """
        return self._core.stats()

    def check(self) -> None:
        """Verifies every invariant by counting anew; RuntimeError names the first that is broken."""
        self._core.check()

    def events(self) -> list[BlocksStored | BlocksRemoved]:
        """What was stored and removed since the last call, in the order it happened; keys are computed here.

        Empty unless the index was made with ``events=True``.
        """
        return [BlocksRemoved(*event) if len(event) == 2 else BlocksStored(*event) for event in self._core.events()]

    def __repr__(self) -> str:
        stats = self.stats()
        capacity = "" if stats["capacity"] is None else f" of {stats['capacity']}"
        return f"<mmkey.RadixIndex: {stats['blocks']}{capacity} blocks of {stats['block_size']}, {stats['held']} held>"
