"""The readme runs as it reads, and documents that exist in two languages say the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import mmkey

ROOT = Path(__file__).resolve().parents[2]
TWINS = [("README.md", "README.zh-CN.md"), ("docs/cache_key_design.md", "docs/cache_key_design.zh-CN.md")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str | None = None) -> list[str]:
    return [body for kind, body in FENCE.findall(text) if language in {None, kind}]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def tables(text: str) -> list[list[list[str]]]:
    """Tables as rows of cells, without the rule under the heading."""

    def cells(line: str) -> list[str]:
        return [cell.strip() for cell in line.strip("|\n ").split("|")]

    found = re.findall(r"(?:^\|.*\|\n)+", prose(text), re.MULTILINE)
    return [[cells(line) for line in table.splitlines() if not re.fullmatch(r"[|: -]+", line)] for table in found]


def marks(cell: str) -> list[str]:
    """What a translation keeps: code, numbers, and names of verdicts."""
    code = re.findall(r"`[^`]+`", cell)
    return sorted([*code, *re.findall(r"\d[\d,]*(?:\.\d+)?", re.sub(r"`[^`]+`", "", cell))])


@pytest.mark.parametrize(("english", "chinese"), TWINS)
def test_twins_have_the_same_headings(english: str, chinese: str) -> None:
    levels = [re.findall(r"^(#+) ", prose(read(name)), re.MULTILINE) for name in (english, chinese)]
    assert len(levels[0]) > 3
    assert levels[0] == levels[1]


@pytest.mark.parametrize(("english", "chinese"), TWINS)
def test_twins_have_the_same_code_and_commands(english: str, chinese: str) -> None:
    assert FENCE.findall(read(english)) == FENCE.findall(read(chinese))
    spans = [sorted(set(re.findall(r"`[^`\n]+`", prose(read(name))))) for name in (english, chinese)]
    assert spans[0] == spans[1]


@pytest.mark.parametrize(("english", "chinese"), TWINS)
def test_twins_have_the_same_tables(english: str, chinese: str) -> None:
    ours, theirs = tables(read(english)), tables(read(chinese))
    assert len(ours) > 1
    assert [[[marks(cell) for cell in row] for row in t] for t in ours] == [
        [[marks(cell) for cell in row] for row in t] for t in theirs
    ]


@pytest.mark.parametrize(("english", "chinese"), TWINS)
def test_twins_link_to_the_same_places(english: str, chinese: str) -> None:
    links = [set(re.findall(r"\]\(([^)#]+)", read(name))) for name in (english, chinese)]
    same = [{re.sub(r"\.zh-CN|-(?:en|zh)(?=\.svg$)", "", target) for target in found} for found in links]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    "name", sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", prose(read(name))):
        assert target.startswith("https://") or (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("number", range(len(blocks(read("README.md"), "python"))))
def test_examples_of_the_readme_run(number: int, tmp_path: Path) -> None:
    code = blocks(read("README.md"), "python")[number]
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_of_the_readme_is_what_the_study_prints(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mmkey", "study", "--out", str(tmp_path / "results")]
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = blocks(read("README.md"), "text")
    printed = [line for line in done.stdout.splitlines() if not line.startswith("Results are in")]
    assert shown.splitlines() == printed


def test_the_readme_shows_every_way_of_use() -> None:
    code = blocks(read("README.md"), "python")
    assert [any(use in block for block in code) for use in ("digest_many", "timeit", "KeyEngine")] == [True] * 3


def test_every_error_of_a_request_is_of_a_class_that_the_readme_names() -> None:
    named = {getattr(mmkey, name) for name in re.findall(r"`(InvalidRequest|UnsupportedType)`", read("README.md"))}
    assert all(issubclass(error, mmkey.MmkeyError) for error in named)
    engine = mmkey.KeyEngine("A", block_size=4)
    raised = set()
    for token_ids in ([-1], object()):
        with pytest.raises(mmkey.MmkeyError) as caught:
            engine.prepare(mmkey.Request(token_ids, [], []))
        assert caught.value.field.startswith("token_ids")  # type: ignore[attr-defined]
        raised.add(caught.type)
    assert raised == named


def test_each_command_of_the_readme_does_all_of_the_set_up() -> None:
    commands = "".join(blocks(read("README.md"), "bash")).splitlines()
    begin = "python3 -m venv .venv && .venv/bin/pip install '.[{}]' && .venv/bin/{}"
    assert commands == [begin.format("study", "mmkey study"), begin.format("test", "pytest")]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_pictures_show_themselves_without_fetching_or_running_anything(name: str) -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", prose(read(name)))
    assert len(pictures) == 2
    for described, path in pictures:
        assert len(described) > 10
        root = ET.fromstring(read(path))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        elements = [element.tag.split("}")[1] for element in root.iter()]
        assert "table" in elements
        assert not {"script", "img", "image", "link", "iframe", "use"} & set(elements)
        assert "url(" not in read(path)
        assert (ROOT / path).stat().st_size < 300_000
