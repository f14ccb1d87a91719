"""What the oracle finds, its figures explained, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ORACLE_DEFINITIONS = {
    "models": "real architectures with few random weights, and their real image processors; float64, compared by bits",
    "comparisons": "one for each mutation that a model can follow: base request and mutated one, prefilled whole",
    "kv_changes": "whether the KV of any position differs in any layer, or the requests differ in length",
    "kv_changes_from": "the first position whose KV differs, by the tensors; null where none does",
    "expected_from": "the same, by the mutation's tag for this model",
    "agrees": "whether the two are the same position",
    "kv_difference": "the largest absolute difference of any key or value at positions that both have",
    "opinion": "why this model differs from Qwen2.5-VL's tag, where it does",
    "strategies": "by strategy, at prefix granularity: blocks that its keys reuse of the base, those of them whose KV "
    "differs (wrong), and blocks whose KV is the same that it does not reuse (missed); at request granularity: whether "
    "the key is the same (request_found), and whether that serves another's KV (request_wrong)",
    "tokens": "the same with blocks of one token: the keys against the tensors position by position, for strategy C",
    "missed_reason": "why C's key differs where the KV does not",
    "not_expressible": "mutations that a model or its processor has nothing for, with the reason",
    "false_hits": "what a wrong reuse does: the mutated request's last tokens are computed on the KV that the strategy "
    "reused, and decoding goes on from there, each time the likeliest token; beside it the same from its own KV",
    "tokens_reused": "positions whose KV was taken from the base",
    "logits_moved": "the largest absolute difference of the logits that the next token is chosen from",
    "logits_spread": "their standard deviation, to compare with",
    "next_token_changed": "whether the next token is another",
    "decoded_tokens_changed": "how many of the next tokens decoded are others",
}


@dataclass(frozen=True)
class Oracle:
    """Everything that the models said. ORACLE_DEFINITIONS explains the JSON."""

    comparisons: list[dict[str, Any]] = field(default_factory=list)
    inexpressible: list[dict[str, str]] = field(default_factory=list)
    false_hits: list[dict[str, Any]] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)

    def wrong_for_c(self) -> list[dict[str, Any]]:
        """Comparisons in which C's keys would serve another's KV."""
        return [
            c
            for c in self.comparisons
            if c["strategies"]["C"]["wrong"] or c["strategies"]["C"]["request_wrong"] or c["tokens"]["wrong"]
        ]

    def disagreements(self) -> list[dict[str, Any]]:
        """Comparisons in which the KV differs from elsewhere than the mutation's tag says."""
        return [c for c in self.comparisons if not c["agrees"]]

    def unexplained(self) -> list[dict[str, Any]]:
        """Comparisons in which C misses reuse, and no reason is given."""
        return [c for c in self.comparisons if c["strategies"]["C"]["missed"] and not c["missed_reason"]]

    @property
    def passed(self) -> bool:
        """C serves no other's KV, all tags are right, and every missed reuse has its reason."""
        return not (self.wrong_for_c() or self.disagreements() or self.unexplained())

    def lines(self) -> list[str]:
        """The verdict, a line each."""
        lines = []
        for model in self.models:
            of_it = [c for c in self.comparisons if c["model"] == model["model"]]
            hits = [f for f in self.false_hits if f["model"] == model["model"]]
            other = sum(f["next_token_changed"] for f in hits)
            differs = sum(c["kv_changes"] for c in of_it)
            lines.append(
                f"      {model['title']}: {len(of_it)} mutations prefilled, KV differs in {differs}; "
                f"of {len(hits)} false hits decoded, {other} change the next token"
            )
        checks = (
            ("where C's block keys are the same, the KV is the same, bit by bit", self.wrong_for_c()),
            ("the KV differs from where the mutation says it does", self.disagreements()),
            ("every reuse that C misses has its reason", self.unexplained()),
        )
        for text, against in checks:
            names = ", ".join(f"{c['model']}/{c['mutation']}" for c in against)
            lines.append(f"{'FAIL' if against else 'PASS'}  {text}{f': not {names}' if names else ''}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """What oracle.json holds."""
        return {
            "passed": self.passed,
            "models": self.models,
            "comparisons": self.comparisons,
            "not_expressible": self.inexpressible,
            "false_hits": self.false_hits,
            "definitions": dict(ORACLE_DEFINITIONS),
        }

    def opinions(self) -> Mapping[str, Sequence[dict[str, Any]]]:
        """The comparisons by mutation."""
        found: dict[str, list[dict[str, Any]]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison["mutation"], []).append(comparison)
        return found
