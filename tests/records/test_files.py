"""Files are whole or not there; folders take each other's place at once; broken files are named."""

import pytest

from headcount.records.files import hash_file, new_folder, read_json, read_json_lines, read_yaml, write_by, write_text


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
        (read_json, b"\x80", "is not JSON"),
        (read_json, b"[]", "holds something else; expected an object"),
        (read_yaml, b"task: [addition", "is not valid YAML"),
        (read_yaml, b"- 1", "holds something else"),
        (read_json_lines, b"{}\nx\n", "has a line that is not JSON"),
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


def test_hashes_are_sha256(tmp_path):
    assert hash_file(write_text(tmp_path / "x", "abc")).startswith("ba7816bf8f01cfea")
