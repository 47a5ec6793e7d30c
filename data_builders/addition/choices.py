"""Every name that an option of addition may take, with the sentence that describes it."""

SAMPLINGS = {
    "uniform": "every problem is equally likely",
    "carry_balanced": "equal shares of every carry-chain length and of all-nines columns, as far as problems exist",
}

ANSWER_ORDERS = {
    "plain": "most significant digit first: 1188",
    "reversed": "least significant digit first: 8811",
}

SPLIT_RULES = {
    "unordered": "374+814 and 814+374 are one problem and never end up in two splits",
    "ordered": "374+814 and 814+374 are two problems",
}

PROBLEM_CLASSES = {
    "random": "random digits, both operands of the full length",
    "carry_dense": "nine columns of ten sum to nine, so that carries run far",
    "full_chain": "a carry is made in the units and runs through every other column",
    "all_nines": "every column sums to nine and no carry is made",
    "unequal": "one operand is shorter than the other, down to the number 0",
    "leading_zeros": "both operands are shorter than they are written; 0 + 0 is among them",
}

COLUMN_CLASSES = {
    "kill": "the two digits sum to 8 or less: no carry leaves the column, whatever enters",
    "propagate": "the two digits sum to 9: the carry that enters is the carry that leaves",
    "generate": "the two digits sum to 10 or more: a carry leaves the column, whatever enters",
}
