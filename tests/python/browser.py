"""A real Chromium, headless, driven by Playwright; neither is there everywhere."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def executable() -> str | None:
    """Where Chromium is; MMKEY_CHROMIUM names another."""
    return os.environ.get("MMKEY_CHROMIUM") or next((path for path in map(shutil.which, _NAMES) if path), None)


def why_not() -> str | None:
    """What is missing and how to get it, or None."""
    missing = []
    if executable() is None:
        missing.append("apt install chromium")
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        missing.append("pip install 'mmkey[browser]'")
    return f"{' and '.join(missing)}, then pytest -m browser" if missing else None


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=executable(), args=_FLAGS)
        yield found
        found.close()


class Visit:
    """One page, opened from disk; what it complains of and what it asks for are written down."""

    def __init__(self, browser: Any, path: Path, *, width: int = 1440, scheme: str = "light", **options: Any) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **{"offline": True, **options}
        )
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Visit:  # noqa: PYI034 (Self is not in Python 3.10)
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def texts(self, selector: str) -> list[str]:
        """What each element says, as it is seen: hidden ones say nothing."""
        return [" ".join(text.split()) for text in self.page.locator(selector).all_inner_texts()]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
