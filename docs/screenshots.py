"""Takes pictures of the report's index and heat map: both languages, light and dark, 360 and 1440 pixels wide.

    python docs/screenshots.py FOLDER

Runs the study and the matrix first. Needs Chromium (Debian: chromium) and ``pip install 'mmkey[study,browser]'``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGES = ("index", "matrix")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def main(folder: Path) -> None:
    """Writes <page>-<lang>-<scheme>-<width>.png into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for lang in ("en", "zh"):
            for what in ([], ["--matrix"]):
                command = [sys.executable, "-m", "mmkey", "study", "--out", made, "--lang", lang, *what]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own command)
            for page in PAGES:
                for scheme in ("light", "dark"):
                    for width in (360, 1440):
                        view = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                        view.goto((Path(made) / f"{page}.html").as_uri())
                        view.screenshot(path=folder / f"{page}-{lang}-{scheme}-{width}.png")
                        view.close()
        chromium.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
