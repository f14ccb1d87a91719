"""Puts every mutation before the models: the KV's own word against the keys and against the mutation's tag."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
import transformers

from mmkey.study.caches import Configuration
from mmkey.study.mutations import MUTATIONS
from mmkey.study.oracle.gemma import Gemma3
from mmkey.study.oracle.kv import Prefill, largest_difference, leading, same_positions
from mmkey.study.oracle.llava import Llava
from mmkey.study.oracle.qwen import Qwen
from mmkey.study.oracle.results import Oracle
from mmkey.study.recipe import InexpressibleError
from mmkey.study.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mmkey.study.base_request import Workshop
    from mmkey.study.logical import LogicalRequest
    from mmkey.study.mutation import Mutation
    from mmkey.study.oracle.model import TinyModel
    from mmkey.study.recipe import Recipe, Rendered
    from mmkey.study.simulator import Settings

MODELS: tuple[type[TinyModel], ...] = (Qwen, Llava, Gemma3)
DECODED = 8


def run_oracle(
    workshop: Workshop,
    settings: Settings,
    mutations: Sequence[Mutation] = MUTATIONS,
    models: Sequence[type[TinyModel]] = MODELS,
    progress: Callable[[], None] = lambda: None,
) -> Oracle:
    """Every mutation before every model; ``progress`` is called after each of the two together."""
    oracle, recipe = Oracle(), workshop.base()
    with _one_thread():
        for make in models:
            bench = _Bench(make(), recipe, settings, oracle)
            for mutation in mutations:
                bench.judge(mutation, workshop)
                progress()
    return oracle


class _Bench:
    """One model with its base request prefilled."""

    def __init__(self, model: TinyModel, recipe: Recipe, settings: Settings, oracle: Oracle) -> None:
        self._model, self._recipe, self._settings, self._oracle = model, recipe, settings, oracle
        self._base: Rendered = model.render(recipe)
        self._prefill = model.prefill(self._base.request)
        weights = sum(weight.numel() for weight in model.model(recipe.scope).parameters())
        oracle.models.append(
            {
                "model": model.name,
                "title": model.title,
                "parameters": weights,
                "layers": len(self._prefill.layers),
                "tokens": self._prefill.tokens,
                "torch": str(torch.__version__),
                "transformers": transformers.__version__,
            }
        )

    def judge(self, mutation: Mutation, workshop: Workshop) -> None:
        """Prefills the mutated request and compares, or says why the model cannot."""
        try:
            if mutation.group == "video" and "video" not in self._model.modalities:
                raise InexpressibleError("it takes no clips")  # noqa: TRY301
            mutated = self._model.render(mutation.change(self._recipe, workshop)).request
        except InexpressibleError as reason:
            self._oracle.inexpressible.append(
                {"model": self._model.name, "mutation": mutation.name, "reason": str(reason)}
            )
            return
        prefill = self._model.prefill(mutated)
        comparison = self._compare(mutation, mutated, prefill)
        self._oracle.comparisons.append(comparison)
        served: dict[int, list[str]] = {}  # strategies by the blocks that they wrongly reuse
        for strategy, figures in comparison["strategies"].items():
            if figures["wrong"]:
                served.setdefault(figures["reused"], []).append(strategy)
        for blocks, strategies in served.items():
            self._decode(mutation, mutated, prefill, strategies, blocks * self._settings.block_size)

    def _compare(self, mutation: Mutation, mutated: LogicalRequest, prefill: Prefill) -> dict[str, Any]:
        same = same_positions(self._prefill, prefill)
        alike = leading(same)
        unchanged = alike == len(same) and prefill.tokens == self._prefill.tokens
        kv, opinion = mutation.models.get(self._model.name, (mutation.kv, ""))
        expected = kv.first_position(self._base.begins)
        found = None if unchanged else alike
        strategies, tokens = self._keys(mutated, alike, unchanged=unchanged)
        return {
            "model": self._model.name,
            "mutation": mutation.name,
            "kv_changes": not unchanged,
            "kv_changes_from": found,
            "expected_from": expected,
            "agrees": found == expected,
            "kv_difference": _difference(self._prefill, prefill, len(same)),
            "opinion": opinion,
            "blocks": prefill.tokens // self._settings.block_size,
            "blocks_with_same_kv": alike // self._settings.block_size,
            "strategies": strategies,
            "tokens": tokens,
            "missed_reason": mutation.missed if strategies.get("C", tokens)["missed"] else "",
        }

    def _keys(self, mutated: LogicalRequest, alike: int, *, unchanged: bool) -> tuple[dict[str, Any], dict[str, int]]:
        """What the strategies' keys say, against the first ``alike`` positions whose KV is the same."""
        size = self._settings.block_size
        by_token = Configuration("C", self._settings.algorithm, 1)
        simulator = Simulator([*self._settings.configurations, by_token])
        simulator.store(self._base.request)
        lookups = simulator.look_up(mutated)
        strategies = {}
        for configuration in self._settings.configurations:
            reused = lookups["prefix", configuration].found_blocks
            found = lookups["request", configuration].found_blocks > 0
            strategies[configuration.strategy] = {
                "reused": reused,
                "wrong": max(0, reused - alike // size),
                "missed": max(0, alike // size - reused),
                "request_found": found,
                "request_wrong": found and not unchanged,
            }
        reused = lookups["prefix", by_token].found_tokens
        return strategies, {"reused": reused, "wrong": max(0, reused - alike), "missed": max(0, alike - reused)}

    def _decode(
        self, mutation: Mutation, mutated: LogicalRequest, own: Prefill, strategies: list[str], reused: int
    ) -> None:
        """Decodes on the KV of the base, and on the request's own; only where what is left to compute is text."""
        reused = min(reused, own.tokens - 1)
        last = max(offset + length for offset, length in mutated.layout) if mutated.layout else 0
        if reused < last:
            return
        moved, served = self._model.decode(mutated, self._prefill, reused, DECODED)
        right, meant = self._model.decode(mutated, own, reused, DECODED)
        self._oracle.false_hits.append(
            {
                "model": self._model.name,
                "mutation": mutation.name,
                "strategies": strategies,
                "tokens": own.tokens,
                "tokens_reused": reused,
                "logits_moved": largest_difference(moved, right),
                "logits_spread": float(right.to(torch.float64).std()),
                "next_token": meant[0],
                "next_token_served": served[0],
                "next_token_changed": served[0] != meant[0],
                "decoded_tokens": DECODED,
                "decoded_tokens_changed": sum(a != b for a, b in zip(served, meant, strict=True)),
            }
        )


def _difference(a: Prefill, b: Prefill, tokens: int) -> float:
    pairs = zip(a.layers, b.layers, strict=True)
    return max(
        largest_difference(x[:, :, :tokens], y[:, :, :tokens])
        for mine, theirs in pairs
        for x, y in zip(mine, theirs, strict=True)
    )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small gain nothing from threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
