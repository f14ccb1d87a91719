"""What the tests of the report share: the scenarios, what `mmkey bench --json` might print, and a reader of pages."""

from __future__ import annotations

import hashlib
import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta", "br", "input", "img", "link", "hr"}
SCENARIOS = [
    "same_text_same_image", "same_text_different_image", "same_image_different_question", "same_image_different_resize",
    "multi_image_same_order", "multi_image_different_order", "same_video_different_frame_sampling",
]  # fmt: skip
BENCH = {
    "machine": {"cpu": "A <b>CPU</b> & more", "python": "3.11.7", "numpy": "2.0.0", "peers": {}},
    "kernels": {"sha256": {"stream": {"kernel": "shani", "available": ["shani", "portable"]}}},
    "digests": [
        {"algorithm": a, "bytes": n, "seconds": {"mmkey": n * 1e-9 + 1e-7, peer: n * 2e-9 + 3e-7}}
        for a, peer in (("sha256", "hashlib"), ("blake3", "blake3"))
        for n in (96, 1024, 338_688)
    ],
    "requests": [
        {"algorithm": a, "tokens": 8192, "pictures": n, "size": "336x336" if n else None,
         "form": "encoded" if n else None, "seconds": {"A": 1e-4, "B": 2e-4, "C": 2.1e-4, "usual": 1e-3}}
        for a in ("sha256", "blake3") for n in (0, 8)
    ],
}  # fmt: skip
MODELS = {"one": "Model One", "two": "Model <b>Two</b>", "three": "Model Three"}


class Page(HTMLParser):
    """What a page holds: well-formed, or an AssertionError."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


def edit(path: Path, change: Any) -> None:
    """Changes a file of results, which still passes for what its run has written."""
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")
    seal(path.parent)


def seal(folder: Path) -> None:
    """Lets every run vouch for the files as they are now."""
    for path in (folder / "run.json", folder / "matrix_run.json"):
        if not path.exists():
            continue
        run = json.loads(path.read_text(encoding="utf-8"))
        for name in run["digests"]:
            if (folder / name).exists():
                text = (folder / name).read_text(encoding="utf-8")
                value = json.loads(text) if name.endswith("json") else text
                compact = json.dumps(value, sort_keys=True, separators=(",", ":"))
                run["digests"][name] = hashlib.sha256(compact.encode()).hexdigest()
        path.write_text(json.dumps(run), encoding="utf-8")


def let_models_judge(folder: Path) -> list[dict[str, Any]]:
    """Makes a matrix one that real models judged, and found wanting: no clips in the second, the third against all."""
    rows: list[dict[str, Any]] = json.loads((folder / "matrix.json").read_text(encoding="utf-8"))
    for row in rows:
        agrees = {name: row[name] for name in ("kv_changes", "kv_changes_from", "verdict", "right")}
        row["oracle"] = {"one": agrees, "three": {**agrees, "verdict": "false_hit", "right": False}}
        if row["group"] != "video":
            row["oracle"]["two"] = agrees
    (folder / "matrix.json").write_text(json.dumps(rows), encoding="utf-8")
    shared = {"parameters": 1000, "layers": 2, "torch": "2.0", "transformers": "5.0"}
    hit = {"model": "two", "mutation": rows[-1]["mutation"], "strategies": ["A", "B"]}
    decoded = {"next_token_changed": True, "decoded_tokens": 8, "decoded_tokens_changed": 5}
    oracle = {
        "passed": False,
        "models": [{"model": model, "title": title, **shared} for model, title in MODELS.items()],
        "comparisons": [
            {"model": model, "mutation": row["mutation"], "agrees": model != "three"}
            for row in rows
            for model in row["oracle"]
        ],
        "false_hits": [{**hit, **decoded}],
    }
    (folder / "oracle.json").write_text(json.dumps(oracle), encoding="utf-8")
    edit(
        folder / "matrix_run.json", lambda run: run.update(passed=False, digests={**run["digests"], "oracle.json": ""})
    )
    return rows
