"""`mmkey key`: the keys of a request file, and one clear line for everything that is no request file."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import blake3
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import Within, complaint, mmkey, mmkey_json
from mmkey.__main__ import main
from mmkey.cli import request_file
from mmkey.cli.output import CliError
from mmkey.cli.request_file import json_schema, read_request
from mmkey.cli.strict_json import parse

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/request.json"
SCHEMA = json.loads((ROOT / "docs/request.schema.json").read_text(encoding="utf-8"))
VECTORS = json.loads((ROOT / "tests/vectors/keys-v1.json").read_text(encoding="utf-8"))["cases"]


def example() -> dict[str, Any]:
    return json.loads(EXAMPLE.read_text(encoding="utf-8"))


def changed(path: str, value: Any) -> dict[str, Any]:
    """The example with one field set, by a path such as items.0.path; the item's data makes room for another source."""
    document = example()
    *steps, last = path.split(".")
    target: Any = document
    for step in steps:
        target = target[int(step) if step.isdigit() else step]
    if last in {"path", "digest", "opaque", "frames"}:
        target.pop("data", None)
    target[int(last) if last.isdigit() else last] = value
    return document


def keys_of(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    """What `mmkey key --json` prints, run in this process."""
    assert main(["key", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)["keys"]


def write(folder: Path, document: object) -> Path:
    path = folder / "request.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


# ---------------------------------------------------------------- right keys


def uri(data: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(data).decode()


def as_request_file(request: dict[str, Any], content_digests: list[str]) -> dict[str, Any]:
    """A request of the vectors in the words of a request file."""
    items = []
    for item, digest in zip(request["items"], content_digests, strict=True):
        given = dict(item)
        kind = given.pop("kind")
        if kind == "opaque":
            source: dict[str, Any] = {"opaque": {k: given.pop(k) for k in ("identifier", "namespace")}}
        elif kind == "frames":
            source = {"frames": [{"data": uri(bytes.fromhex(frame))} for frame in given.pop("frames")]}
        elif kind == "array":
            for name in ("dtype", "shape", "data", "attrs"):
                given.pop(name, None)
            source = {"digest": {"kind": "array", "algorithm": request["algorithm"], "hex": digest}}
        else:
            data, algorithm = bytes.fromhex(given.pop("data")), given.pop("content_algorithm")
            make = {"sha256": hashlib.sha256, "blake3": blake3.blake3}[algorithm]
            source = {"digest": {"algorithm": algorithm, "hex": make(data).hexdigest()}}
            if algorithm == request["algorithm"]:
                source = {"data": uri(data)}
        items.append(given | source)
    salt = request["salt"]
    return request | {"items": items, "salt": None if salt is None else {"$bytes": salt}}


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_keys_of_a_request_file_are_those_of_the_vectors(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = VECTORS[number]["expect"]
    document = as_request_file(VECTORS[number]["request"], expect["content_digests"])
    jsonschema.validate(document, SCHEMA)
    path = write(tmp_path, document)
    for strategy in "ABC":
        if expect.get(strategy) is None:
            continue
        assert main(["key", str(path), "--strategy", strategy, "--partial", "--json"]) == 0
        keys = json.loads(capsys.readouterr().out)["keys"][strategy]
        algorithm = document["algorithm"]
        assert keys["request"] == f"mmkey1:{strategy}:request:{algorithm}:{expect[strategy]}"
        blocks = expect["blocks_partial"].get(strategy)
        if blocks is None:
            assert keys["blocks"] is None
            continue
        full = len(document["token_ids"]) // document["block_size"]
        assert keys["blocks"] == [f"mmkey1:{strategy}:block:{algorithm}:{key}" for key in blocks[:full]]
        assert keys["partial"] == (
            f"mmkey1:{strategy}:partial:{algorithm}:{blocks[full]}" if len(blocks) > full else None
        )
        if strategy == "C":
            assert keys["scope"] == f"mmkey1:scope:{algorithm}:{expect['scope_digest']}"
            assert keys["items"] == [f"mmkey1:item:{algorithm}:{digest}" for digest in expect["item_digests"]]


def test_a_path_a_data_uri_and_a_digest_of_one_file_give_one_key(tmp_path: Path, within: Within) -> None:
    picture = bytes(range(256))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/picture.bin").write_bytes(picture)
    percent = "".join(f"%{byte:02x}" for byte in picture)
    sources = [
        {"path": "picture.bin"},
        {"path": str(tmp_path / "sub/picture.bin")},
        {"data": "data:image/png;base64," + base64.b64encode(picture).decode()},
        {"data": "data:," + percent},
        {"digest": {"algorithm": "sha256", "hex": hashlib.sha256(picture).hexdigest()}},
    ]
    keys = []
    for source in sources:
        document = example()
        del document["items"][0]["data"]
        document["items"][0] |= source
        keys.append(within.json("key", write(tmp_path / "sub", document))["keys"])
    assert all(found == keys[0] for found in keys)


def test_relative_paths_start_at_the_request_file_and_for_stdin_at_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.png").write_bytes(b"one")
    (tmp_path / "x.png").write_bytes(b"another")
    document = example()
    del document["items"][0]["data"]
    document["items"][0]["path"] = "x.png"
    path = write(tmp_path / "a", document)
    by_file = mmkey_json("key", path, cwd=tmp_path)
    assert by_file == mmkey_json("key", "-", cwd=tmp_path / "a", stdin=path.read_bytes())
    assert by_file != mmkey_json("key", "-", cwd=tmp_path, stdin=path.read_bytes())


def test_text_and_json_say_the_same(within: Within) -> None:
    text = within.run("key", EXAMPLE, "--strategy", "all", "--partial")
    assert (text.returncode, text.stderr) == (0, "")
    found = within.json("key", EXAMPLE, "--strategy", "all", "--partial")
    assert list(found["keys"]) == ["A", "B", "C"]
    assert (found["tokens"], found["algorithm"], found["block_size"]) == (13, "sha256", 4)
    for strategy, keys in found["keys"].items():
        assert len(keys["blocks"]) == 3
        for key in [keys["request"], *keys["blocks"], keys["partial"], *keys.get("items", [])]:
            assert key in text.stdout
        assert bool(keys["unsafe"]) == (strategy == "A")
        assert all(reason in text.stdout for reason in keys["unsafe"])


def test_options_go_before_the_file_s_algorithm_and_block_size(tmp_path: Path, within: Within) -> None:
    found = within.json("key", EXAMPLE, "--algorithm", "blake3", "--block-size", 13)
    document = example() | {"algorithm": "blake3", "block_size": 13}
    assert found == within.json("key", write(tmp_path, document))
    assert len(found["keys"]["C"]["blocks"]) == 1
    assert ":blake3:" in found["keys"]["C"]["request"]


def test_media_without_a_layout_have_request_keys_but_no_block_keys_of_b(tmp_path: Path, within: Within) -> None:
    path = write(tmp_path, {k: v for k, v in example().items() if k != "placeholder_ids"} | {"layout": None})
    keys = within.json("key", path, "--strategy", "B")["keys"]["B"]
    assert keys["blocks"] is None
    assert "layout" in keys["why_no_blocks"]
    assert "layout" in within.complaint("key", path)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("1", "1.0"),
        ("1", "true"),
        ("1.0", "true"),
        ("0.0", "-0.0"),
        ("null", "false"),
        ('"00"', '{"$bytes": "00"}'),
        ('"1.0"', '{"$float": "1.0"}'),
        ('{"$float": "inf"}', '{"$float": "-inf"}'),
        ("[]", "{}"),
        ("[1]", "[[1]]"),
        ("18446744073709551615", "-18446744073709551616"),
    ],
)
def test_values_that_differ_in_type_alone_have_other_keys(
    a: str, b: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for field in ("config", "items.0.processing"):
        text = json.dumps(changed(field, {"x": "VALUE"}))
        keys = [keys_of(write(tmp_path, text.replace('"VALUE"', value)), capsys)["C"]["request"] for value in (a, b)]
        assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("1.0", '{"$float": "1"}'),
        ("-2.5e-3", '{"$float": "-2.5E-3"}'),
        ("1e2", "100.0"),
        ('"\\u00e9"', '"é"'),
        ('{"$bytes": "AA"}', '{"$bytes": "aa"}'),
    ],
)
def test_a_value_written_in_two_ways_has_one_key(
    a: str, b: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(changed("config", {"x": "VALUE"}))
    found = [keys_of(write(tmp_path, text.replace('"VALUE"', value)), capsys) for value in (a, b)]
    assert found[0] == found[1]


# ---------------------------------------------------------------- schema


def test_the_published_schema_is_that_of_the_models(tmp_path: Path) -> None:
    assert json_schema() == SCHEMA, "run: mmkey key --schema > docs/request.schema.json"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    done = mmkey("key", "--schema", cwd=tmp_path)
    assert json.loads(done.stdout) == SCHEMA


def test_the_example_fits_the_schema_and_spoiled_ones_do_not() -> None:
    jsonschema.validate(example(), SCHEMA)
    for spoil in (
        lambda d: d.pop("token_ids"),
        lambda d: d.update(token_ids=[-1]),
        lambda d: d.update(unknown=1),
        lambda d: d["items"][0].update(patch_grid=[1]),
        lambda d: d.update(adapter=["a"]),
        lambda d: d.update(adapter=""),
        lambda d: d.update(adapter=["", None]),
        lambda d: d.update(salt=""),
    ):
        document = example()
        spoil(document)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, SCHEMA)


# ---------------------------------------------------------------- one line for each bad input


BAD_VALUES: list[tuple[str, Any, str, str]] = [
    ("token_ids", None, "token_ids", "None"),
    ("token_ids", "123", "token_ids", "'123'"),
    ("token_ids.2", True, "token_ids[2]", "True"),
    ("token_ids.2", 1.0, "token_ids[2]", "1.0"),
    ("token_ids.2", "5", "token_ids[2]", "'5'"),
    ("token_ids.2", -1, "token_ids[2]", "-1"),
    ("token_ids.2", 2**32, "token_ids[2]", "4294967296"),
    ("token_ids.2", 10**400, "token_ids[2]", "5001 digits"),
    ("items", {}, "items", "{}"),
    ("items.0", 7, "items[0]", "7"),
    ("items.0.modality", "smell", "items[0].modality", "image"),
    ("items.0.patchgrid", [2, 2], "items[0].patchgrid", "patch_grid"),
    ("items.0.patch_grid", [2], "items[0].patch_grid", "[2]"),
    ("items.0.patch_grid", [2, 0], "items[0].patch_grid[1]", "0"),
    ("items.0.patch_grid", [1, 2, 2, 2], "items[0].patch_grid", "[1, 2, 2, 2]"),
    ("items.0.original_size", [2, 2.0], "items[0].original_size[1]", "2.0"),
    ("items.0.original_size", None, "items[0].original_size", "C"),
    ("items.0.num_visual_tokens", "4", "items[0].num_visual_tokens", "'4'"),
    ("items.0.num_visual_tokens", 5, "items[0].num_visual_tokens", "5"),
    ("items.0.num_visual_tokens", None, "items[0].num_visual_tokens", "C"),
    ("items.0.processing", [], "items[0].processing", "[]"),
    ("items.0.sampling", {"frame_indices": [0]}, "items[0].sampling", "video"),
    ("items.0.processing", {"x": 2**64}, "items[0].processing.x", "18446744073709551616"),
    ("items.0.patch_grid", [2**64, 1], "items[0].patch_grid", "18446744073709551616"),
    ("items.0.data", "aGk=", "items[0].data", "data URI"),
    ("items.0.data", "data:;base64,a", "items[0].data", "base64"),
    ("items.0.data", "data:;base64,a!!!", "items[0].data", "base64"),
    ("items.0.data", "data:,", "items[0].data", "no bytes"),
    ("items.0.data", None, "items[0]", "exactly one of"),
    ("items.0.digest", {"algorithm": "sha256", "hex": "AB" * 32}, "items[0].digest.hex", "match"),
    ("items.0.digest", {"algorithm": "md5", "hex": "ab" * 32}, "items[0].digest.algorithm", "'md5'"),
    ("items.0.digest", {"algorithm": "sha256"}, "items[0].digest.hex", "missing"),
    ("items.0.digest", {"algorithm": "sha256", "hex": "ab" * 32, "x": 1}, "items[0].digest.x", "kind"),
    ("items.0.opaque", {"identifier": ""}, "items[0].opaque.identifier", "''"),
    ("items.0.frames", [], "items[0].frames", "no frames"),
    ("items.0.frames", [{}], "items[0].frames[0]", "exactly one of"),
    ("items.0.frames", [{"path": 1}], "items[0].frames[0].path", "1"),
    ("items.0.path", "", "items[0].path", "''"),
    ("items.0.path", "absent.png", "items[0].path", "No such file"),
    ("items.0.path", ".", "items[0].path", "folder"),
    ("items.0.path", "empty.png", "items[0].path", "empty"),
    ("items.0.path", "a\0b", "items[0].path", "null"),
    ("items.0.path", "x" * 5000, "items[0].path", "too long"),
    ("items.0.path", "fifo", "items[0].path", "not a regular file"),
    ("items.0.path", "/dev/zero", "items[0].path", "not a regular file"),
    ("layout", [[4, 5]], "items[0].num_visual_tokens", "4"),
    ("layout", [[4, 0]], "layout[0]", "0"),
    ("layout", [[10, 4]], "layout[0]", "13"),
    ("layout", [[4, 2], [5, 2]], "layout[1]", "5"),
    ("layout", [[4]], "layout[0]", "[4]"),
    ("layout", [[4, -4]], "layout[0][1]", "-4"),
    ("layout", [], "items[0]", "range"),
    ("order", [1], "order[0]", "1"),
    ("order", [0, 0], "order", "2"),
    ("order", [-1], "order[0]", "-1"),
    ("placeholder_ids", [2933], "token_ids[11]", "2933"),
    ("model_id", "", "model_id", "''"),
    ("model_id", None, "model_id", "None"),
    ("model_id", 7, "model_id", "7"),
    ("config", None, "config", "None"),
    ("config", [1], "config", "[1]"),
    ("config", {"x": 2**64}, "config.x", "18446744073709551616"),
    ("config", {"a b": {"c": [2**64]}}, "config", "18446744073709551616"),
    ("config", {"x": "\ud800"}, "config.x", "surrogate"),
    ("revision", 1, "revision", "1"),
    ("adapter", ["a"], "adapter", "'a'"),
    ("adapter", ["a", "b", "c"], "adapter", "'c'"),
    ("adapter", [None, "b"], "adapter", "None"),
    ("adapter", 5, "adapter", "5"),
    ("adapter", "", "adapter", "empty name"),
    ("salt", "", "salt", "empty"),
    ("salt", {"$bytes": ""}, "salt", "empty"),
    ("salt", {"$bytes": "0"}, "salt.$bytes", "'0'"),
    ("salt", {"$bytes": "00", "x": 1}, "salt", "$bytes stands alone"),
    ("salt", 3, "salt", "3"),
    ("algorithm", "md5", "algorithm", "'sha256' or 'blake3'"),
    ("block_size", 0, "block_size", "0"),
    ("block_size", 4.0, "block_size", "4.0"),
    ("block_size", True, "block_size", "True"),
    ("config", {"x": {"$float": "one"}}, "config.x.$float", "'one'"),
    ("config", {"x": {"$float": 1.0}}, "config.x", "$float stands alone"),
    *(
        ("config", {"x": {"$float": text}}, "config.x.$float", "a number as JSON writes it, nan, inf or -inf")
        for text in ("1_0", "\uff11", " 1", "1\n", "+1", "01", "1.", ".5", "NaN", "Infinity", "-nan", "0x1p3", "")
    ),
    ("config", {"x": {"$float": "1e999"}}, "config.x.$float", "'1e999' overflows a float"),
    ("config", {"x": {"$float": "-1e999"}}, "config.x.$float", "'-1e999' overflows a float"),
    *(
        ("salt", {"$bytes": text}, "salt.$bytes", "pairs of hexadecimal digits")
        for text in ("00 ff", " 00", "00\n", "0x00", "\uff10\uff10", "0g")
    ),
    ("config", {"a": {"\ud800": 1}}, 'config.a["\\ud800"]', "lone surrogate"),
    ("items.0.processing", {"\udc00": 1}, 'items[0].processing["\\udc00"]', "lone surrogate"),
    ("unknown", 1, "unknown", "token_ids"),
]


@pytest.mark.parametrize(("path", "value", "field", "words"), BAD_VALUES, ids=lambda v: str(v)[:40])
def test_a_bad_value_is_one_line_that_names_the_field_and_what_is_allowed(
    path: str, value: Any, field: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.png").touch()
    os.mkfifo(tmp_path / "fifo")
    text = json.dumps(changed(path, value)) if not (isinstance(value, int) and value > 2**70) else None
    if text is None:  # more digits than Python writes of its own
        text = json.dumps(changed(path, "DIGITS")).replace('"DIGITS"', "1" + "0" * 5000)
    request = write(tmp_path, text)
    assert main(["key", str(request)]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    start = f"mmkey: {request}: {field}"
    assert line.startswith(start), line
    assert line[len(start)] in ":[.", line
    assert words in line[len(start) :], line
    assert len(line) < 500 + len(str(request))


BAD_TEXTS: list[tuple[bytes, str]] = [
    (b"", "line 1, column 1: not JSON"),
    (b"{", "line 1, column 2: not JSON"),
    # where Python 3.13 finds the comma at fault, earlier ones miss a value
    (b'{"token_ids": [1,\n2,]}', f"line 2, column {2 if sys.version_info >= (3, 13) else 3}: not JSON"),
    (b"\xff\xfe{\x00}\x00", "not UTF-8 text: byte 0 is 0xff"),
    (b'{"token_ids": [1], "model_id": "\xe9"}', "not UTF-8"),
    (b"[]", "the document: [] is not an object"),
    (b"null", "the document: None is not an object"),
    (b"NaN", 'the document: NaN is not JSON; write {"$float": "nan"}'),
    (b'{"token_ids": []} {}', "line 1, column 19: not JSON: Extra data"),
    (b"{}", "token_ids: missing"),
    (b'{"token_ids": [], "token_ids": [1]}', "token_ids: given twice"),
    (b'{"token_ids": [], "items": [{"path": "x", "path": "y"}]}', "items[0].path: given twice"),
    (b'{"token_ids": [], "config": {"a": [{"b": 1, "b": 1}]}}', "config.a[0].b: given twice"),
    (b'{"token_ids": [], "config": {"a b": NaN}}', 'config["a b"]: NaN is not JSON; write {"$float": "nan"}'),
    (b'{"token_ids": [], "config": {"x": -Infinity}}', 'config.x: -Infinity is not JSON; write {"$float": "-inf"}'),
    (b'{"token_ids": [], "config": {"x": 1e999}}', "config.x: '1e999' overflows a float"),
    (b'{"token_ids": [], "config": {"x": ' + b"9" * 5000 + b"}}", "config.x: an integer of 5000 digits"),
    (b'{"token_ids": [], "config": ' + b'{"x":' * 40 + b"1" + b"}" * 40 + b', "model_id": "m"}', "config"),
    (b'{"token_ids": [], "config": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
]


@pytest.mark.parametrize(("text", "words"), BAD_TEXTS, ids=lambda v: str(v)[:40])
def test_what_is_not_strict_json_is_one_line_that_names_the_place(
    text: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    assert main(["key", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"mmkey: {path}: {words}")


def test_bad_json_on_stdin_is_one_line_too(tmp_path: Path) -> None:
    assert complaint("key", "-", cwd=tmp_path, stdin=b"{").startswith("mmkey: stdin: line 1, column 2: not JSON")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("key",), "FILE: missing"),
        (("key", "absent.json"), "absent.json: No such file"),
        (("key", "."), ".: Is a directory"),
        (("key", "absent/request.json"), "absent/request.json: No such file"),
        (("key", EXAMPLE, "--strategy", "D"), "--strategy: 'D' is none of A, B, C, all"),
        (("key", EXAMPLE, "--algorithm", "md5"), "--algorithm: 'md5' is none of sha256, blake3"),
        (("key", EXAMPLE, "--block-size", "0"), "--block-size: 0 is less than 1"),
        (("key", EXAMPLE, "--block-size", "x"), "--block-size"),
        (("key", EXAMPLE, "--nonsense"), "--nonsense"),
        (("key", EXAMPLE, EXAMPLE), "unexpected extra argument"),
    ],
)
def test_bad_usage_is_one_line(args: tuple[object, ...], words: str, within: Within) -> None:
    assert words in within.complaint(*args)


def test_a_picture_without_read_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.png").write_bytes(b"x")
    (tmp_path / "secret.png").chmod(0)
    if os.geteuid() == 0:  # root may read everything: answer for another user
        monkeypatch.setattr(request_file.os, "access", lambda *_: False)
    loaded = read_request(json.dumps(changed("items.0.path", "secret.png")).encode())
    with pytest.raises(CliError, match=r"^items\[0\]\.path: 'secret\.png': permission denied$"):
        loaded.request(tmp_path)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**64), 2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text().filter(lambda k: not k.startswith("$")), x),
        max_leaves=20,
    )
)
def test_strict_reading_keeps_every_value_and_type(value: Any) -> None:
    read = parse(json.dumps(value).encode())
    assert repr(read) == repr(value)


@given(st.binary(max_size=80) | st.text(alphabet='{}[]",:$floatbyes019.-e ', max_size=60).map(str.encode))
def test_no_bytes_whatever_make_reading_fail_otherwise_than_in_one_line(data: bytes) -> None:
    try:
        read_request(data)
    except CliError as problem:
        lines = str(problem).splitlines()
    else:
        lines = ["read"]
    assert len(lines) == 1


def test_a_reader_that_leaves_early_is_no_error_of_ours(tmp_path: Path) -> None:
    import subprocess

    document = example() | {"token_ids": list(range(40_000)), "items": [], "layout": [], "placeholder_ids": []}
    path = write(tmp_path, copy.deepcopy(document))
    done = subprocess.run(
        ["bash", "-c", '"$0" -m mmkey key "$1" | head -1', sys.executable, str(path)], capture_output=True, text=True
    )
    assert done.stdout == "strategy C\n"
    assert done.stderr == ""
