"""`headcount heads --task` on models that are not headcount's own, saved as transformers saves them."""

import json

import pytest
from command_line import run
from stock_models import make_stock, save_with_words
from transformers import BertConfig, BertForSequenceClassification, BertModel

import headcount
from headcount.scripts.stock_heads import read_columns


TEXTS = [f"w{i} w{i + 3} w{(5 * i) % 36} w1" if i % 2 else f"w{i} w2" for i in range(12)]


def bert(kind, **options):
    small = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return kind(BertConfig(**small, intermediate_size=48, max_position_embeddings=40, **options))


def table(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


CASES = {
    "text-classification": (
        lambda: bert(BertForSequenceClassification, num_labels=3),
        [{"text": text, "label": i % 3} for i, text in enumerate(TEXTS)],
        "accuracy_drop",
        8,
    ),
    "text2text": (
        lambda: make_stock("T5"),
        [{"input": text, "target": f"w{i}"} for i, text in enumerate(TEXTS)],
        "exact_match_drop",
        24,
    ),
    "text-generation": (
        lambda: make_stock("GPT-2"),
        [{"text": text} for text in TEXTS],
        "token_log_likelihood_drop",
        8,
    ),
    "feature-extraction": (lambda: bert(BertModel), [{"text": text} for text in TEXTS], "embedding_cosine_drop", 8),
}


@pytest.mark.parametrize("task", CASES)
def test_every_task_leaves_rows_figures_and_a_ranking(task, tmp_path):
    make, rows, metric, heads = CASES[task]
    model, data = save_with_words(make(), tmp_path / "model"), table(tmp_path / "data.jsonl", rows)
    arguments = ["heads", model, "--task", task, "--data", data, "--output", tmp_path / "out", "--mode", "zero"]
    out, _ = run(*arguments)
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["head", "drop"] and len(lines) == 1 + heads + 1
    assert f"{heads} heads" in lines[-1] and "n = 12" in lines[-1]
    drops = [float(line.split()[1]) for line in lines[1:-1]]
    assert drops == sorted(drops, reverse=True)
    results = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out" / "results").iterdir()}
    assert set(results) == {"ablation", "gradient", "maps"}
    whole = [row for row in results["ablation"] if row["metric"] == metric]
    assert len(whole) == heads and all(row["n"] == 12 and row["interval"] for row in whole)
    assert len({row["layer"] for row in results["maps"]}) == heads // 4
    for row in results["maps"]:
        assert len(row["weights"]) == 4 and len(row["weights"][0]) == len(row["queries"])
        assert all(abs(sum(line) - 1) < 0.01 for line in row["weights"][0])
    assert {"ablation.png", "ablation.svg"} <= {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    said = run("report", tmp_path / "out")[0]
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    if task == "feature-extraction":
        assert f"than {lines[1].split()[0]}: without it the" in said
    if task == "text-classification":
        stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}
        assert run(*arguments)[0] == out
        assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}
        table(data, [{**row, "text": "w7 w8"} for row in rows])
        assert "holds results for other data" in run(*arguments, code=2)[1]
        table(data, rows[::-1])
        assert "holds results for other data" in run(*arguments, code=2)[1]
        table(data, rows)
        assert run(*arguments)[0] == out


def test_a_pruned_model_is_loaded(tmp_path):
    model = bert(BertModel)
    headcount.prune_heads(model, ["encoder.0.self.1"])
    save_with_words(model, tmp_path / "whole")
    headcount.save_pruned(model, tmp_path / "small")
    for path in (tmp_path / "whole").glob("tokenizer*"):
        path.replace(tmp_path / "small" / path.name)
    data = table(tmp_path / "data.jsonl", [{"text": text} for text in TEXTS])
    options = ["--task", "feature-extraction", "--data", data, "--output", tmp_path / "out", "--mode", "zero"]
    out, _ = run("heads", tmp_path / "small", *options)
    assert "encoder.0.self.1" not in out and "7 heads" in out


def test_bad_input_is_one_sentence(tmp_path):
    model = save_with_words(bert(BertForSequenceClassification, num_labels=2), tmp_path / "model")
    data = table(tmp_path / "data.jsonl", [{"text": text, "label": 5} for text in TEXTS])
    both = table(tmp_path / "both.jsonl", [{"text": "w1", "target": "w2"}])

    def refused(*options):
        return run("heads", model, "--output", tmp_path / "out", *options, code=2)[1]

    assert "--task 'chess' is not known; expected one of text-classification" in refused(
        "--task", "chess", "--data", data
    )
    assert "--task needs --data" in refused("--task", "text2text")
    assert "the label 5 is not one of the model's" in refused("--task", "text-classification", "--data", data)
    assert "expected one of target" in refused(
        "--task", "text2text", "--data", table(tmp_path / "x.jsonl", [{"text": "w1"}])
    )
    nothing = table(tmp_path / "nothing.jsonl", [{"text": "w1", "label": 0}, {"text": "", "label": 0}])
    assert "the text '' has no tokens" in refused("--task", "text-classification", "--data", nothing)
    assert "Unrecognized configuration class" in refused("--task", "text2text", "--data", both)
    assert "takes other models with --task" in refused()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", "text\n\u00e9t\u00e9\n".encode("latin-1"), "is not text in UTF-8"),
        ("t.csv", "text\nw1\n".encode("utf-16"), "holds a NUL character|is not text in UTF-8"),
        ("t.csv", b"text\nw1\0\n", "holds a NUL character"),
        ("t.csv", b"", "cannot be read as a table"),
        ("t.jsonl", b'{"text": 5}\n', "strange cell in the column text; expected a text"),
        ("t.csv", b"text\n\n,\n", "has an empty or strange cell|has no rows|cannot be read as a table"),
        ("t.jsonl", b"{", "cannot be read as a table"),
        ("t.parquet", b"PAR1garbage", "cannot be read as a table"),
        ("t.doc", b"text", "is not a table"),
    ],
)
def test_broken_tables_are_one_sentence(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    options = ("--task", "feature-extraction", "--output", tmp_path / "out")
    found = run("heads", tmp_path / "nowhere", "--data", tmp_path / name, *options, code=2).stderr
    assert any(part in found for part in said.split("|")), found


def test_a_table_may_start_with_a_mark_and_a_folder_must_hold_tables(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbftext\nw1 w2\n")
    assert read_columns(str(tmp_path / "t.csv"), {"text": ("text",)}, 10) == {"text": ["w1 w2"]}
    (tmp_path / "empty").mkdir()
    options = ("--task", "feature-extraction", "--output", tmp_path / "out")
    for folder in ("/", tmp_path / "empty"):
        said = run("heads", tmp_path / "nowhere", "--data", folder, *options, code=2).stderr
        assert "holds no table; expected files ending in one of .csv" in said


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("tokenizer_config.json", {"model_max_length": {}}, "the tokenizer cannot read the texts"),
        ("config.json", {"bos_token_id": "<script>"}, "cannot be loaded (a file is not what its reader expects)"),
    ],
)
def test_files_of_other_kinds_are_one_sentence_without_the_words_of_libraries(name, change, said, tmp_path):
    model = save_with_words(bert(BertModel), tmp_path / "model")
    content = json.loads((model / name).read_text())
    (model / name).write_text(json.dumps({**content, **change}))
    data = table(tmp_path / "data.jsonl", [{"text": text} for text in TEXTS])
    options = ("--task", "feature-extraction", "--data", data, "--output", tmp_path / "out")
    assert said in run("heads", model, *options, code=2).stderr
