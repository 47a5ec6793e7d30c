"""What each metric gives, against values worked out by hand, published ones and scipy."""

import numpy as np
import pytest
from metric_examples import INPUTS, row
from scipy.stats import binomtest

from headcount import metrics


def wilson(correct, n):
    interval = binomtest(correct, n).proportion_ci(method="wilson")
    return pytest.approx([interval.low, interval.high], abs=1e-12)


def test_exact_match_counts_whole_answers():
    result = metrics.compute_exact_match(**INPUTS["exact_match"])
    assert (result["correct"], result["n"], result["exact_match"]) == (4, 9, 4 / 9)
    assert result["interval"] == wilson(4, 9)


def test_exact_match_has_the_published_wilson_interval():
    # 81 of 263: Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3.
    result = metrics.compute_exact_match(["1"] * 81 + ["0"] * 182, ["1"] * 263)
    assert result["interval"] == pytest.approx([0.2553, 0.3662], abs=5e-5)


def test_exact_match_of_token_lists():
    predictions = [[1, 2], (1, 2), np.array([1, 2]), [1, 2, 0], "12"]
    result = metrics.compute_exact_match(predictions, [[1, 2], [1, 2], [1, 2], [1, 2], ["1", "2"]])
    assert result["correct"] == 3


def test_digit_accuracy_by_place():
    result = metrics.compute_digit_accuracy(["118", "17", "9117", "x17"], ["117"] * 4)
    expected = [("units", 3), ("tens", 4), ("hundreds", 2)]
    assert [(r["name"], r["accuracy"] * r["n"]) for r in result["by_place"]] == expected
    assert [r["interval"] for r in result["by_place"]] == [wilson(3, 4), wilson(4, 4), wilson(2, 4)]
    assert (result["digits"], result["n"], result["wrong_length"]) == (12, 4, 2)
    assert result["digit_accuracy"] == 9 / 12
    assert result["interval"] == wilson(3, 4)  # 9 of 12 digits, but only 4 answers


def test_digit_accuracy_n_is_the_number_of_references_with_that_place():
    result = metrics.compute_digit_accuracy(["7", "17", "10000"], ["7", "17", "20000"])
    assert [(r["place"], r["name"], r["n"]) for r in result["by_place"]] == [
        (0, "units", 3),
        (1, "tens", 2),
        (2, "hundreds", 1),
        (3, "thousands", 1),
        (4, "10^4", 1),
    ]
    assert result["by_place"][4]["accuracy"] == 0.0


def test_digit_accuracy_of_reversed_answers_starts_at_the_other_end():
    plain = metrics.compute_digit_accuracy(["12", "118"], ["112", "117"])
    turned = metrics.compute_digit_accuracy(["21", "811"], ["211", "711"], answer_order="reversed")
    assert plain == turned
    assert metrics.compute_digit_accuracy(["21"], ["211"])["by_place"][0]["accuracy"] == 1.0  # plain: 1 is the units
    assert metrics.compute_digit_accuracy(["22"], ["211"], "reversed")["by_place"][0]["accuracy"] == 1.0


def test_place_accuracy_of_any_strings_from_either_end():
    first = metrics.compute_place_accuracy(["cbx", "c", "cbaz"], ["cba", "cb", "cba"])
    assert [(r["place"], r["value"], r["n"]) for r in first["by_place"]] == [(0, 1.0, 3), (1, 2 / 3, 3), (2, 0.5, 2)]
    assert [r["interval"] for r in first["by_place"]] == [wilson(3, 3), wilson(2, 3), wilson(1, 2)]
    assert (first["value"], first["places"], first["n"], first["wrong_length"]) == (6 / 8, 8, 3, 2)
    last = metrics.compute_place_accuracy(["xbc", "c", "zabc"], ["abc", "bc", "abc"], place_zero="last")
    assert last == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], ["a"], "middle"), r"place_zero is 'middle', expected one of \['first', 'last'\]\."),
        (([""], [""]), r"All references are empty"),
        ((["a"], [1]), r"The reference 1 is not a string\."),
        ((["a"], ["a", "b"]), r"There are 1 predictions and 2 references, expected as many\."),
    ],
)
def test_place_accuracy_of_something_else_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.compute_place_accuracy(*arguments)


def test_breakdown_by_numbers_and_by_names():
    right = [True, False, True, True]
    assert [(value, found["value"], found["n"]) for value, found in metrics.breakdown(right, [3, 0, 0, 3])] == [
        (0, 0.5, 2),
        (3, 1.0, 2),
    ]
    (name, found), *others = metrics.breakdown(right, np.array(["nines", "carry", "nines", "nines"], object))
    assert (name, found["value"], found["n"], len(others)) == ("carry", 0.0, 1, 1)
    assert found["interval"] == wilson(0, 1)
    assert all(type(value) is int for value, _ in metrics.breakdown(right, np.array([1, 2, 2, 1])))


