"""What the results' files hold, as far as the report shows it. A file may hold more; what is here must be sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from mmkey.study.report import laws
from mmkey.study.verdicts import GRANULARITIES, STRATEGIES, Granularity, Strategy, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Measured = Annotated[float, Field(ge=1e-12, le=1e6, allow_inf_nan=False)]  # seconds, on a logarithmic scale
Text = Annotated[str, Field(max_length=4096)]  # what a page holds a few hundred of
Range = Annotated[list[Count], Field(min_length=2, max_length=2)]
Sizes = Annotated[list[Count], Field(min_length=2, max_length=3)]
Verdicts = Annotated[list[Verdict], Field(min_length=2, max_length=2)]  # by image identity, by full identity
_OTHER_PAGES = {"index", "matrix", "sweep"}
_T = TypeVar("_T")


def _holding(law: Callable[[_T], str | None]) -> AfterValidator:
    """Refuses what is sound in each field and contradicts itself."""

    def check(value: _T) -> _T:
        if problem := law(value):
            raise PydanticCustomError("contradiction", "{problem}", {"problem": problem})
        return value

    return AfterValidator(check)


def _page_of_its_own(name: str) -> str | None:
    return f"A page of another kind has this name: {name}" if name in _OTHER_PAGES else None


def _all_of(*wanted: str) -> AfterValidator:
    """A table has a column for each: one that is not there would put its neighbour's verdict under its heading."""

    def lacking(found: Mapping[str, Any]) -> str | None:
        names = [name for name in wanted if name not in found]
        return f"Lacks {', '.join(names)}" if names else None

    return _holding(lacking)


# A page's name is made of a scenario's: nothing but what a file name may hold everywhere.
ScenarioName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,80}$"), _holding(_page_of_its_own)]
_STRATEGIES, _GRANULARITIES = _all_of(*STRATEGIES), _all_of(*GRANULARITIES)


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, protected_namespaces=())


class Figures(_Model):
    """What was counted of one strategy at one granularity."""

    verdict: Verdict
    full_identity_verdict: Verdict
    unsafe: bool
    lookups: Count
    true_hits: Count
    false_hits: Count
    safe_misses: Count
    full_identity_true_hits: Count
    full_identity_false_hits: Count
    full_identity_safe_misses: Count
    missed_reuse: Count
    prefill_tokens_saved: Count
    kv_blocks_reused: Count
    memory_saved_bytes: Count
    prefill_tokens_wrongly_reused: Count
    blocks: Count
    blocks_reused: Count
    blocks_wrongly_reused: Count
    blocks_missed: Count
    unsafe_reasons: Annotated[list[Text], Field(max_length=20)] = []


class Shown(_Model):
    """One item of a request: sizes (height, width), the grid (t, h, w), ranges (offset, length) in tokens."""

    name: Text
    modality: Text
    ranges: list[Range]
    original_size: Sizes
    resized_size: Sizes
    patch_grid: Sizes
    num_visual_tokens: Count
    sampling: dict[str, Any] | None = None


class BothRequests(_Model):
    """The items of either request, by first appearance."""

    first: list[Shown]
    second: list[Shown]


class PrefixBlocks(_Model):
    """Full blocks of the second request; of them the leading ones reused, the last of these wrong, others missed."""

    blocks: Count
    reused: Count
    wrong: Count
    missed: Count


SoundPrefixBlocks = Annotated[PrefixBlocks, _holding(laws.of_prefix_blocks)]
Differences = Annotated[list[Text], Field(max_length=200)]


class Case(_Model):
    """Two requests. What older results lack is None, and the page says so."""

    first: list[Text]
    second: list[Text]
    tokens: Range
    differences: Differences
    verdicts: Annotated[dict[Granularity, Annotated[dict[Strategy, Verdicts], _STRATEGIES]], _GRANULARITIES]
    shared_tokens: Count | None = None
    prefix_blocks: Annotated[dict[Strategy, SoundPrefixBlocks], _STRATEGIES] | None = None
    items: BothRequests | None = None


ByStrategy = Annotated[dict[Strategy, Annotated[Figures, _holding(laws.of_figures)]], _STRATEGIES]
SoundCase = Annotated[Case, _holding(laws.of_case)]


class Scenario(_Model):
    """One entry of summary.json."""

    scenario: ScenarioName
    about: Text
    algorithm: str
    block_size: Annotated[int, Field(ge=1)]
    kv_bytes_per_token: Annotated[int, Field(ge=1)]
    request: ByStrategy
    prefix: ByStrategy
    cases: list[SoundCase]
    variants: list[SoundScenario] = []

    def figures(self, granularity: Granularity) -> dict[Strategy, Figures]:
        """The figures of one granularity, by strategy."""
        return self.request if granularity == "request" else self.prefix


SoundScenario = Annotated[Scenario, _holding(laws.of_scenario)]


class Machine(_Model):
    """How results were made."""

    command: str = ""
    versions: dict[str, str] = {}
    machine: str = ""
    kernels: dict[str, dict[str, dict[str, Any]]] = {}


class Check(_Model):
    """One piece of evidence; ``passed`` is None where the scenario was not run."""

    passed: bool | None
    scenario: str
    granularity: Granularity | Literal[""]
    false_hits: dict[Strategy, Count]
    lookups: Count


