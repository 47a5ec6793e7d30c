"""What an addition corpus may be made of, and how many problems there are for it."""

from dataclasses import dataclass

from ..option_checks import check_flag, check_lengths, check_name, check_whole_number
from .carry_groups import NINES, chain_of, group_names, group_size
from .carry_pairs import count_pairs
from .choices import ANSWER_ORDERS, SAMPLINGS, SPLIT_RULES


MOST_DIGITS = 10_000
MOST_EXHAUSTIVE_DIGITS = 4
HELD_OUT_PART = 4  # at most one problem in four of two operand lengths goes to `test`, and one to `validation`
HARD_PART = 3  # at most one problem in three of a group goes to `hard`, so that training still meets the group


@dataclass(frozen=True)
class AdditionOptions:
    """What an addition corpus is made of; checked on construction.

    - `digits`: operands have up to so many digits; every number from 0 on is equally likely. With `min_digits`,
      lengths are mixed: the number of digits of each operand is drawn from `min_digits`..`digits`, all equally
      likely as far as problems exist (there are only 55 of one digit). `min_digits=digits`: exactly so many, without
      leading zeros.
    - `zero_pad`: operands are written with leading zeros to one width (`digits`; with `min_digits` the longer
      operand), the sum to one digit more. Otherwise no leading zeros.
    - `sampling` is about `train`; `validation` and `test` are always uniform, so that their figures can be compared.
    - `split_by="unordered"`: a+b and b+a are one problem.
    - `test_lengths`: widths beyond `digits`, tested by `long_test` problems of every class of long_problems.py each.
    - `train`, `validation`, `test`, `hard`, `pairs`: rows of each; 0 leaves the split out. `exhaustive`: every
      problem.
    """

    seed: int = 0
    digits: int = 3
    min_digits: int | None = None
    answer_order: str = "plain"
    zero_pad: bool = True
    sampling: str = "uniform"
    split_by: str = "unordered"
    train: int = 10_000
    validation: int = 2_000
    test: int = 2_000
    hard: int = 1_000
    pairs: int = 1_000
    test_lengths: tuple[int, ...] = ()
    long_test: int = 100
    exhaustive: bool = False

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_whole_number("digits", self.digits, 1, MOST_DIGITS)
        if self.min_digits is not None:
            check_whole_number("min_digits", self.min_digits, 1, self.digits)
        check_name("answer_order", self.answer_order, ANSWER_ORDERS)
        check_flag("zero_pad", self.zero_pad)
        check_name("sampling", self.sampling, SAMPLINGS)
        check_name("split_by", self.split_by, SPLIT_RULES)
        for split in ("train", "validation", "test", "hard", "pairs"):
            check_whole_number(split, getattr(self, split), 0)
        self._check_test_lengths()
        check_flag("exhaustive", self.exhaustive)
        if self.exhaustive and self.digits > MOST_EXHAUSTIVE_DIGITS:
            raise ValueError(
                f"exhaustive=True is not allowed with digits={self.digits}: {10 ** (2 * self.digits):.0e} problems; "
                f"expected digits <= {MOST_EXHAUSTIVE_DIGITS}."
            )
        if not any((self.train, self.validation, self.test, self.hard, self.pairs, self.exhaustive)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")
        if not self.train and self.sampling != "uniform":
            raise ValueError(f"sampling={self.sampling!r} has no effect with train=0; expected rows in train.")
        self._check_enough_problems()

    def _check_test_lengths(self) -> None:
        lengths = check_lengths("test_lengths", self.test_lengths, self.digits + 1, MOST_DIGITS)
        object.__setattr__(self, "test_lengths", lengths)
        check_whole_number("long_test", self.long_test, 1)

    @property
    def most_digits(self) -> int:
        """Of the widest problem in any split."""
        return max(self.digits, *self.test_lengths, 0)

    @property
    def ordered(self) -> bool:
        return self.split_by == "ordered"

    @property
    def leading_zeros(self) -> bool:
        return self.min_digits is None

    @property
    def widths(self) -> list[int]:
        return [self.digits] if self.min_digits is None else list(range(self.min_digits, self.digits + 1))

    def number_of_problems(self) -> int:
        """How many different problems there are, in the sense of `split_by`."""
        first = 10 ** (self.min_digits - 1) if self.min_digits is not None and self.min_digits > 1 else 0
        operands = 10**self.digits - first
        return operands**2 if self.ordered else operands * (operands + 1) // 2

    def _check_enough_problems(self) -> None:
        asked, there_are = self.train + self.validation + self.test + self.hard, self.number_of_problems()
        if asked > there_are:
            length = f"up to {self.digits}" if self.min_digits is None else f"{self.min_digits} to {self.digits}"
            raise ValueError(
                f"train + validation + test + hard ask for {asked:,} different problems, but there are only "
                f"{there_are:,} of {length} digits (split_by={self.split_by!r}); expected smaller splits "
                "or more digits."
            )
        if self.hard:
            most = sum(size // HARD_PART for size in group_sizes(self).values())
            if self.hard > most:
                raise ValueError(
                    f"hard={self.hard:,} is not allowed: one problem in {HARD_PART} of every carry group may be held "
                    f"out, which makes {most:,}; expected hard <= {most:,}."
                )
        if self.pairs:
            for ripple in (False, True):
                there_are = count_pairs(self.digits, ripple, self.zero_pad)
                if self.pairs > there_are // 4 and there_are:
                    raise ValueError(
                        f"pairs={self.pairs:,} is not allowed: of the {there_are:,} pairs "
                        f"{'with' if ripple else 'without'} a ripple a quarter may be drawn; "
                        f"expected pairs <= {there_are // 4:,}."
                    )


def group_sizes(options: AdditionOptions) -> dict[tuple[str, int], int]:
    """(group, width) -> how many problems there are."""
    return {
        (group, width): group_size(group, width, options.ordered)
        for group in group_names(options.digits)
        for width in options.widths
        if group == NINES or chain_of(group) <= width
    }
