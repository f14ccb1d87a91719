"""The mutation matrix: every single change, every strategy, both granularities, and whether what it says is right.

For each mutation the base request is stored in empty caches, and the mutated one looked up: with keys computed anew
from its own fields. The verdict compares what was found with where the KV differs, as the mutation's tag says; beside
it stand the verdicts of the two judges, which know no tag and compare fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mmkey.study.judge import compare
from mmkey.study.machine import about_this_machine
from mmkey.study.mutations import MUTATIONS
from mmkey.study.rendering import NativeRenderer
from mmkey.study.simulator import Settings, Simulator
from mmkey.study.verdicts import FALSE_HIT, GRANULARITIES, MISSED_REUSE, TRUE_HIT, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mmkey.study.acceptance import MatrixVerdict
    from mmkey.study.base_request import Workshop
    from mmkey.study.caches import Lookup
    from mmkey.study.mutation import Mutation
    from mmkey.study.recipe import Renderer

MATRIX_DEFINITIONS = {
    "mutation": "the name of the one change made to the base request",
    "group": "container, picture, processing, layout, video, text or scope",
    "about": "the change in words",
    "kv_changes": "whether the change alters the KV of any position, in a model like Qwen2.5-VL",
    "kv_changes_from": "the first position whose KV differs (tokens from the start of the base request), or null",
    "why": "why the KV differs there, or why it does not",
    "granularity": "request: one key for the whole request; prefix: the longest leading run of full blocks",
    "strategy": "A: text only; B: text and contents; C: everything",
    "verdict": "true_hit: found, and all of it is the KV that would be computed; false_hit: found, and some is not; "
    "missed_reuse: nothing found, though KV was there; safe_miss: nothing found, and nothing was there",
    "right": "whether exactly that was found whose KV is the same: no block of another's, and none missed",
    "safe": "false for a false_hit alone",
    "by_image": "the verdict by image identity, from the fields: the pictures are the same",
    "by_full": "the verdict by full identity, from the fields: everything that the KV depends on is the same",
    "differences": "the logical fields that differ from the base",
    "blocks": "blocks of the mutated request: full ones; at request granularity the last one too, though not full",
    "blocks_with_same_kv": "of these, leading blocks whose KV the base has",
    "blocks_reused": "blocks that the lookup found",
    "blocks_wrongly_reused": "blocks found whose KV is another's",
    "blocks_missed": "blocks with the same KV that were not found",
    "oracle": "with --oracle, by model: kv_changes and kv_changes_from by its tensors (positions of its own prompt), "
    "and its verdict on the strategy's keys",
    "missed_reason": "why the strategy's key differs where the KV does not; empty where no block is missed",
}
_B_LISTED = "without a layout, contents count in the order in which they are listed"


@dataclass(frozen=True)
class Cell:
    """One mutation under one strategy at one granularity. MATRIX_DEFINITIONS explains its JSON."""

    mutation: Mutation
    granularity: str
    strategy: str
    kv_from: int | None
    lookup: Lookup
    differences: tuple[str, ...]
    same: int

    @property
    def wrong(self) -> int:
        """Blocks found whose KV is another's."""
        return max(0, self.lookup.found_blocks - self.same)

    @property
    def missed(self) -> int:
        """Blocks with the same KV that were not found."""
        return max(0, self.same - self.lookup.found_blocks)

    @property
    def verdict(self) -> str:
        """By the KV itself."""
        return worst({FALSE_HIT: self.wrong, TRUE_HIT: self.lookup.found_blocks, MISSED_REUSE: self.missed})

    @property
    def missed_reason(self) -> str:
        """Why blocks are missed, or nothing."""
        if not self.missed:
            return ""
        return self.mutation.missed or (_B_LISTED if self.strategy == "B" else "")

    def to_json(self) -> dict[str, Any]:
        """One row of matrix.json."""
        return {
            "mutation": self.mutation.name,
            "group": self.mutation.group,
            "about": self.mutation.about,
            "kv_changes": self.mutation.kv.anywhere,
            "kv_changes_from": self.kv_from,
            "why": self.mutation.why,
            "granularity": self.granularity,
            "strategy": self.strategy,
            "verdict": self.verdict,
            "right": not (self.wrong or self.missed),
            "safe": self.verdict != FALSE_HIT,
            "by_image": self.lookup.by_image,
            "by_full": self.lookup.by_full,
            "differences": list(self.differences),
            "blocks": self.lookup.blocks,
            "blocks_with_same_kv": self.same,
            "blocks_reused": self.lookup.found_blocks,
            "blocks_wrongly_reused": self.wrong,
            "blocks_missed": self.missed,
            "missed_reason": self.missed_reason,
        }


def run_matrix(
    workshop: Workshop,
    settings: Settings,
    mutations: Sequence[Mutation] = MUTATIONS,
    renderer: Renderer | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Cell]:
    """Every mutation under every strategy at both granularities; ``progress`` is called after each mutation."""
    renderer = renderer or NativeRenderer()
    recipe = workshop.base()
    base = renderer.render(recipe)
    cells = []
    for mutation in mutations:
        mutated = renderer.render(mutation.change(recipe, workshop)).request
        simulator = Simulator(settings.configurations)
        simulator.store(base.request)
        lookups = simulator.look_up(mutated)
        differences = compare(base.request, mutated).differences
        kv_from = mutation.kv.first_position(base.begins)
        shared = len(mutated.token_ids) if kv_from is None else min(kv_from, len(mutated.token_ids))
        for granularity in GRANULARITIES:
            for configuration in settings.configurations:
                lookup = lookups[granularity, configuration]
                same = shared // settings.block_size
                if granularity == "request":
                    same = 0 if mutation.kv.anywhere else lookup.blocks
                cells.append(Cell(mutation, granularity, configuration.strategy, kv_from, lookup, differences, same))
        progress()
    return cells


def about_this_matrix(settings: Settings, verdict: MatrixVerdict, command: str, *, passed: bool) -> dict[str, Any]:
    """What matrix_run.json says: with what the matrix was run, what was checked, and what its figures mean.

    ``passed`` is the whole run's verdict, the oracle's with it.
    """
    return {
        **about_this_machine(command),
        "algorithm": settings.algorithm,
        "block_size": settings.block_size,
        "passed": passed,
        "checks": [check.to_json() for check in verdict.checks],
        "definitions": dict(MATRIX_DEFINITIONS),
    }


def matrix_json(
    cells: Sequence[Cell], opinions: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> list[dict[str, Any]]:
    """The list that matrix.json holds. ``opinions`` are the oracle's comparisons by mutation, of every model."""
    rows = []
    for cell in cells:
        row = cell.to_json()
        if opinions is not None:
            row["oracle"] = {o["model"]: _opinion(cell, o) for o in opinions.get(cell.mutation.name, ())}
        rows.append(row)
    return rows


def _opinion(cell: Cell, comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What one model's KV says of one cell: by its own sizes, grids and tokens."""
    figures = comparison["strategies"][cell.strategy]
    if cell.granularity == "request":
        found, wrong = figures["request_found"], figures["request_wrong"]
        missed = not found and not comparison["kv_changes"]
    else:
        found, wrong, missed = figures["reused"] > 0, figures["wrong"] > 0, figures["missed"] > 0
    verdict = worst({FALSE_HIT: wrong, TRUE_HIT: found, MISSED_REUSE: missed})
    return {
        "kv_changes": comparison["kv_changes"],
        "kv_changes_from": comparison["kv_changes_from"],
        "verdict": verdict,
        "right": not (wrong or missed),
    }
