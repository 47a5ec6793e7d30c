"""Addition problems and pairs as arrow tables, and back."""

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features, List, Value
from numpy.typing import NDArray

from ..arrow_columns import list_column, name_column, string_column
from .carry_groups import NINES
from .carry_pairs import describe_pairs
from .choices import COLUMN_CLASSES
from .columns import INT64_DIGITS, AdditionProblems, from_integers, is_all_nines, number_of_digits, solve, to_integers
from .options import AdditionOptions
from .text import addition_texts, written_digits


def problem_features(options: AdditionOptions) -> Features:
    number = _number(options)
    return Features(
        {
            "input": Value("string"),
            "target": Value("string"),
            "a": number,
            "b": number,
            "sum": number,
            "digits": Value("int32"),
            "carries": Value("int32"),
            "longest_chain": Value("int32"),
            "group": Value("string"),
            "carry_into": List(Value("int8")),
            "column_class": List(ClassLabel(names=list(COLUMN_CLASSES))),
        }
    )


def _number(options: AdditionOptions) -> Value:
    return Value("int64" if options.most_digits <= INT64_DIGITS else "string")


def addition_table(problems: AdditionProblems, options: AdditionOptions, schema: pa.Schema) -> pa.Table:
    """One arrow table of problems with texts, numbers and the anatomy of their carries."""
    solution = solve(problems.a, problems.b)
    inputs, targets = addition_texts(problems, solution.sum, options.zero_pad, options.answer_order)
    chain = solution.longest_chain
    nines = is_all_nines(solution.column_class, problems.width)
    as_integers = options.most_digits <= INT64_DIGITS
    names = [*(f"chain_{length}" for length in range(problems.columns + 1)), NINES]
    columns = {
        "input": string_column(*inputs),
        "target": string_column(*targets),
        "a": number_column(problems.a, as_integers),
        "b": number_column(problems.b, as_integers),
        "sum": number_column(solution.sum, as_integers),
        "digits": pa.array(problems.width, pa.int32()),
        "carries": pa.array(solution.carries, pa.int32()),
        "longest_chain": pa.array(chain, pa.int32()),
        "group": name_column(names, np.where(nines, problems.columns + 1, chain)),
        "carry_into": list_column(solution.carry_into, problems.width + 1, pa.int8()),
        "column_class": list_column(solution.column_class, problems.width, pa.int64()),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def read_problems(table: pa.Table, options: AdditionOptions) -> AdditionProblems:
    """The problems of a table that `addition_table` made."""
    width = table["digits"].to_numpy().astype(np.int64)
    columns = max(options.digits, int(width.max(initial=1)))
    operands = []
    for name in ("a", "b"):
        if pa.types.is_integer(table.schema.field(name).type):
            operands.append(from_integers(table[name].to_numpy(), columns))
        else:
            texts = [text.zfill(columns)[::-1] for text in table[name].to_pylist()]
            operands.append(
                np.array([[int(digit) for digit in text] for text in texts], np.uint8).reshape(-1, columns)
            )
    a, b = operands
    return AdditionProblems(a, b, width)


def pair_features(options: AdditionOptions) -> Features:
    number = _number(options)
    texts = {f"{side}_{name}": Value("string") for side in ("base", "source") for name in ("input", "target")}
    numbers = {f"{side}_{name}": number for side in ("base", "source") for name in ("a", "b", "sum")}
    facts = {name: Value("int32") for name in ("digits", "column", "base_carry_out", "own_digit", "ripple")}
    return Features({**texts, **numbers, **facts})


def pair_table(
    base: AdditionProblems, source: AdditionProblems, options: AdditionOptions, schema: pa.Schema
) -> pa.Table:
    columns = {name: pa.array(values, pa.int32()) for name, values in describe_pairs(base, source).items()}
    columns["digits"] = pa.array(base.width, pa.int32())
    for side, problems in (("base", base), ("source", source)):
        total = solve(problems.a, problems.b).sum
        inputs, targets = addition_texts(problems, total, options.zero_pad, options.answer_order)
        columns[f"{side}_input"], columns[f"{side}_target"] = string_column(*inputs), string_column(*targets)
        for name, digits in (("a", problems.a), ("b", problems.b), ("sum", total)):
            columns[f"{side}_{name}"] = number_column(digits, options.digits <= INT64_DIGITS)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def number_column(digits: NDArray[np.uint8], as_integers: bool) -> pa.Array:
    """Numbers as int64, or as decimal text without leading zeros where 64 bits may not hold them."""
    if as_integers:
        return pa.array(to_integers(digits))
    lengths = number_of_digits(digits)
    return string_column(written_digits(digits, lengths, units_first=False), lengths)
