"""What theory and others say about addition beyond the training length."""

from ..expectations import C_RASP, RASP_L, Expectation, Paper, Prediction, Published


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            False,
            "digits of one column would have to be found by arithmetic on indices, which RASP-L does not have; with "
            "index hints in the text there are programs, and the one for answers in reverse is shorter",
        ),
        Prediction(
            C_RASP,
            False,
            "what is known of the numbers in one half of a text has to reach the other half in a number of bits that "
            "grows with the logarithm of the length, and sums need more",
        ),
    ),
    published=Published(
        30,
        200,
        "more than 95 %",
        "coupled ids, answers in reverse, leading zeros",
        Paper("Cho et al. 2024", "https://arxiv.org/abs/2405.20671"),
    ),
)
