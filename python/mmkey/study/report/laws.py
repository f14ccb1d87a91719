"""What holds between the numbers of one file: a table of numbers that contradict each other is not shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mmkey.study.verdicts import FALSE_HIT, GRANULARITIES, MISSED_REUSE, SAFE_MISS, STRATEGIES, TRUE_HIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mmkey.study.report.models import Case, Figures, MatrixRow, PrefixBlocks, Scenario, SweepEntry

# Each law is given what is sound field by field, and says what is wrong with the whole, or nothing.


def of_figures(figures: Figures) -> str | None:
    """Every lookup has one verdict by either standard, and a block that was found is right or wrong."""
    f = figures
    by_image = {TRUE_HIT: f.true_hits, FALSE_HIT: f.false_hits, SAFE_MISS: f.safe_misses}
    by_full = {
        TRUE_HIT: f.full_identity_true_hits,
        FALSE_HIT: f.full_identity_false_hits,
        SAFE_MISS: f.full_identity_safe_misses,
        MISSED_REUSE: f.missed_reuse,
    }
    for name, verdict, counts in (
        ("verdict", f.verdict, by_image),
        ("full_identity_verdict", f.full_identity_verdict, by_full),
    ):
        if sum(counts.values()) != f.lookups:
            return f"{' + '.join(str(n) for n in counts.values())} verdicts, of {f.lookups} lookups"
        if verdict != _worst(counts):
            return f"{name} is {verdict}, and the counts say {_worst(counts)}"
    if f.full_identity_false_hits < f.false_hits:
        return f"{f.false_hits} false hits by image identity, and {f.full_identity_false_hits} by full identity"
    if f.unsafe != (f.full_identity_false_hits > f.false_hits):
        return f"unsafe is {str(f.unsafe).lower()}, and the false hits by either standard say otherwise"
    if f.kv_blocks_reused != f.blocks_reused - f.blocks_wrongly_reused:
        return f"kv_blocks_reused is {f.kv_blocks_reused}, not {f.blocks_reused} less {f.blocks_wrongly_reused}"
    return _of_blocks(f.blocks, f.blocks_reused, f.blocks_wrongly_reused, f.blocks_missed)


def _worst(counts: Mapping[str, int]) -> str:
    """The verdict that stands for all lookups."""
    return next((verdict for verdict in (FALSE_HIT, TRUE_HIT, MISSED_REUSE) if counts.get(verdict)), SAFE_MISS)


def _of_blocks(blocks: int, reused: int, wrong: int, missed: int) -> str | None:
    if wrong <= reused <= blocks - missed:
        return None
    return f"of {blocks} blocks {reused} reused, {wrong} of them wrongly, and {missed} missed"


def of_prefix_blocks(prefix: PrefixBlocks) -> str | None:
    """No more is reused and missed than there is."""
    return _of_blocks(prefix.blocks, prefix.reused, prefix.wrong, prefix.missed)


def of_case(case: Case) -> str | None:
    """What a request shows stands within it."""
    both = ((case.items.first, case.tokens[0]), (case.items.second, case.tokens[1])) if case.items else ()
    for items, tokens in both:
        for item in items:
            for offset, length in item.ranges:
                if offset + length > tokens:
                    return f"tokens {offset} to {offset + length} of a request of {tokens}: {item.name!r:.60}"
    return None


def of_scenario(scenario: Scenario) -> str | None:
    """The figures are counted of the cases."""
    for granularity in GRANULARITIES:
        for strategy, figures in scenario.figures(granularity).items():
            verdicts = [case.verdicts[granularity][strategy] for case in scenario.cases]
            by_image, by_full = (Counter(pair[standard] for pair in verdicts) for standard in (0, 1))
            told = (figures.true_hits, figures.false_hits, figures.safe_misses)
            told_full = (figures.full_identity_true_hits, figures.full_identity_false_hits, figures.missed_reuse)
            if (
                len(verdicts) != figures.lookups
                or told != tuple(by_image[verdict] for verdict in (TRUE_HIT, FALSE_HIT, SAFE_MISS))
                or told_full != tuple(by_full[verdict] for verdict in (TRUE_HIT, FALSE_HIT, MISSED_REUSE))
            ):
                return f"{granularity}.{strategy} does not count the verdicts of its {len(verdicts)} cases"
            if figures.memory_saved_bytes != figures.prefill_tokens_saved * scenario.kv_bytes_per_token:
                return f"{granularity}.{strategy}.memory_saved_bytes is not the tokens saved x the bytes of one"
    for i, case in enumerate(scenario.cases):
        full = case.tokens[1] // scenario.block_size
        if any(prefix.blocks != full for prefix in (case.prefix_blocks or {}).values()):
            return f"cases[{i}].prefix_blocks: {case.tokens[1]} tokens are {full} full blocks of {scenario.block_size}"
    return None


def of_summary(scenarios: Sequence[Scenario]) -> str | None:
    """Each scenario and each variant has a place of its own on the pages."""
    if not scenarios:
        return "No scenario in it"
    return _twice([part.scenario for scenario in scenarios for part in (scenario, *scenario.variants)])


def _twice(names: Sequence[str]) -> str | None:
    name, times = Counter(names).most_common(1)[0]
    return f"{name!r:.80} is there twice" if times > 1 else None


def of_matrix_row(row: MatrixRow) -> str | None:
    """A verdict is that of its blocks."""
    counts = {
        FALSE_HIT: row.blocks_wrongly_reused,
        TRUE_HIT: row.blocks_reused,
        MISSED_REUSE: row.blocks_missed,
    }
    if row.verdict != _worst(counts) or row.right != (not (row.blocks_wrongly_reused or row.blocks_missed)):
        told = f"{row.verdict}, {'right' if row.right else 'not right'}"
        return f"{told}: {row.blocks_reused} reused, {row.blocks_wrongly_reused} wrongly, {row.blocks_missed} missed"
    return _of_blocks(row.blocks, row.blocks_reused, row.blocks_wrongly_reused, row.blocks_missed)


def of_matrix(rows: Sequence[MatrixRow]) -> str | None:
    """Each mutation has one cell for each strategy at each granularity, and all say the same of it."""
    if not rows:
        return "No mutation in it"
    cells: dict[str, list[MatrixRow]] = {}
    for row in rows:
        cells.setdefault(row.mutation, []).append(row)
    for mutation, of_it in cells.items():
        places = Counter((row.granularity, row.strategy) for row in of_it)
        for granularity in GRANULARITIES:
            for strategy in STRATEGIES:
                times = places[granularity, strategy]
                if times != 1:
                    return f"{granularity}, {strategy} is there {times} times for {mutation!r:.60}"
        if len({(row.group, row.about, row.why, row.kv_changes, row.kv_changes_from) for row in of_it}) > 1:
            return f"the cells of {mutation!r:.60} do not say the same of the KV"
        if len({frozenset(row.oracle or ()) for row in of_it}) > 1:
            return f"the cells of {mutation!r:.60} were not judged by the same models"
    return None


def of_sweep(entries: Sequence[SweepEntry]) -> str | None:
    """Each combination stands once, and all were given the same stream."""
    if not entries:
        return "No combination in it"
    if len({e.request.lookups for e in entries} | {e.prefix.lookups for e in entries}) > 1:
        return "not every combination was given the same number of requests"
    return _twice([f"{e.strategy}, {e.algorithm}, {e.block_size}, {e.capacity}" for e in entries])
