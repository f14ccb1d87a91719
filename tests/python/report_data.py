"""What the tests of the report share: the scenarios, and what `mmkey bench --json` might print."""

from __future__ import annotations

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
