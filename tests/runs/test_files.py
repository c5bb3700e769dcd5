"""JSON files that are replaced as a whole and checked when read."""

import errno
import hashlib
import json
import os

import pytest
from failing import failing
from forged import canonical

from gosprl.errors import InputError
from gosprl.runs import files
from gosprl.runs.files import Damaged, digest_of, read_json, write_json

VALUE = {"b": [1, 2.5, None, True], "a": {"text": "é\ud800\n", "large": 2**70}, "empty": {}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "value.json"


def test_a_value_comes_back(path):
    write_json(path, VALUE)
    assert read_json(path) == VALUE
    assert list(path.parent.iterdir()) == [path]


def test_the_digest_is_that_of_the_canonical_form_without_it(path):
    write_json(path, VALUE)
    content = json.loads(path.read_bytes())
    digest = content.pop("digest")
    assert digest == hashlib.sha256(canonical(content)).hexdigest() == digest_of(VALUE)


def test_every_flipped_bit_is_found(path):
    write_json(path, VALUE)
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(Damaged, match=r"^value\.json: "):
            read_json(path)


def test_every_truncation_is_found(path):
    write_json(path, VALUE)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(Damaged):
            read_json(path)


@pytest.mark.parametrize(
    "value",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": object()},
        {"x": 10**5000},
        {1: 0, "1": 0},
        {9: 0, 10: 0},
        {"x": 1, 2: 1},
        {"digest": ""},
    ],
    ids=range(8),
)
def test_what_json_cannot_hold_is_refused_before_anything_is_written(path, value):
    with pytest.raises(InputError, match=r"^value\.json: "):
        write_json(path, value)
    assert not path.exists()


def test_deep_values_are_refused_in_both_directions(path):
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InputError, match="too deeply"):
        write_json(path, {"x": deep})
    path.write_bytes(b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")
    with pytest.raises(Damaged, match="too deeply"):
        read_json(path)


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"{}", b'{"x": NaN}', b"\xff", b'{"x": 1, "x": 1}', b"1" * 5000])
def test_other_bytes_are_refused(path, text):
    path.write_bytes(text)
    with pytest.raises(Damaged):
        read_json(path)


def test_a_duplicate_key_is_named(path):
    path.write_bytes(b'{"x": 1, "x": 1}')
    with pytest.raises(Damaged, match="twice"):
        read_json(path)


def test_large_files_are_refused_unread(path):
    with path.open("wb") as file:
        file.truncate(2**40)  # sparse
    with pytest.raises(Damaged, match="at most"):
        read_json(path)


def test_only_regular_files_are_read(path):
    write_json(path, VALUE)
    link, fifo = path.with_name("link"), path.with_name("fifo")
    link.symlink_to(path)
    os.mkfifo(fifo)
    for other in (link, fifo, path.parent / "folder"):
        (path.parent / "folder").mkdir(exist_ok=True)
        with pytest.raises(Damaged, match="no regular file"):
            read_json(other)


def test_links_below_the_run_are_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "elsewhere" / "x.json", VALUE)
    (tmp_path / "run" / "folder").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Damaged, match=r"^folder/x\.json: folder is no directory"):
        read_json(tmp_path / "run" / "folder" / "x.json", root=tmp_path / "run")


def test_writing_does_not_follow_links(path):
    victim = path.with_name("victim")
    victim.write_text("as it was")
    path.symlink_to(victim)
    path.with_name("value.json.tmp").symlink_to(victim)
    write_json(path, VALUE)
    assert victim.read_text() == "as it was"
    assert read_json(path) == VALUE


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, call, code):
    write_json(path, VALUE)
    with monkeypatch.context() as patch:
        patch.setattr(files.disk, call, failing(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            write_json(path, {"new": 1})
    assert read_json(path) == VALUE
    assert list(path.parent.iterdir()) == [path]


def test_short_writes_are_completed(path, monkeypatch):
    monkeypatch.setattr(files.disk, "write", lambda fd, data: os.write(fd, data[:3]))
    write_json(path, VALUE)
    assert read_json(path) == VALUE


def test_a_file_that_takes_no_bytes_is_an_error(path, monkeypatch):
    monkeypatch.setattr(files.disk, "write", lambda fd, data: 0)
    with pytest.raises(OSError, match="no more bytes"):
        write_json(path, VALUE)


def test_the_file_is_synced_before_it_is_renamed_and_the_directory_after(path, monkeypatch):
    calls = []
    for call in ("write", "fsync", "replace"):
        original = getattr(files.disk, call)
        monkeypatch.setattr(files.disk, call, lambda *args, c=call, o=original: calls.append(c) or o(*args))
    write_json(path, VALUE)
    assert [c for i, c in enumerate(calls) if i == 0 or c != calls[i - 1]] == ["write", "fsync", "replace", "fsync"]


def test_a_file_system_without_fsync_is_warned_about_once(path, monkeypatch):
    monkeypatch.setattr(files.disk, "fsync", failing(errno.EINVAL))
    with pytest.warns(UserWarning, match="power cut"):
        write_json(path, VALUE)
    write_json(path, VALUE)  # a second warning would be an error
    assert read_json(path) == VALUE


def test_an_error_names_file_and_batch():
    error = Damaged("log/000001.arrow", 7, "is short")
    assert (error.file, error.batch, str(error)) == ("log/000001.arrow", 7, "log/000001.arrow, batch 7: is short")
