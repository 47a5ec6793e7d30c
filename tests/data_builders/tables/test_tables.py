"""Tables as tasks: what is read is what was written, splits share nothing, and whatever is wrong is one sentence."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from headcount.data_builders.registry import TASKS, check_kept, find_task, keep_task, kept_task
from headcount.data_builders.tables.definition import MOST_TOKENS, define, parse
from headcount.data_builders.tables.source import Source, read_source
from headcount.data_builders.tables.splits import cut
from headcount.data_builders.tables.task import TableOptions, table_task
from headcount.data_builders.tasks import Origin


def names(count, start=0):
    return [f"{'abcdefghij'[n % 10]}{n}" for n in range(start, start + count)]


def write_csv(path, rows, head="name,shout"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def shouts(tmp_path):
    return write_csv(tmp_path / "shouts.csv", [(name, name.upper()) for name in names(300)])


def pairs(place, **more):
    return Source(str(place), "name", "shout", more.pop("is_label", False), **more)


def test_cells_of_a_csv_file_are_read_as_they_are_written(tmp_path):
    path = write_csv(tmp_path / "odd.csv", [("007", "1.50"), ("NA", "null"), ("é", "True")])
    assert read_source(pairs(path)) == {"train": [("007", "1.50"), ("NA", "null"), ("é", "True")]}
    tabs = tmp_path / "odd.tsv"
    tabs.write_text("name\tshout\n01\t2,3\n")
    assert read_source(pairs(tabs)) == {"train": [("01", "2,3")]}


def test_every_kind_of_file_gives_the_same_pairs(tmp_path, shouts):
    rows = [{"name": name, "shout": name.upper(), "other": 3} for name in names(300)]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table.parquet")
    expected = read_source(pairs(shouts))
    assert read_source(pairs(tmp_path / "lines.jsonl")) == expected
    assert read_source(pairs(tmp_path / "table.parquet")) == expected


def test_a_folder_has_the_splits_that_its_files_are_named_by_and_its_card_may_name_configs(tmp_path):
    write_csv(tmp_path / "folder" / "train.csv", [("a", "A")])
    write_csv(tmp_path / "folder" / "test.csv", [("b", "B")])
    assert read_source(pairs(tmp_path / "folder")) == {"train": [("a", "A")], "test": [("b", "B")]}
    assert read_source(pairs(tmp_path / "folder", split="test")) == {"test": [("b", "B")]}
    with pytest.raises(ValueError, match="has no split 'dev'; expected one of train, test"):
        read_source(pairs(tmp_path / "folder", split="dev"))
    with pytest.raises(ValueError, match="--config has no effect on"):
        read_source(pairs(tmp_path / "folder", config="loud"))
    configs = "".join(
        f"- config_name: {n}\n  data_files: {f}\n" for n, f in (("quiet", "train.csv"), ("loud", "test.csv"))
    )
    (tmp_path / "folder" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    assert read_source(pairs(tmp_path / "folder", config="loud")) == {"train": [("b", "B")]}


def test_a_table_that_was_rewritten_is_read_anew(tmp_path, shouts):
    assert len(read_source(pairs(shouts))["train"]) == 300
    write_csv(shouts, [("x", "X")])
    assert read_source(pairs(shouts)) == {"train": [("x", "X")]}


@pytest.mark.parametrize(
    "rows, message",
    [
        (
            [{"name": "a", "shout": 5}],
            r"row 0 of the split 'train' of .* has 5, which is no text, in the column 'shout'",
        ),
        ([{"name": "a", "shout": "A"}, {"name": "", "shout": "B"}], "row 1 .* has an empty cell in the column 'name'"),
        ([{"name": "a", "shout": None}, {"name": "b", "shout": "B"}], "row 0 .* an empty cell in the column 'shout'"),
        ([{"name": ["a"], "shout": "A"}], "which is no text, in the column 'name'"),
        ([{"name": "a", "cry": "A"}], "has no column 'shout'; expected one of name, cry"),
        ([{"name": f"a{n}", "shout": "<eos>"} for n in range(99)], "has a row with '<eos>' in the split"),
        ([{"name": f"a{n}", "shout": "b" * (MOST_TOKENS + 1)} for n in range(99)], "row with 2,049 characters"),
        ([{"name": "a", "shout": "A"}] * 9, "leaves no rows for the split"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_sentence(tmp_path, rows, message):
    path = tmp_path / "wrong.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=message) as found:
        define(pairs(path))
    assert "\n" not in str(found.value)


def test_what_is_no_table_is_one_sentence(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "notes.txt").write_text("text")
    for place, message in (
        (tmp_path / "broken.parquet", "cannot be read as a table"),
        (tmp_path / "empty.csv", "cannot be read as a table"),
        (tmp_path / "notes.txt", "holds no table; expected files ending in one of .csv"),
        (tmp_path, r"holds tables of different kinds \(.*csv"),
        (tmp_path / "nowhere.csv", "is not there; expected a file, a folder or the id of a dataset"),
        ("/", "holds no table"),
        ("alice/nowhere", r"and the Hub does not give it as a dataset \("),
    ):
        with pytest.raises(ValueError, match=message) as found:
            read_source(pairs(place))
        assert "\n" not in str(found.value)
    with pytest.raises(ValueError, match="the column 'name' is named twice"):
        define(Source("x.csv", "name", "name", False))
    with pytest.raises(ValueError, match="--tokens='letter' is not allowed; expected one of character, word"):
        define(pairs("x.csv"), "letter")


def test_a_table_is_cut_by_its_inputs_alone_and_duplicates_stay_on_one_side():
    rows = [(name, "x") for name in names(1_000)]
    splits = cut({"train": rows + rows[::-1] + [(name, "y") for name, _ in rows[:50]]}, "t")
    inputs = {name: {text for text, _ in own} for name, own in splits.items()}
    assert set.union(*inputs.values()) == {name for name, _ in rows}
    assert sum(map(len, inputs.values())) == 1_000  # disjoint
    assert len(splits["test"]) == len(inputs["test"]) and 60 < len(inputs["test"]) < 140
    assert 60 < len(inputs["validation"]) < 140
    again = cut({"only": rows}, "t")
    assert {text for text, _ in again["test"]} == inputs["test"]  # whatever the order, and whatever else is there


def test_splits_of_the_table_are_kept_and_what_is_tested_is_not_trained_on():
    found = {"train": [(name, "x") for name in names(300)], "test": [(name, "x") for name in names(20, 290)]}
    splits = cut(found, "t")
    assert splits["test"] == found["test"]
    assert not {text for text, _ in splits["train"]} & {text for text, _ in found["test"]}
    with pytest.raises(ValueError, match="has the splits a, b, of which none is called train; expected --split"):
        cut({"a": found["train"], "b": found["test"]}, "t")


def test_rows_become_tokens_and_texts_again(shouts):
    task = table_task(pairs(shouts))
    corpus = task.splits(TableOptions())
    assert task.kind == "sequence" and corpus.sizes()["default"].keys() == {"train", "validation", "test"}
    for split, rows in task.rows.items():
        table = corpus.table(corpus.problems(split), "default").to_pylist()
        assert [(row["input"], row["target"]) for row in table] == rows
        assert [row["length"] for row in table] == [len(text) for text, _ in rows]
    assert corpus.is_held_out(corpus.problems("test")).all() and not corpus.is_held_out(corpus.problems("train")).any()
    encoded = task.encode(corpus.problems("test"), "decoder", corpus.options)
    assert encoded["input_ids"].max() < task.vocabulary.size
    assert task.vocabulary.answer_mark == "=" and "=" not in task.definition.symbols
    with pytest.raises(ValueError, match="nobody knows the answers to problems that are not in it"):
        task.problems(corpus.options, np.random.default_rng(0), 3, length=9)
    with pytest.raises(ValueError, match="a table has none; expected false"):
        task.fresh_problems(np.random.default_rng(0), 3, corpus, None, 0, 1)
    with pytest.raises(ValueError, match="has no effect on a table"):
        TableOptions(seed=1)


def test_words_are_tokens_too(tmp_path):
    rows = [(f"{name} went to town", f"{name} came  back") for name in "abcdefgh"] * 9
    train = [row for row in rows if row[0][0] != "h"]
    write_csv(tmp_path / "t" / "train.csv", train)
    write_csv(tmp_path / "t" / "test.csv", [("a went back", "town"), ("h went to town", "h came back")])
    write_csv(tmp_path / "t" / "validation.csv", [("b went back", "town")])
    task = table_task(pairs(tmp_path / "t"), "word")
    assert set(task.definition.symbols) == {*"abcdefg", "went", "to", "town", "came", "back"}
    assert task.definition.left_out == {"test": 1} and task.rows["test"] == [("a went back", "town")]
    assert "1 rows of validation and test hold a word that no training row has" in task.texts.reads({})
    problems = task.splits(TableOptions()).problems("train")
    (ids, lengths), (answers, _) = task.write(problems, TableOptions())
    assert task.vocabulary.text(ids[0][: lengths[0]].tolist()) == "a went to town"
    assert task.vocabulary.text(answers[0].tolist()) == "a came back"
    write_csv(tmp_path / "t" / "validation.csv", [("nobody", "nothing")])
    with pytest.raises(ValueError, match=r"every row of the split 'validation' of .* that no training row has"):
        table_task(pairs(tmp_path / "t"), "word")


def test_labels_are_classes(tmp_path):
    def labelled(label, rows=200):
        return write_csv(tmp_path / "labels.csv", [(name, label(name)) for name in names(rows)])

    task = table_task(pairs(labelled(lambda name: str(int(name[1:]) % 3)), is_label=True))
    assert task.kind == "label" and task.labels == ("0", "1", "2") and task.vocabulary.answer_mark is None
    problems = task.splits(TableOptions()).problems("train")
    right = [answer for _, answer in task.rows["train"]]
    assert [task.labels[number] for number in task.write(problems, TableOptions())[1]] == right
    with pytest.raises(
        ValueError, match=r"the column 'shout' of .* has one class only, 'same'; expected at least two"
    ):
        table_task(pairs(labelled(lambda name: "same"), is_label=True))
    once = set(names(200)) - {text for text, _ in task.rows["train"]}
    with pytest.raises(ValueError, match=r"has the label 'rare' in the split '\w+', but in no training row"):
        table_task(pairs(labelled(lambda name: "rare" if name in once else name[0]), is_label=True))


def test_names_of_classes_are_those_of_the_table(tmp_path):
    features = Features({"name": Value("string"), "shout": ClassLabel(names=["no", "yes"])})
    Dataset.from_dict({"name": ["a", "b"], "shout": [1, 0]}, features=features).to_parquet(tmp_path / "t.parquet")
    assert read_source(pairs(tmp_path / "t.parquet", is_label=True)) == {"train": [("a", "yes"), ("b", "no")]}


def test_a_folder_keeps_what_makes_the_task_and_the_table_is_checked_when_it_is_read_again(tmp_path, shouts):
    task = table_task(pairs(shouts))
    keep_task(task, tmp_path / "run")
    again = find_task(task.name, tmp_path / "run")
    assert again is not task and again.definition == task.definition and again.vocabulary == task.vocabulary
    assert again.rows == task.rows
    check_kept(task, tmp_path / "run")
    text = shouts.read_text()
    shouts.write_text(text.replace("A0", "B0", 1))
    with pytest.raises(ValueError, match=r"does not hold the rows any more that this run was trained on"):
        _ = kept_task_of(tmp_path / "run", task.name).rows
    shouts.unlink()
    with pytest.raises(ValueError, match=r"shouts.csv is not there; expected a file"):
        _ = kept_task_of(tmp_path / "run", task.name).rows


def kept_task_of(folder, name):
    TASKS.pop(name, None)
    return kept_task(folder)


@pytest.mark.parametrize(
    "change",
    [{"name": "../x"}, {"symbols": [1]}, {"tokens": "byte"}, {"longest": "9"}, {"more": 1}, {"is_label": None}],
)
def test_a_crafted_definition_is_one_sentence(shouts, change):
    content = json.loads(define(pairs(shouts))[0].origin().content)
    with pytest.raises(ValueError, match="expected"):
        parse(Origin("own_table.json", "own_table.json", json.dumps({**content, **change}).encode()))


def test_names_from_a_table_are_no_markup(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(n, n) for n in names(100)], head="<b>`x`</b>,[a](b)|c")
    task = table_task(Source(str(path), "<b>`x`</b>", "[a](b)|c", False))
    said = [task.texts.title, task.data_command(TableOptions()), *task.texts.data.columns[""].values()]
    assert not set("<>`[]|") & set("".join(said))
