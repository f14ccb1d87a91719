"""Writes hash-v1.json: digests by hashlib and PyPI blake3 of the pattern 0, 1, ..., 250, 0, 1, ...

Lengths lie at every block, chunk and subtree edge; the key and the context are those of BLAKE3's official vectors.
"""

import hashlib
import json
from pathlib import Path

import blake3

KEY = b"whats the Elvish word for friend"
CONTEXT = "BLAKE3 2019-12-27 16:29:52 test vectors context"
LENGTHS = [
    *(0, 1, 2, 3, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 3073),
    *(4096, 4097, 5120, 5121, 6144, 7168, 8192, 8193, 15360, 16384, 16385, 31744, 33792, 65536, 102400),
]


def main() -> None:
    pattern = bytes(i % 251 for i in range(max(LENGTHS)))
    cases = []
    for length in LENGTHS:
        data = pattern[:length]
        cases.append(
            {
                "length": length,
                "sha256": hashlib.sha256(data).hexdigest(),
                "blake3": blake3.blake3(data).hexdigest(131),
                "blake3_keyed": blake3.blake3(data, key=KEY).hexdigest(131),
                "blake3_derive_key": blake3.blake3(data, derive_key_context=CONTEXT).hexdigest(131),
            }
        )
    vectors = {"key": KEY.decode(), "context": CONTEXT, "pattern_modulus": 251, "cases": cases}
    path = Path(__file__).with_name("hash-v1.json")
    path.write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    main()