def test_carry_exact_match_has_a_row_per_chain_length():
    result = metrics.compute_carry_exact_match(**INPUTS["carry_exact_match"])
    assert (result["exact_match"], result["correct"], result["n"]) == (4 / 9, 4, 9)
    rows = result["by_longest_carry_chain"]
    assert [(r["longest_carry_chain"], r["exact_match"], r["n"]) for r in rows] == [
        (0, 0.25, 4),
        (1, 0.5, 2),
        (2, 1.0, 1),
        (3, 0.5, 2),
    ]
    assert [r["interval"] for r in rows] == [wilson(1, 4), wilson(1, 2), wilson(1, 1), wilson(1, 2)]


def gap_of(both, only_forced, only_free, neither):
    """The metric on data with these counts."""
    counts = [both, only_forced, only_free, neither]
    forced = np.repeat(["right", "right", "wrong", "wrong"], counts)
    free = np.repeat(["right", "wrong", "right", "wrong"], counts)
    return metrics.compute_decoding_gap(free.tolist(), ["right"] * sum(counts), forced.tolist())


def test_decoding_gap_has_newcombes_interval_as_others_compute_it():
    # Cavo et al. (2012), as in the tests of the R package contingencytables (Fagerland, Lydersen and Laake).
    result = gap_of(59, 6, 16, 80)
    assert result["gap"] == pytest.approx(-0.0621, abs=5e-5)
    assert result["interval"] == pytest.approx([-0.1186, -0.0046], abs=5e-5)


def test_exact_mcnemar_by_hand():
    assert gap_of(1, 1, 7, 12)["mcnemar_p"] == pytest.approx(2 * (1 + 8) / 2**8)  # 0 or 1 of 8 coin flips, two sides


def test_decoding_gap_counts_and_rates():
    result = gap_of(5, 3, 1, 2)
    names = ["both_right", "only_teacher_forced_right", "only_free_running_right", "both_wrong"]
    assert [result[name] for name in names] == [5, 3, 1, 2]
    assert result["teacher_forced"] == {"rate": 8 / 11, "n": 11, "interval": wilson(8, 11)}
    assert result["free_running"] == {"rate": 6 / 11, "n": 11, "interval": wilson(6, 11)}


def test_decoding_gap_interval_is_narrower_when_the_two_agree():
    agree, disagree = gap_of(45, 5, 5, 45), gap_of(25, 25, 25, 25)
    assert agree["gap"] == disagree["gap"] == 0
    assert agree["interval"][1] < disagree["interval"][1] / 2


def test_no_decoding_gap():
    result = gap_of(10, 0, 0, 0)
    assert (result["gap"], result["mcnemar_p"]) == (0.0, 1.0)
    assert result["interval"][0] < 0 < result["interval"][1]


def test_sortedness_accuracy_by_class_length_and_kind():
    result = metrics.compute_sortedness_accuracy(**INPUTS["sortedness_accuracy"])
    assert (result["accuracy"], result["n"], result["interval"]) == (6 / 9, 9, wilson(6, 9))
    assert result["true_positive_rate"] == {"rate": 3 / 4, "n": 4, "interval": wilson(3, 4)}
    assert result["true_negative_rate"] == {"rate": 3 / 5, "n": 5, "interval": wilson(3, 5)}
    assert result["majority_class_rate"]["rate"] == 5 / 9
    assert result["predicts_one_class_only"] is False
    assert [(r["length"], r["accuracy"], r["n"]) for r in result["by_length"]] == [(8, 3 / 5, 5), (16, 3 / 4, 4)]
    kinds = {r["kind"]: (r["true_negative_rate"]["rate"], r["true_negative_rate"]["n"]) for r in result["by_kind"]}
    assert kinds == {"shuffle": (1.0, 2), "swap": (0.5, 2), "move": (0.0, 1)}
    assert row(result["by_kind"], kind="swap")["balanced_accuracy"]["rate"] == (1 / 2 + 3 / 4) / 2
    # At length 16 both positives are right and the one swap is missed.
    long_swap = row(result["by_length_and_kind"], kind="swap", length=16)
    assert (long_swap["balanced_accuracy"]["rate"], long_swap["balanced_accuracy"]["n"]) == (0.5, 3)


def test_balanced_accuracy_interval_adds_distances_in_squares():
    result = metrics.compute_sortedness_accuracy(**INPUTS["sortedness_accuracy"])
    swap = row(result["by_kind"], kind="swap")
    low_tnr, low_tpr = (binomtest(k, n).proportion_ci(method="wilson").low for k, n in ((1, 2), (3, 4)))
    expected = 0.625 - ((0.5 - low_tnr) ** 2 + (0.75 - low_tpr) ** 2) ** 0.5 / 2
    assert swap["balanced_accuracy"]["interval"][0] == pytest.approx(expected)


