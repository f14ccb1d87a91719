"""Weights of a tiny model, for one scope: random, all of them, and the same whenever the scope is."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import nn

    from mmkey.study.logical import Scope

DTYPES = {"float64": torch.float64, "bfloat16": torch.bfloat16}
_RANK = 4
_SHARPNESS = 4  # of attention: without it, every token would attend to all others nearly alike


def fill(model: nn.Module, scope: Scope) -> None:
    """Sets every weight, by the scope's model and revision, and adds its LoRA adapter to the queries and values.

    Transformers initialises some projectors and gates to zero, and then a picture has no effect. Norms stay near what
    they were; all else is normal, scaled by its inputs.
    """
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = _normal(weight.shape, scope.model_id, scope.revision, name).to(weight.dtype)
            if weight.ndim == 1:
                weight.add_(noise, alpha=0.1)
            elif "embed" in name:
                weight.copy_(noise)
            else:
                weight.copy_(noise / weight[0].numel() ** 0.5)
                if name.endswith("q_proj.weight"):
                    weight.mul_(_SHARPNESS)
        if scope.adapter is not None:
            for name, weight in model.named_parameters():
                if "language_model" in name and name.endswith(("q_proj.weight", "v_proj.weight")):
                    rows, columns = weight.shape
                    up = _normal((rows, _RANK), *scope.adapter, name, "up").to(weight.dtype)
                    down = _normal((_RANK, columns), *scope.adapter, name, "down").to(weight.dtype)
                    weight.add_(up @ down, alpha=0.1 / columns**0.5)


def _normal(shape: tuple[int, ...], *seed: str | None) -> torch.Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(repr(seed).encode()))
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
