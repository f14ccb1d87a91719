"""What ties the files of one run together: run.json and matrix_run.json name the digests of those written with them."""

from __future__ import annotations

import hashlib
import json


def digest_of(value: object) -> str:
    """SHA-256 of a JSON value, in hexadecimal; the same however the file is laid out. Of a text file: of its text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
