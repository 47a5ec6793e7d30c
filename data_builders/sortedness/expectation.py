"""What theory and others say about sortedness beyond the training length."""

from ..expectations import C_RASP, RASP_L, Expectation, Prediction


EXPECTATION = Expectation(
    predictions=(
        Prediction(RASP_L, None, "sorting itself has a program; telling whether a sequence is sorted is not treated"),
        Prediction(C_RASP, None, "sorting itself has a program; telling whether a sequence is sorted is not treated"),
    ),
)
