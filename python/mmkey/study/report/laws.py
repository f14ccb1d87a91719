"""What holds between the numbers of one file: a table of numbers that contradict each other is not shown."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from mmkey.study.verdicts import FALSE_HIT, GRANULARITIES, MISSED_REUSE, SAFE_MISS, STRATEGIES, TRUE_HIT, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmkey.study.report.models import (
        Case,
        Figures,
        MatrixRow,
        Opinion,
        Oracle,
        PrefixBlocks,
        Scenario,
        Sweep,
    )
    from mmkey.study.verdicts import Granularity, Strategy

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
        if verdict != worst(counts):
            return f"{name} is {verdict}, and the counts say {worst(counts)}"
    if f.full_identity_false_hits < f.false_hits:
        return f"{f.false_hits} false hits by image identity, and {f.full_identity_false_hits} by full identity"
    if f.unsafe != (f.full_identity_false_hits > f.false_hits):
        return f"unsafe is {str(f.unsafe).lower()}, and the false hits by either standard say otherwise"
    if f.kv_blocks_reused != f.blocks_reused - f.blocks_wrongly_reused:
        return f"kv_blocks_reused is {f.kv_blocks_reused}, not {f.blocks_reused} less {f.blocks_wrongly_reused}"
    for what, some, there in (
        ("hits and blocks_reused", f.true_hits + f.false_hits, f.blocks_reused),
        ("full_identity_false_hits and blocks_wrongly_reused", f.full_identity_false_hits, f.blocks_wrongly_reused),
        ("kv_blocks_reused and prefill_tokens_saved", f.kv_blocks_reused, f.prefill_tokens_saved),
        ("blocks and tokens wrongly reused", f.blocks_wrongly_reused, f.prefill_tokens_wrongly_reused),
    ):
        if (some == 0) != (there == 0):
            return f"{what} are {some} and {there}: both are none, or neither"
    return _of_blocks(f.blocks, f.blocks_reused, f.blocks_wrongly_reused, f.blocks_missed)


def _of_blocks(blocks: int, reused: int, wrong: int, missed: int) -> str | None:
    if wrong <= reused <= blocks - missed:
        return None
    return f"of {blocks} blocks {reused} reused, {wrong} of them wrongly, and {missed} missed"


def of_prefix_blocks(prefix: PrefixBlocks) -> str | None:
    """No more is reused and missed than there is."""
    return _of_blocks(prefix.blocks, prefix.reused, prefix.wrong, prefix.missed)


def of_case(case: Case) -> str | None:
    """What a request shows stands within it, and what differs is there; blocks are found where the verdict says so."""
    both = ((case.items.first, case.tokens[0]), (case.items.second, case.tokens[1])) if case.items else ()
    for items, tokens in both:
        for item in items:
            for offset, length in item.ranges:
                if offset + length > tokens:
                    return f"tokens {offset} to {offset + length} of a request of {tokens}: {item.name!r:.60}"
    most = max((len(items) for items, _ in both), default=None)
    for name in case.differences:
        found = _DIFFERENCE.match(name)
        token, item_number = (found[1], found[2]) if found else (None, None)
        if (
            not found
            or (token and int(token) > max(case.tokens))
            or (item_number and most is not None and int(item_number) >= most)
        ):
            return f"{name!r:.60} names nothing of these requests"
    if not case.differences and any(FALSE_HIT in v for of_it in case.verdicts.values() for v in of_it.values()):
        return "a false hit, and no difference"
    for strategy, prefix in (case.prefix_blocks or {}).items():
        by_image, by_full = case.verdicts["prefix"][strategy]
        counts = {FALSE_HIT: prefix.wrong, TRUE_HIT: prefix.reused, MISSED_REUSE: prefix.missed}
        if by_full != worst(counts) or (by_image == SAFE_MISS) != (prefix.reused == 0):
            return f"prefix_blocks.{strategy} are not what the verdicts {by_image} and {by_full} say"
    return None


# Of tokens, items and the scope: with at most nine digits, since a request has no more.
_DIFFERENCE = re.compile(r"(?:token_ids\[(\d{1,9})\]|items\[(\d{1,9})\](?:\.\w+)?|scope\.\w+)$")


def of_scenario(scenario: Scenario) -> str | None:
    """The figures are counted of the cases."""
    if any(variant.variants for variant in scenario.variants):
        return "a variant of a variant"
    for i, case in enumerate(scenario.cases):
        full = case.tokens[1] // scenario.block_size
        if any(prefix.blocks != full for prefix in (case.prefix_blocks or {}).values()):
            return f"cases[{i}].prefix_blocks: {case.tokens[1]} tokens are {full} full blocks of {scenario.block_size}"
    for granularity in GRANULARITIES:
        for strategy, figures in scenario.figures(granularity).items():
            if problem := _of_count(scenario, granularity, strategy, figures):
                return f"{granularity}.{strategy}{problem}"
    return None


def _of_count(scenario: Scenario, granularity: Granularity, strategy: Strategy, figures: Figures) -> str | None:
    verdicts = [case.verdicts[granularity][strategy] for case in scenario.cases]
    by_image, by_full = (Counter(pair[standard] for pair in verdicts) for standard in (0, 1))
    told = (figures.true_hits, figures.false_hits, figures.safe_misses)
    told_full = (figures.full_identity_true_hits, figures.full_identity_false_hits, figures.missed_reuse)
    if (
        len(verdicts) != figures.lookups
        or told != tuple(by_image[verdict] for verdict in (TRUE_HIT, FALSE_HIT, SAFE_MISS))
        or told_full != tuple(by_full[verdict] for verdict in (TRUE_HIT, FALSE_HIT, MISSED_REUSE))
    ):
        return f" does not count the verdicts of its {len(verdicts)} cases"
    if figures.memory_saved_bytes != figures.prefill_tokens_saved * scenario.kv_bytes_per_token:
        return ".memory_saved_bytes is not the tokens saved x the bytes of one"
    if granularity == "request":
        counted = _whole_requests(scenario, strategy)
    elif all(case.prefix_blocks for case in scenario.cases):
        counted = _leading_blocks(scenario, strategy)
    else:  # older results do not say it of each case
        return None
    for name, count in counted.items():
        if getattr(figures, name) != count:
            return f".{name} is {getattr(figures, name)}, and {count} in its cases"
    return None


def _whole_requests(scenario: Scenario, strategy: Strategy) -> dict[str, int]:
    """A request's last block counts too, though not full."""
    found = Counter[str]()
    for case in scenario.cases:
        verdict, tokens = case.verdicts["request"][strategy][1], case.tokens[1]
        blocks = -(-tokens // scenario.block_size)
        found.update(
            blocks=blocks,
            blocks_reused=blocks * (verdict in {TRUE_HIT, FALSE_HIT}),
            blocks_wrongly_reused=blocks * (verdict == FALSE_HIT),
            blocks_missed=blocks * (verdict == MISSED_REUSE),
            prefill_tokens_saved=tokens * (verdict == TRUE_HIT),
            prefill_tokens_wrongly_reused=tokens * (verdict == FALSE_HIT),
        )
    return dict(found)


def _leading_blocks(scenario: Scenario, strategy: Strategy) -> dict[str, int]:
    found = Counter[str]()
    for case in scenario.cases:
        prefix = (case.prefix_blocks or {})[strategy]
        found.update(
            blocks=prefix.blocks,
            blocks_reused=prefix.reused,
            blocks_wrongly_reused=prefix.wrong,
            blocks_missed=prefix.missed,
            prefill_tokens_saved=(prefix.reused - prefix.wrong) * scenario.block_size,
            prefill_tokens_wrongly_reused=prefix.wrong * scenario.block_size,
        )
    return dict(found)


def of_summary(scenarios: Sequence[Scenario]) -> str | None:
    """Each scenario and each variant has a place of its own on the pages."""
    if not scenarios:
        return "No scenario in it"
    return _twice([part.scenario for scenario in scenarios for part in (scenario, *scenario.variants)])


def _twice(names: Sequence[str]) -> str | None:
    name, times = Counter(names).most_common(1)[0]
    return f"{name!r:.80} is there twice" if times > 1 else None


def of_matrix_row(row: MatrixRow) -> str | None:
    """A verdict is that of its blocks, and these are right and wrong by where the KV changes."""
    same, reused, wrong, missed = (
        row.blocks_with_same_kv, row.blocks_reused, row.blocks_wrongly_reused, row.blocks_missed
    )  # fmt: skip
    if row.kv_changes and not row.differences:
        return "the KV changes, and no field differs"
    if row.kv_changes != (row.kv_changes_from is not None):
        return f"kv_changes is {str(row.kv_changes).lower()}, from token {row.kv_changes_from}"
    if max(same, reused) > row.blocks or (wrong, missed) != (max(0, reused - same), max(0, same - reused)):
        return f"of {row.blocks} blocks {same} with the same KV, {reused} reused, {wrong} wrongly, {missed} missed"
    if row.granularity == "request" and same != (0 if row.kv_changes else row.blocks):
        return f"{same} of {row.blocks} blocks with the same KV at request granularity"
    verdict, right = worst({FALSE_HIT: wrong, TRUE_HIT: reused, MISSED_REUSE: missed}), not (wrong or missed)
    if (row.verdict, row.right) != (verdict, right):
        told = f"{row.verdict}, {'right' if row.right else 'not right'}"
        return f"{told}: {reused} reused, {wrong} wrongly, {missed} missed"
    return None


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


def of_opinion(opinion: Opinion) -> str | None:
    """What is a false hit or misses what was there is not right."""
    if opinion.right and opinion.verdict in {FALSE_HIT, MISSED_REUSE}:
        return f"{opinion.verdict}, and right"
    return None


def of_oracle(oracle: Oracle) -> str | None:
    """Every model and every false hit is of a comparison; and models that disagree, or find C wrong, did not pass."""
    asked = {(c.model, c.mutation) for c in oracle.comparisons}
    models = {model.model for model in oracle.models}
    if models != {model for model, _ in asked} or len(models) != len(oracle.models):
        return "its models are not those of its comparisons"
    for hit in oracle.false_hits:
        if (hit.model, hit.mutation) not in asked:
            return f"a false hit that no model was asked about: {hit.model!r:.60}, {hit.mutation!r:.60}"
        if hit.decoded_tokens_changed > hit.decoded_tokens:
            return f"{hit.decoded_tokens_changed} of {hit.decoded_tokens} decoded tokens changed"
    against = not all(c.agrees for c in oracle.comparisons) or any("C" in hit.strategies for hit in oracle.false_hits)
    return "passed, and a comparison or a false hit of C speaks against it" if oracle.passed and against else None


def of_sweep(sweep: Sweep) -> str | None:
    """Each combination stands once, all were given the same stream, and no more than all of its tokens is told of."""
    if not sweep.results:
        return "No combination in it"
    for i, entry in enumerate(sweep.results):
        for name, f in (("request", entry.request), ("prefix", entry.prefix)):
            if f.lookups != sweep.stream.requests:
                return f"results[{i}].{name}: {f.lookups} lookups of a stream of {sweep.stream.requests} requests"
            wrong = f.prefill_tokens_wrongly_reused
            if f.prefill_tokens_saved + wrong + f.tokens_missed > f.tokens or f.tokens_wrongly_reused != wrong:
                parts = f"{f.prefill_tokens_saved} saved, {f.tokens_wrongly_reused} wrongly reused, {f.tokens_missed}"
                return f"results[{i}].{name}: of {f.tokens} tokens {parts} missed"
        if entry.prefix.tokens != entry.prefix.blocks * entry.block_size:
            return f"results[{i}].prefix: {entry.prefix.blocks} blocks of {entry.block_size} with other tokens"
    return _twice([f"{e.strategy}, {e.algorithm}, {e.block_size}, {e.capacity}" for e in sweep.results])
