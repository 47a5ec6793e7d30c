"""Files are whole or not there; folders take each other's place at once; broken files are named."""

import pytest

from headcount.records.files import (
    files_inside,
    hash_file,
    inside,
    new_folder,
    read_json,
    read_json_lines,
    read_yaml,
    write_by,
    write_text,
)


def test_a_failed_write_keeps_what_was_there_and_leaves_nothing_else(tmp_path):
    path = write_text(tmp_path / "deep" / "note.txt", "first")

    def fail(partial):
        partial.write_text("half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_by(path, fail)
    assert path.read_text() == "first" and [p.name for p in path.parent.iterdir()] == ["note.txt"]


def test_a_new_folder_replaces_the_old_one_only_at_the_end(tmp_path):
    folder = tmp_path / "model"
    with new_folder(folder) as partial:
        (partial / "a").write_text("1")
        assert not folder.exists()
    with pytest.raises(KeyboardInterrupt), new_folder(folder) as partial:
        (partial / "b").write_text("2")
        raise KeyboardInterrupt
    assert [p.name for p in folder.iterdir()] == ["a"] and [p.name for p in tmp_path.iterdir()] == ["model"]
    with new_folder(folder) as partial:
        (partial / "c").write_text("3")
    assert [p.name for p in folder.iterdir()] == ["c"] and [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_json, b"{", "is not JSON"),
        (read_json, b"\x80", "is not text in UTF-8"),
        (read_json, b'{"a": "\0"}', "holds a NUL character"),
        (read_json, b"[" * 100_000, "is nested too deeply"),
        (read_json, b'{"a": ' + b"9" * 5000 + b"}", "has a number that is too long"),
        (read_json, b"[]", "holds something else; expected an object"),
        (read_yaml, b"task: [addition", "is not valid YAML"),
        (read_yaml, b"- 1", "holds something else"),
        (read_yaml, b"1: 2", "holds something else"),
        (read_yaml, b"a: " + b"[" * 10_000, "is nested too deeply"),
        (read_yaml, b"a: " + b"9" * 5000, "a number is too long"),
        (read_yaml, b"a: 2020-13-45", "is not valid YAML"),
        (read_yaml, b"a: &a [1, 1]\nb: [*a, *a]", "it has an alias"),
        (read_yaml, "name: \u00e9".encode("utf-16"), "is not text in UTF-8"),
        (read_json_lines, b"{}\nx\n", "a line of .* is not JSON"),
        (read_json_lines, b"{}\n1\n", "has a line that is no object"),
    ],
)
def test_broken_files_are_named(read, content, message, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    path = write_text(tmp_path / "log", '{"step": 1}\n{"step":')
    assert read_json_lines(path) == [{"step": 1}]


def test_a_mark_in_front_of_utf_8_is_read_over(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_bytes(b"\xef\xbb\xbftask: addition\n")
    assert read_yaml(path) == {"task": "addition"}


@pytest.mark.parametrize("read", [read_json, read_yaml, read_json_lines])
def test_what_is_no_file_is_named(read, tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="is not a file"):
            read(path)


NAMES = [
    "../x",
    "/etc/passwd",
    "a/../../x",
    "a/./x",
    "",
    "a//x",
    "a/",
    "C:\\x",
    "C:x",
    "..\\x",
    "a\nb",
    "a\0",
    5,
    None,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_from_a_file_does_not_lead_out_of_the_folder(name, tmp_path):
    with pytest.raises(ValueError, match="is not the name of a file in"):
        inside(tmp_path, name)


def test_links_that_leave_the_folder_are_refused_and_others_are_followed(tmp_path):
    folder = tmp_path / "run"
    write_text(tmp_path / "secret.json", "{}")
    own = write_text(folder / "results" / "own.json", "{}")
    (folder / "results" / "again.json").symlink_to(own)
    assert inside(folder, "results/again.json").is_file()
    assert [path.name for path in files_inside(folder, "results/*.json")] == ["again.json", "own.json"]
    (folder / "results" / "zz.json").symlink_to(tmp_path / "secret.json")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "out").symlink_to(tmp_path)
    for name in ("results/zz.json", "out/secret.json"):
        with pytest.raises(ValueError, match="is a link that leaves"):
            inside(folder, name)
    with pytest.raises(ValueError, match="is a link that leaves"):
        files_inside(folder, "results/*.json")
    assert files_inside(folder, "loop") == []


def test_a_snapshot_of_the_hub_may_link_to_its_blobs_and_nowhere_else(tmp_path):
    blob = write_text(tmp_path / "models--a--b" / "blobs" / "12", "{}")
    snapshot = tmp_path / "models--a--b" / "snapshots" / "34"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to(blob)
    assert inside(snapshot, "config.json").is_file()
    (snapshot / "other.json").symlink_to(write_text(tmp_path / "secret.json", "{}"))
    with pytest.raises(ValueError, match="is a link that leaves"):
        inside(snapshot, "other.json")


def test_hashes_are_sha256(tmp_path):
    assert hash_file(write_text(tmp_path / "x", "abc")).startswith("ba7816bf8f01cfea")