class Acceptance(_Model):
    """Whether the study passed, and why."""

    passed: bool
    checks: Annotated[list[Check], Field(min_length=1)]


class Skipped(_Model):
    """A file that was left out."""

    file: Text
    reason: Text


# Of the files written with it, by name.
Digests = dict[
    Annotated[str, Field(pattern=r"^[a-z0-9_]{1,80}\.(json|txt)$")], Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
]


class Run(Machine):
    """run.json."""

    acceptance: Acceptance
    digests: Annotated[Digests, _all_of("summary.json", "media.json", "evidence.txt")]
    algorithm: str
    block_size: Count
    kv_bytes_per_token: Count
    processor: str = ""
    skipped: list[Skipped] = []


class Media(_Model):
    """One entry of media.json. Nothing but an inline picture may stand there."""

    thumbnail: Annotated[str, Field(pattern=r"^data:image/webp;base64,[A-Za-z0-9+/]+={0,2}$", max_length=64_000)]


class Opinion(_Model):
    """What one real model's KV says of a strategy's keys."""

    kv_changes: bool
    kv_changes_from: Count | None
    verdict: Verdict
    right: bool


class MatrixRow(_Model):
    """One entry of matrix.json."""

    mutation: Text
    group: Text
    about: Text
    kv_changes: bool
    kv_changes_from: Count | None
    why: Text
    granularity: Granularity
    strategy: Strategy
    verdict: Verdict
    right: bool
    by_image: Verdict
    by_full: Verdict
    differences: Differences
    blocks: Count
    blocks_with_same_kv: Count
    blocks_reused: Count
    blocks_wrongly_reused: Count
    blocks_missed: Count
    missed_reason: Text
    oracle: dict[str, Annotated[Opinion, _holding(laws.of_opinion)]] | None = None


class MatrixCheck(_Model):
    """What must hold of the matrix, and the mutations that speak against it."""

    check: str
    passed: bool
    against: list[str]


class MatrixRun(Machine):
    """matrix_run.json."""

    algorithm: str
    block_size: Count
    passed: bool
    digests: Annotated[Digests, _all_of("matrix.json")]
    checks: Annotated[list[MatrixCheck], Field(min_length=1)]


class OracleModel(_Model):
    """A real model that judged."""

    model: str
    title: str
    parameters: Count
    layers: Count
    torch: str
    transformers: str


class OracleFalseHit(_Model):
    """What decoding on another's KV did."""

    model: str
    mutation: str
    strategies: list[Strategy]
    next_token_changed: bool
    decoded_tokens: Count
    decoded_tokens_changed: Count


class OracleComparison(_Model):
    """One mutation before one model: whether the KV differs from where its tag says."""

    model: str
    mutation: str
    agrees: bool


class Oracle(_Model):
    """oracle.json."""

    passed: bool
    models: Annotated[list[OracleModel], Field(min_length=1)]
    comparisons: Annotated[list[OracleComparison], Field(min_length=1)]
    false_hits: list[OracleFalseHit] = []


class SweepFigures(Figures):
    """Counts with tokens and times."""

    tokens: Count
    tokens_wrongly_reused: Count
    tokens_missed: Count
    hashing_seconds: Seconds
    matching_seconds: Seconds
    storing_seconds: Seconds


SoundSweepFigures = Annotated[SweepFigures, _holding(laws.of_figures)]


class SweepEntry(_Model):
    """One combination of a sweep."""

    strategy: Strategy
    algorithm: str
    block_size: Count
    capacity: Count | None
    request: SoundSweepFigures
    prefix: SoundSweepFigures


class Stream(_Model):
    """What all combinations of a sweep were given."""

    requests: Annotated[Count, Field(ge=1)]


class Sweep(Machine):
    """sweep.json."""

    stream: Stream
    results: list[SweepEntry]


class BenchMachine(_Model):
    """What a benchmark ran on."""

    cpu: str
    python: str
    numpy: str


class BenchDigest(_Model):
    """Digests of one message: seconds by implementation."""

    algorithm: str
    bytes: Count
    seconds: dict[str, Measured]


class BenchRequest(_Model):
    """Keys of a whole request: seconds by strategy, and of the usual way."""

    algorithm: str
    tokens: Count
    pictures: Count
    size: str | None
    form: str | None
    seconds: dict[str, Measured]


class Bench(_Model):
    """What ``mmkey bench --json`` prints."""

    machine: BenchMachine
    kernels: dict[str, dict[str, dict[str, Any]]]
    digests: list[BenchDigest]
    requests: list[BenchRequest]


SUMMARY = TypeAdapter(Annotated[list[SoundScenario], _holding(laws.of_summary)])
MATRIX = TypeAdapter(Annotated[list[Annotated[MatrixRow, _holding(laws.of_matrix_row)]], _holding(laws.of_matrix)])
ORACLE = TypeAdapter(Annotated[Oracle, _holding(laws.of_oracle)])
SWEEP = TypeAdapter(Annotated[Sweep, _holding(laws.of_sweep)])
MEDIA = TypeAdapter(dict[str, Media])
