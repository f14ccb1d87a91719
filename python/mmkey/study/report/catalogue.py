"""What the pages say, in English and Chinese.

``languages/<lang>.json`` holds the pages' own words by key. What the results themselves say in English (what a scenario
changes, why a mutation alters the KV) is translated sentence by sentence, by ``languages/<lang>_results.json``; a
sentence that is not there is shown as it is, and marked as English. What stands in a sentence's braces may be anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "zh")
HTML_LANG = {"en": "en", "zh": "zh-CN"}
# what stands between two pieces of text: after words that end in a colon, and instead of a colon, comma, semicolon
PUNCTUATION = {
    "en": {"gap": " ", "colon": ": ", "comma": ", ", "semicolon": "; "},
    "zh": {"gap": "", "colon": "\uff1a", "comma": "\uff0c", "semicolon": "\uff1b"},
}
_FOLDER = Path(__file__).parent / "languages"


@dataclass(frozen=True)
class Said:
    """A sentence of the results; ``lang`` is set where it is in another language than the page."""

    text: str
    lang: str = ""


@dataclass(frozen=True)
class Catalogue:
    """The words of one language. Called with a key and what stands in its braces; whole numbers get their commas."""

    lang: str
    words: Mapping[str, str]
    sentences: Mapping[str, str]

    def __call__(self, key: str, **values: Any) -> str:
        """The words of a key; a KeyError is a mistake of ours."""
        shown = {name: f"{v:,}" if type(v) is int else v for name, v in values.items()}
        return self.words[key].format(**shown)

    def has(self, key: str) -> bool:
        """Whether there are words for a key that results gave."""
        return key in self.words

    def sentence(self, text: str) -> Said:
        """A sentence of the results in this language, where it is known."""
        if self.lang == "en":
            return Said(text)
        if text in self.sentences:
            return Said(self.sentences[text])
        for sentence, known in self.sentences.items():
            if "{" in sentence and (found := _pattern(sentence).fullmatch(text)):
                return Said(known.format(**found.groupdict()))
        return Said(text, "en")


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    """What a sentence matches, each of its braces being a group."""
    parts = re.split(r"\{(\w+)\}", sentence)
    return re.compile(
        "".join(f"(?P<{part}>.+)" if n % 2 else re.escape(part) for n, part in enumerate(parts)), re.DOTALL
    )


def load(lang: str) -> Catalogue:
    """The catalogue of a language of LANGUAGES."""
    words = json.loads((_FOLDER / f"{lang}.json").read_text(encoding="utf-8"))
    sentences = _FOLDER / f"{lang}_results.json"
    known = json.loads(sentences.read_text(encoding="utf-8")) if sentences.exists() else {}
    return Catalogue(lang, words, known)
