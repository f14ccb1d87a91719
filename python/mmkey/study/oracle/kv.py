"""KV of a prefill, compared bit by bit and position by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import DynamicCache

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Prefill:
    """What a prefill left: keys and values of each layer [1, heads, tokens, width], and the last token's logits."""

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    logits: torch.Tensor

    @classmethod
    def of(cls, cache: DynamicCache, logits: torch.Tensor) -> Prefill:
        """Copies a cache, which decoding would go on to change."""
        layers = tuple((layer.keys.clone(), layer.values.clone()) for layer in cache.layers)
        finite = torch.isfinite(logits).all() and all(torch.isfinite(t).all() for pair in layers for t in pair)
        if not finite:
            raise ArithmeticError("the model's KV or logits are not finite")
        return cls(layers, logits[0, -1].clone())

    @property
    def tokens(self) -> int:
        """Positions whose KV there is."""
        return int(self.layers[0][0].shape[2])

    def cache(self, tokens: int, dtype: torch.dtype) -> DynamicCache:
        """The first ``tokens`` positions in a model's dtype. Made without a config, so that no layer forgets."""
        cache = DynamicCache()
        for number, (keys, values) in enumerate(self.layers):
            cache.update(keys[:, :, :tokens].to(dtype, copy=True), values[:, :, :tokens].to(dtype, copy=True), number)
        return cache


def same_positions(a: Prefill, b: Prefill) -> NDArray[np.bool_]:
    """For each position that both have: whether its KV is the same in every layer, to the last bit."""
    common = min(a.tokens, b.tokens)
    same = torch.ones(common, dtype=torch.bool)
    for mine, theirs in zip(a.layers, b.layers, strict=True):
        for x, y in zip(mine, theirs, strict=True):
            same &= (_bits(x[:, :, :common]) == _bits(y[:, :, :common])).all(dim=-1).all(dim=1)[0]
    result: NDArray[np.bool_] = same.numpy()
    return result


def _bits(values: torch.Tensor) -> torch.Tensor:
    """Doubles as integers: -0.0 is not 0.0. What was computed in another type is widened, which is exact."""
    return values.to(torch.float64).contiguous().view(torch.int64)


def largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest absolute difference of two tensors of one shape."""
    return float((a.to(torch.float64) - b.to(torch.float64)).abs().max())


def leading(same: Any) -> int:
    """How many leading entries are true."""
    differs = np.flatnonzero(~np.asarray(same, bool))
    return int(differs[0]) if len(differs) else len(same)
