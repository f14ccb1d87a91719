"""A mutation: one change of the base request, and what it does to the KV."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmkey.study.base_request import Workshop
    from mmkey.study.recipe import Recipe

Change = Callable[["Recipe", "Workshop"], "Recipe"]


@dataclass(frozen=True)
class KvChange:
    """From where on the KV differs: ``tokens`` positions after ``part`` begins, an item after its mark.

    No part: nowhere.
    """

    part: str | None
    tokens: int = 0

    @property
    def anywhere(self) -> bool:
        """Whether any position's KV differs."""
        return self.part is not None

    def first_position(self, begins: Mapping[str, int]) -> int | None:
        """The first position whose KV differs, or None."""
        return None if self.part is None else begins[self.part] + self.tokens


NOWHERE = KvChange(None)


@dataclass(frozen=True)
class Mutation:
    """One change.

    Attributes:
        name: what results call it.
        group: container, picture, processing, layout, video, text or scope.
        about: what is changed, in words.
        change: makes the changed recipe of the base; it writes files of its own through the workshop.
        kv: from where on the KV differs, in a model like Qwen2.5-VL (native sizes, M-RoPE, causal attention).
        why: why the KV differs there, or why it does not.
        missed: for a KV that stays in part or whole while C's key does not: why the key differs all the same.
        models: of real models those of another opinion than ``kv``, by name; (where theirs differs, why).
    """

    name: str
    group: str
    about: str
    change: Change
    kv: KvChange
    why: str
    missed: str = ""
    models: Mapping[str, tuple[KvChange, str]] = field(default_factory=dict)
