"""Takes pictures of the report's index and heat map, in both languages.

    python docs/screenshots.py          the readme's: docs/images/<page>-<lang>.svg
    python docs/screenshots.py FOLDER   to look at: <page>-<lang>-<scheme>-<width>.png, light and dark, 360 and 1440

Runs the study and the matrix first. Needs Chromium (Debian: chromium) and ``pip install 'mmkey[study,browser]'``.

The readme's pictures are the upper part of the pages as Chromium has them, styles and all, in SVG's foreignObject: text
that a diff can show, and dark where the reader's setting is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

LANGUAGES = ("en", "zh")
# and what is left out of the readme's picture
PAGES = {"index": "#acceptance, section:has(> #matrix)", "matrix": "section:has(> #totals)"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1000, 1100

CUT = """([without, height]) => {
    document.querySelectorAll("header, footer, script, .skip, .filters, meta").forEach(e => e.remove());
    document.querySelectorAll(without).forEach(e => e.remove());
    const style = document.querySelector("style");
    style.textContent = [...style.sheet.cssRules]
        .filter(rule => !(rule.media && /width|print/.test(rule.media.mediaText)))
        .map(rule => rule.cssText).join("\\n") + "\\nbody{padding-top:.5rem}";
    document.querySelectorAll("details .more").forEach(e => e.remove());
    const fits = e => e.getBoundingClientRect().bottom <= height;
    document.querySelectorAll(".verdicts tbody, tr, p, dl, figure").forEach(e => fits(e) || e.remove());
    document.querySelectorAll("tbody, table, section").forEach(e => e.querySelector("td, p, li") || e.remove());
    const html = new XMLSerializer().serializeToString(document.documentElement);
    return [html, Math.ceil(document.querySelector("main").getBoundingClientRect().bottom) + 16];
}"""


@contextmanager
def reports() -> Iterator[tuple[Browser, Path]]:
    """A browser, and a folder with the pages of each language."""
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        for lang in LANGUAGES:
            for what in ([], ["--matrix"]):
                command = [sys.executable, "-m", "mmkey", "study", "--out", f"{made}/{lang}", "--lang", lang, *what]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own command)
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield chromium, Path(made)
        chromium.close()


def write_readme_pictures() -> None:
    """Writes docs/images/<page>-<lang>.svg."""
    IMAGES.mkdir(exist_ok=True)
    with reports() as (chromium, made):
        for lang in LANGUAGES:
            for page, without in PAGES.items():
                view = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
                view.goto((made / lang / f"{page}.html").as_uri())
                html, height = view.evaluate(CUT, [without, HEIGHT])
                view.close()
                size = f'width="{WIDTH}" height="{height}"'
                text = (
                    f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}">'
                    f"<foreignObject {size}>{html}</foreignObject></svg>\n"
                )
                lines = (line.rstrip() for line in text.splitlines())
                (IMAGES / f"{page}-{lang}.svg").write_text(
                    "\n".join(line for line in lines if line) + "\n", encoding="utf-8"
                )


def write_screenshots(folder: Path) -> None:
    """Writes <page>-<lang>-<scheme>-<width>.png into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with reports() as (chromium, made):
        for lang in LANGUAGES:
            for page in PAGES:
                for scheme in ("light", "dark"):
                    for width in (360, 1440):
                        view = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                        view.goto((made / lang / f"{page}.html").as_uri())
                        view.screenshot(path=folder / f"{page}-{lang}-{scheme}-{width}.png", full_page=True)
                        view.close()


if __name__ == "__main__":
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        write_screenshots(Path(sys.argv[1]))
    else:
        write_readme_pictures()