@pytest.mark.parametrize("guess", [0, 1])
def test_a_constant_guess_is_flagged_and_stays_at_chance_on_every_kind(guess):
    references = [1, 1, 1, 1, 0, 0, 0, 0]
    kinds = ["", "", "", "", "swap", "swap", "swap", "shuffle"]
    result = metrics.compute_sortedness_accuracy([guess] * 8, references, [8] * 8, kinds)
    assert result["predicts_one_class_only"] is True
    assert result["accuracy"] == result["majority_class_rate"]["rate"] == 0.5
    assert {r["balanced_accuracy"]["rate"] for r in result["by_kind"]} == {0.5}


def test_one_class_is_not_flagged_when_there_is_only_one():
    result = metrics.compute_sortedness_accuracy([0, 0], [0, 0], [8, 8], ["swap", "swap"])
    assert result["predicts_one_class_only"] is False
    assert result["true_positive_rate"] == {"rate": None, "n": 0, "interval": [0.0, 1.0]}
    assert result["by_kind"][0]["balanced_accuracy"]["rate"] is None


def test_class_rates_unmask_a_model_that_always_says_the_same():
    label = np.array([1] * 30 + [0] * 70)
    rates = metrics.class_rates(np.zeros(100, int), label)
    assert (rates["value"], rates["n"], rates["interval"]) == (0.7, 100, wilson(70, 100))
    assert (rates["true_positive_rate"], rates["true_negative_rate"]) == (0.0, 1.0)
    assert (rates["majority_class_rate"], rates["one_class_only"]) == (0.7, True)
    assert metrics.class_rates(label, label)["one_class_only"] is False


def test_class_rates_of_a_class_without_examples_are_not_measured():
    rates = metrics.class_rates([1, 0], [1, 1])
    assert (rates["true_positive_rate"], rates["true_negative_rate"], rates["majority_class_rate"]) == (0.5, None, 1.0)


@pytest.mark.parametrize(
    ("predicted", "label", "message"),
    [
        ([2, 0], [1, 0], "predictions have values other than 0"),
        ([1, 0], [1], r"There are 2 predictions and 1 references, expected as many\."),
        ([], [], "There are no examples"),
    ],
)
def test_class_rates_of_something_else_is_an_error(predicted, label, message):
    with pytest.raises(ValueError, match=message):
        metrics.class_rates(predicted, label)


def test_calibration_by_hand():
    # Bin 0.6-0.7: two, one right, confidence 0.6. Bin 0.9-1: two, both right, mean confidence 0.95.
    result = metrics.compute_calibration([1, 0, 1, 1], [1, 0, 0, 1], [0.9, 0.6, 0.6, 1.0])
    assert result["expected_calibration_error"] == pytest.approx((2 * 0.1 + 2 * 0.05) / 4)
    assert result["accuracy"] == {"rate": 0.75, "n": 4, "interval": wilson(3, 4)}
    assert result["mean_confidence"] == pytest.approx(0.775)
    assert [r["n"] for r in result["bins"]] == [0, 0, 0, 0, 0, 0, 2, 0, 0, 2]
    assert result["bins"][6]["accuracy"] == 0.5 and result["bins"][6]["interval"] == wilson(1, 2)
    assert result["bins"][9]["mean_confidence"] == pytest.approx(0.95)


@pytest.mark.parametrize(("confidence", "bin_index"), [(0.0, 0), (0.3, 3), (0.7, 7), (0.7999, 7), (1.0, 9)])
def test_calibration_bins_hold_their_lower_edge(confidence, bin_index):
    rows = metrics.compute_calibration(["a"], ["a"], [confidence])["bins"]
    assert [r["n"] for r in rows].index(1) == bin_index
    assert rows[bin_index]["low"] <= confidence <= rows[bin_index]["high"]


def test_one_bin_is_the_distance_of_accuracy_and_confidence():
    result = metrics.compute_calibration(**INPUTS["calibration"], n_bins=1)
    assert result["expected_calibration_error"] == pytest.approx(
        abs(result["accuracy"]["rate"] - result["mean_confidence"])
    )


def test_no_error_in_n_examples_still_leaves_calibration_uncertain():
    low, high = metrics.compute_calibration([1] * 100, [1] * 100, [0.999] * 100)["interval"]
    assert low == 0.0 and high > 0.01


@pytest.mark.parametrize("overconfidence", [0.0, 0.2])
def test_calibration_interval_covers_the_true_error(overconfidence):
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(150):
        confidence = rng.beta(8, 2, size=300)
        chance = np.clip(confidence - overconfidence, 0, 1)
        right = rng.random(300) < chance
        bins = np.floor(confidence * 10)
        truth = sum(abs((chance - confidence)[bins == index].sum()) for index in range(10)) / 300
        low, high = metrics.compute_calibration(np.ones(300), right.astype(int), confidence)["interval"]
        covered += low <= truth <= high
    assert covered >= 0.9 * 150


def test_calibration_interval_leaves_out_zero_when_a_model_is_far_too_sure():
    low, _ = metrics.compute_calibration([1] * 200, [1, 0] * 100, [0.95] * 200)["interval"]
    assert low > 0.3
