"""Programs for the card of an addition model, by the pipeline that comes with it."""

from ..card_examples import Example, PublishedModel, literal, mask_example


TOO_LONG = 20_000  # digits that no model of headcount has memory or positions for
PROBLEMS = (("374", "814"), ("702", "297"), ("999", "1"))


def addition_examples(model: PublishedModel) -> dict[str, Example]:
    digits = model.config.get("operand_digits")
    # Numbers that the model can read, down to one digit.
    first, second, third = PROBLEMS if digits is None else [(a[:digits], b[:digits]) for a, b in PROBLEMS]
    prompt = "+".join(number.zfill(digits or 0) for number in first)
    prompt += "=" if model.config["architecture"] == "decoder" else ""
    order = ", units first as it does," if model.config["answer_order"] == "reversed" else ""
    use = (
        "from transformers import pipeline\n\n"
        f'add = pipeline("integer-addition", model={literal(model.repo_id)}, trust_remote_code=True)\n'
        f"print(add({literal('+'.join(first))}))\n"
        f"print(add([{literal('+'.join(second))}, {literal('+'.join(third))}]))"
    )
    heads = (
        f'inputs = add.tokenizer({literal(prompt)}, return_tensors="pt")\n'
        f"answer = add.model.generate(**inputs, **masks, max_new_tokens={(digits or len(first[0])) + 2})\n"
        "print(add.tokenizer.decode(answer[0], skip_special_tokens=True))"
    )
    if digits is None:
        limit = Example("Numbers that it has no room for are refused:", f'add("1" * {TOO_LONG} + "+1")', may_fail=True)
    else:
        limit = Example("Longer numbers are refused:", f'add("{"1" * (digits + 1)}+1")', may_fail=True)
    return {
        "use": Example(
            "The pipeline comes with the repository; headcount need not be installed.", use + long_example(model)
        ),
        **mask_example(model, f"What it writes{order}", "add.model", heads),
        "limit": limit,
    }


def long_example(model: PublishedModel) -> str:
    """Two numbers of as many digits as the model was tested to add without a mistake."""
    if model.sure_to is None:
        return ""
    return (
        f'\na, b = "7" * {model.sure_to}, "64" * {model.sure_to // 2}'
        '\nprint(add(f"{a}+{b}") == str(int(a) + int(b)))  # the pipeline itself never computes the sum'
    )
