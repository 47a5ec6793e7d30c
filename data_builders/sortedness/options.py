"""What a sortedness corpus may be made of."""

from dataclasses import dataclass, field

from ..option_checks import check_lengths, check_share, check_whole_number
from .sequences import MIXTURE, check_kinds


TEST_LENGTHS = (8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
LONGEST = 1_000_000


@dataclass(frozen=True)
class SortednessOptions:
    """What a sortedness corpus is made of; checked on construction.

    - `train`, `validation`: rows, with lengths `min_length`..`max_length` equally often.
    - `test`: rows of every test split; one split per length in `test_lengths`, in the config `default` with the
      mixture of kinds, and in the configs `shuffle`, `swap` and `move` with that kind alone.
    - `kinds`: shares of the kinds among the unsorted rows.
    - `narrow_share`: share of training and validation rows whose values come from a random sub-range. Test rows use
      the whole range 0-99.
    """

    seed: int = 0
    min_length: int = 8
    max_length: int = 16
    test_lengths: tuple[int, ...] = TEST_LENGTHS
    kinds: dict[str, float] = field(default_factory=lambda: dict(MIXTURE))
    narrow_share: float = 0.5
    train: int = 50_000
    validation: int = 2_000
    test: int = 1_000

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_whole_number("max_length", self.max_length, 1, LONGEST)
        check_whole_number("min_length", self.min_length, 1, self.max_length)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
            if getattr(self, split) % 2:
                raise ValueError(
                    f"{split}={getattr(self, split)} is not allowed: the classes could not be balanced; "
                    "expected an even number."
                )
        object.__setattr__(self, "test_lengths", check_lengths("test_lengths", self.test_lengths, 1, LONGEST))
        if self.test and not self.test_lengths:
            raise ValueError("test_lengths is empty; expected lengths, or test=0.")
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")
        check_share("narrow_share", self.narrow_share)
        if self.train or self.validation:
            check_kinds(self.kinds, self.min_length)
        for length in self.test_lengths if self.test else ():
            check_kinds(self.kinds, length)
