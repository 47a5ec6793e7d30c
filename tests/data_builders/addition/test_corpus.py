"""The addition corpus: disjoint splits, exact groups, all options, and data that does not depend on the machine."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from headcount.data_builders.addition.carry_groups import (
    draw_group,
    group_names,
    group_size,
    name_groups,
    sample_addition,
)
from headcount.data_builders.addition.carry_pairs import count_pairs
from headcount.data_builders.addition.columns import AdditionProblems, from_integers, problem_keys, solve, to_integers
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.addition.problem_sources import share_out
from headcount.data_builders.key_sets import KeySet
from headcount.data_builders.registry import TASKS


def rows_of(options: AdditionOptions, config: str, split: str) -> list[dict]:
    return pa.concat_tables(TASKS["addition"].splits(options).tables(config, split)).to_pylist()


OPTIONS = {
    "default": AdditionOptions(),
    "ordered": AdditionOptions(split_by="ordered", seed=5),
    "carry_balanced": AdditionOptions(sampling="carry_balanced"),
    "mixed": AdditionOptions(digits=5, min_digits=1, zero_pad=False, train=3000, seed=2),
    "mixed_padded": AdditionOptions(digits=12, min_digits=2, answer_order="reversed", train=3000),
    "exact_digits": AdditionOptions(digits=4, min_digits=4, zero_pad=False),
    "long": AdditionOptions(digits=40, train=2000, sampling="carry_balanced", answer_order="reversed"),
    "two_digits": AdditionOptions(digits=2, train=1000, validation=200, test=200, hard=100, pairs=50),
    "one_digit": AdditionOptions(digits=1, train=20, validation=10, test=10, hard=5, pairs=3),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_no_problem_is_in_two_splits_and_none_is_there_twice(name):
    options = OPTIONS[name]
    corpus = TASKS["addition"].splits(options)
    seen: dict[object, str] = {}
    for split in ("train", "validation", "test", "hard"):
        rows = rows_of(options, "default", split)
        assert len(rows) == getattr(options, split)
        for row in rows:
            a, b = int(row["a"]), int(row["b"])
            key = (a, b) if options.split_by == "ordered" else frozenset((a, b))
            assert key not in seen, f"{row['input']} is in {seen.get(key)} and {split}"
            seen[key] = split
    for split in corpus.sizes()["pairs"]:
        for row in rows_of(options, "pairs", split):
            for side in ("base", "source"):
                a, b = int(row[f"{side}_a"]), int(row[f"{side}_b"])
                assert ((a, b) if options.split_by == "ordered" else frozenset((a, b))) not in seen


@pytest.mark.parametrize("name", OPTIONS)
def test_texts_say_what_the_numbers_say(name):
    options = OPTIONS[name]
    for split in ("train", "hard"):
        for row in rows_of(options, "default", split)[:1500]:
            a, b = row["input"].split("+")
            answer = row["target"][::-1] if options.answer_order == "reversed" else row["target"]
            assert (int(a), int(b)) == (int(row["a"]), int(row["b"]))
            assert int(answer) == int(row["sum"]) == int(row["a"]) + int(row["b"])
            if options.zero_pad:
                assert len(a) == len(b) == row["digits"]
                assert len(answer) == row["digits"] + 1
            else:
                assert (a, b, answer) == (str(int(a)), str(int(b)), str(int(answer)))
            assert len(row["carry_into"]) == row["digits"] + 1
            assert len(row["column_class"]) == row["digits"]
            assert sum(row["carry_into"]) == row["carries"]
            if split == "train" and options.sampling == "uniform" and options.min_digits:
                assert min(len(str(int(a))), len(str(int(b)))) >= options.min_digits


def test_numbers_are_integers_up_to_18_digits_and_text_beyond():
    assert TASKS["addition"].splits(AdditionOptions(digits=18)).features("default")["sum"].dtype == "int64"
    assert TASKS["addition"].splits(AdditionOptions(digits=19)).features("default")["sum"].dtype == "string"
    for digits in (18, 19):
        for row in rows_of(AdditionOptions(digits=digits), "default", "hard"):
            assert int(row["a"]) + int(row["b"]) == int(row["sum"])


def test_hard_is_balanced_and_has_both_all_nines_classes():
    groups = Counter(row["group"] for row in rows_of(AdditionOptions(), "default", "hard"))
    assert set(groups) == set(group_names(3)) == {"nines", "chain_0", "chain_1", "chain_2", "chain_3"}
    assert groups["nines"] == group_size("nines", 3, ordered=False) // 3 == 166
    others = [groups[f"chain_{chain}"] for chain in range(4)]
    assert max(others) - min(others) <= 1
    for row in rows_of(AdditionOptions(), "default", "hard"):
        if row["group"] == "nines":
            assert row["sum"] == 999
        if row["group"] == "chain_3":
            assert row["carry_into"] == [0, 1, 1, 1]


def test_carry_balanced_training_has_equal_shares_where_problems_exist():
    options = AdditionOptions(digits=5, sampling="carry_balanced", train=6000)
    groups = Counter(row["group"] for row in rows_of(options, "default", "train"))
    assert len(groups) == 7
    assert max(groups.values()) - min(groups.values()) <= 1
    groups = Counter(row["group"] for row in rows_of(OPTIONS["carry_balanced"], "default", "train"))
    assert groups["nines"] > 250, "nearly all all-nines problems that are left"
    assert max(groups.values()) - min(groups[f"chain_{chain}"] for chain in range(3)) <= 200


def test_uniform_training_is_uniform():
    rows = rows_of(AdditionOptions(digits=4, train=40_000), "default", "train")
    a = np.array([row["a"] for row in rows])
    assert abs(a.mean() - 4999.5) < 50
    chains = Counter(row["longest_chain"] for row in rows)
    exact = {chain: group_size(f"chain_{chain}", 4, True) / 10**8 for chain in range(5)}
    for chain, share in exact.items():
        assert abs(chains[chain] / len(rows) - share) < 0.01
    first_is_smaller = np.mean([row["a"] < row["b"] for row in rows])
    assert abs(first_is_smaller - 0.5) < 0.02, "a coin decides which operand is first"


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_group_sizes_are_exact(columns):
    values = np.arange(10**columns)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    every = AdditionProblems(from_integers(a, columns), from_integers(b, columns), np.full(len(a), columns))
    ordered = Counter(name_groups(every).tolist())
    unordered = Counter(name_groups(every[a <= b]).tolist())
    for group in group_names(columns):
        assert group_size(group, columns, ordered=True) == ordered[group]
        assert group_size(group, columns, ordered=False) == unordered[group]


@pytest.mark.parametrize(
    ("columns", "group"), [(3, "chain_2"), (3, "chain_0"), (8, "nines"), (100, "chain_64"), (300, "chain_300")]
)
def test_groups_are_drawn_exactly(columns, group):
    drawn = draw_group(np.random.default_rng(0), 500, group, columns)
    assert set(name_groups(drawn)) == {group}


def test_a_group_is_drawn_uniformly():
    drawn = draw_group(np.random.default_rng(0), 200_000, "chain_2", 2)
    counts = Counter(zip(to_integers(drawn.a).tolist(), to_integers(drawn.b).tolist(), strict=True))
    assert len(counts) == group_size("chain_2", 2, ordered=True) == 450
    expected = 200_000 / 450
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 449 + 5 * (2 * 449) ** 0.5


def test_pairs_differ_in_one_column_and_one_carry():
    for options in (OPTIONS["default"], OPTIONS["exact_digits"], OPTIONS["long"]):
        corpus = TASKS["addition"].splits(options)
        for split in ("test", "ripple"):
            base, source = corpus.pairs(split)
            rows = rows_of(options, "pairs", split)
            assert len(rows) == options.pairs
            assert len({(row["base_input"], row["source_input"]) for row in rows}) == options.pairs
            one, other = solve(base.a, base.b), solve(source.a, source.b)
            flags = set()
            for number, row in enumerate(rows):
                column = row["column"]
                changed = (base.a[number] != source.a[number]) | (base.b[number] != source.b[number])
                assert np.flatnonzero(changed).tolist() == [column]
                totals = [int(side.a[number, column]) + int(side.b[number, column]) for side in (base, source)]
                assert abs(totals[0] - totals[1]) == 10
                assert one.sum[number, column] == other.sum[number, column] == row["own_digit"]
                differing = np.flatnonzero(one.carry_into[number] != other.carry_into[number]).tolist()
                assert differing == list(range(column + 1, column + 2 + row["ripple"]))
                assert row["ripple"] == 0 if split == "test" else row["ripple"] > 0
                assert row["base_carry_out"] == one.carry_into[number, column + 1]
                assert len(row["base_input"]) == len(row["source_input"])
                flags.add(row["base_carry_out"])
            assert flags == {0, 1}
            assert {row["column"] for row in rows} == set(range(options.digits - (split == "ripple")))


def test_pairs_are_counted_exactly():
    def count(ripple: bool, smallest: int) -> int:
        total = 0
        for a in range(smallest, 100):
            for b in range(smallest, 100):
                for column in (0, 1):
                    s = a // 10**column % 10 + b // 10**column % 10
                    above = a // 10 + b // 10 if column == 0 else 0
                    if s <= 8 and (above == 9) == ripple:
                        digits = [(x, s + 10 - x) for x in range(1, 10) if 1 <= s + 10 - x <= 9]
                        total += len(digits)
        return total

    assert count_pairs(2, False, zero_pad=True) == count(False, 0)
    assert count_pairs(2, True, zero_pad=True) == count(True, 0)
    assert count_pairs(2, False, zero_pad=False) == count(False, 10)
    assert count_pairs(1, True, zero_pad=True) == 0


def test_the_same_seed_gives_the_same_rows_on_every_machine():
    def digest(options, config, split):
        table = pa.concat_tables(TASKS["addition"].splits(options).tables(config, split))
        return hashlib.sha256(str(table.to_pylist()).encode()).hexdigest()[:16]

    found = {
        "default/train": digest(AdditionOptions(), "default", "train"),
        "default/hard": digest(AdditionOptions(), "default", "hard"),
        "pairs/test": digest(AdditionOptions(), "pairs", "test"),
        "12 digits": digest(AdditionOptions(digits=12, train=500), "default", "train"),
    }
    assert found == PINNED
    assert digest(AdditionOptions(seed=1), "default", "train") != found["default/train"]


# Another value here means that CORPUS_VERSION has to go up: the same options would give other rows than before.
PINNED = {
    "default/train": "1f01e1abc239498e",
    "default/hard": "a615a280956277a4",
    "pairs/test": "a96748c47c8f9732",
    "12 digits": "e52f63ac92502b43",
}


def test_a_corpus_can_be_read_twice_and_in_any_order():
    corpus, again = TASKS["addition"].splits(OPTIONS["mixed"]), TASKS["addition"].splits(OPTIONS["mixed"])
    hard_first = [list(again.tables("default", split)) for split in ("hard", "train", "test")]
    train_first = [list(corpus.tables("default", split)) for split in ("train", "test", "hard")]
    assert hard_first[0] == train_first[2]
    assert hard_first[1] == train_first[0] == list(corpus.tables("default", "train"))


def test_problems_made_on_the_fly_can_be_kept_apart_from_held_out_ones():
    corpus = TASKS["addition"].splits(AdditionOptions())
    for split in ("validation", "test", "hard"):
        assert corpus.is_held_out(corpus.problems(split)).all()
    assert not corpus.is_held_out(corpus.problems("train")).any()
    commuted = corpus.problems("test")
    assert corpus.is_held_out(AdditionProblems(commuted.b, commuted.a, commuted.width)).all()
    wider = AdditionProblems(
        *(np.pad(digits, ((0, 0), (0, 2))) for digits in (commuted.a, commuted.b)), commuted.width
    )
    assert corpus.is_held_out(wider).all()
    wider.a[:, 4] = 1
    assert not corpus.is_held_out(wider).any()


def test_samples_on_the_fly():
    rng = np.random.default_rng(0)
    share = (
        sum(solve(p.a, p.b).column_class[:, :] == 1 for p in [sample_addition(rng, 2000, 20, nine_share=0.5)])
    ).mean()
    assert abs(share - 0.55) < 0.01
    full = sample_addition(rng, 50, 30, longest_chain=30)
    assert (solve(full.a, full.b).longest_chain == 30).all()
    with pytest.raises(ValueError, match="exclude each other"):
        sample_addition(rng, 5, 3, nine_share=0.1, longest_chain=2)
    with pytest.raises(ValueError, match="expected 0 to digits=3"):
        sample_addition(rng, 5, 3, longest_chain=4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"digits": 2}, r"15,000 different problems, but there are only 5,050 of up to 2 digits"),
        ({"digits": 2, "split_by": "ordered"}, r"only 10,000 of up to 2 digits"),
        ({"digits": 0}, r"digits=0 is not allowed; expected a whole number from 1"),
        ({"digits": 3.0}, r"digits=3.0 is not allowed"),
        ({"min_digits": 4}, r"min_digits=4 is not allowed; expected a whole number from 1 to 3"),
        ({"sampling": "carry_balancd"}, r"Did you mean 'carry_balanced'\?"),
        ({"answer_order": "backwards"}, r"expected one of plain, reversed"),
        ({"hard": 200_000}, r"expected hard <= 166,8"),
        ({"pairs": 10**7}, r"pairs=10,000,000 is not allowed"),
        ({"digits": 5, "exhaustive": True}, r"expected digits <= 4"),
        ({"train": 0, "sampling": "carry_balanced"}, r"has no effect with train=0"),
        ({"train": -1}, r"train=-1 is not allowed"),
        ({"train": 0, "validation": 0, "test": 0, "hard": 0, "pairs": 0}, r"every split has 0 rows"),
    ],
)
def test_wrong_options_are_explained(wrong, message):
    with pytest.raises(ValueError, match=message):
        AdditionOptions(**wrong)


def test_every_problem_can_be_asked_for_but_not_one_more():
    everything = AdditionOptions(digits=2, train=5050, validation=0, test=0, hard=0, pairs=0)
    rows = rows_of(everything, "default", "train")
    assert len({frozenset((row["a"], row["b"])) for row in rows}) == 5050
    with pytest.raises(ValueError, match="only 5,050"):
        AdditionOptions(digits=2, train=5051, validation=0, test=0, hard=0, pairs=0)
    beside_pairs = AdditionOptions(digits=2, train=5050, validation=0, test=0, hard=0, pairs=50)
    with pytest.raises(ValueError, match="are missing; expected smaller splits or more digits"):
        rows_of(beside_pairs, "default", "train")
    balanced = AdditionOptions(digits=2, train=5050, validation=0, test=0, hard=0, pairs=0, sampling="carry_balanced")
    assert len({frozenset((row["a"], row["b"])) for row in rows_of(balanced, "default", "train")}) == 5050


def test_long_rows_come_in_chunks():
    corpus = TASKS["addition"].splits(AdditionOptions(digits=6, train=300_000))
    chunks = [table.num_rows for table in corpus.tables("default", "train")]
    assert sum(chunks) == 300_000
    assert max(chunks) <= 1 << 17


def test_key_set_and_shares():
    keys, rng = KeySet(), np.random.default_rng(0)
    added = rng.integers(0, 1 << 63, size=(50, 400), dtype=np.uint64)
    for part in added:
        keys.add(part)
    assert keys.contains(added.ravel()).all()
    assert not keys.contains(rng.integers(0, 1 << 63, size=5000, dtype=np.uint64)).any()
    assert share_out(10, [1, 100, 100]) == [1, 5, 4]
    assert share_out(10, [1, 2, 3]) == [1, 2, 3]
    assert len(np.unique(problem_keys(TASKS["addition"].splits(AdditionOptions()).problems("train"), False))) == 10_000
