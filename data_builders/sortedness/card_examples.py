"""Programs for the card of a model that tells whether a sequence is sorted."""

from ..card_examples import Example, PublishedModel, literal, mask_example


def sortedness_examples(model: PublishedModel) -> dict[str, Example]:
    use = (
        "from transformers import pipeline\n\n"
        f'is_sorted = pipeline("text-classification", model={literal(model.repo_id)}, trust_remote_code=True)\n'
        'print(is_sorted("3 8 17 17 42 60 71 99"))\n'
        'print(is_sorted("3 8 17 42 17 60 71 99"))'
    )
    heads = (
        'inputs = is_sorted.tokenizer("3 8 17 42 17 60 71 99", return_tensors="pt")\n'
        "print(is_sorted.model(**inputs).logits.tolist())\n"
        "print(is_sorted.model(**inputs, **masks).logits.tolist())"
    )
    return {
        "use": Example("headcount need not be installed.", use),
        **mask_example(model, "The logits of the second sequence with all heads, and", "is_sorted.model", heads),
        "limit": Example(
            "One value alone is sorted, but was never shown to the model; values outside of 0 to 99 are refused:",
            'print(is_sorted("7"))\nprint(is_sorted("3 8 100"))',
            may_fail=True,
        ),
    }
