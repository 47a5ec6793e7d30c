"""Token sequences put together from arrays."""

import numpy as np
import pytest

from headcount.data_builders.vocabulary import Vocabulary, assemble


def test_labels_as_an_answer_of_several_tokens_are_an_error():
    questions = np.array([[3, 4]]), np.array([2])
    vocabulary = Vocabulary(("a", "b", "="), answer_mark="=")
    assert assemble(questions, np.array([1]), "encoder", vocabulary)["labels"].tolist() == [1]
    for style in ("encoder-decoder", "decoder"):
        with pytest.raises(
            ValueError, match=f"labels cannot be written in the style '{style}'; expected answers as ids"
        ):
            assemble(questions, np.array([1]), style, vocabulary)
