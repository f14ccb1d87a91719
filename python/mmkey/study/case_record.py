"""What results say of one case: both requests part by part, where they part ways, and what each strategy reused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mmkey.study.caches import Configuration, Lookup
    from mmkey.study.judge import Relation
    from mmkey.study.logical import LogicalRequest
    from mmkey.study.scenarios import Case


def case_record(case: Case, relation: Relation, lookups: Mapping[tuple[str, Configuration], Lookup]) -> dict[str, Any]:
    """One entry of a scenario's ``cases``.

    ``first``, ``second``: the names of what they show. ``tokens``: of the expanded prompts. ``differences``: the fields
    that differ; ``shared_tokens``: the leading positions whose KV is the same. ``verdicts``: by image identity and by
    full identity. ``prefix_blocks``: the full blocks of the second request; of them the leading ones reused, of these
    the last ones that are another's (wrong), and those missed. ``items``: of either request, by first appearance.
    """
    verdicts: dict[str, dict[str, list[str]]] = {}
    prefix_blocks = {}
    for (granularity, configuration), lookup in lookups.items():
        verdicts.setdefault(granularity, {})[configuration.strategy] = [lookup.by_image, lookup.by_full]
        if granularity == "prefix":
            prefix_blocks[configuration.strategy] = {
                "blocks": lookup.blocks,
                "reused": lookup.found_blocks,
                "wrong": lookup.wrong_blocks,
                "missed": lookup.missed_blocks,
            }
    return {
        "first": list(case.media[0]),
        "second": list(case.media[1]),
        "tokens": [len(case.first.token_ids), len(case.second.token_ids)],
        "differences": list(relation.differences),
        "shared_tokens": min(relation.shared_tokens, len(case.second.token_ids)),
        "verdicts": verdicts,
        "prefix_blocks": prefix_blocks,
        "items": {"first": _items(case.first), "second": _items(case.second)},
    }


def _items(request: LogicalRequest) -> list[dict[str, Any]]:
    """``ranges`` are (offset, length) in tokens of the expanded prompt; sizes (height, width), the grid (t, h, w)."""
    return [
        {
            "name": item.media.name,
            "modality": item.modality,
            "ranges": [list(r) for r in request.ranges_of(n)],
            "original_size": list(item.original_size),
            "resized_size": list(item.resized_size),
            "patch_grid": list(item.patch_grid),
            "num_visual_tokens": item.num_visual_tokens,
        }
        | ({} if item.sampling is None else {"sampling": dict(item.sampling)})
        for n in request.by_appearance()
        for item in (request.items[n],)
    ]
