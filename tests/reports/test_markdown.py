"""Text from files stays text in Markdown."""

import pytest

from headcount.reports.markdown import block, cell, code, inline


NASTY = [
    "a|b",
    "`x`",
    "``",
    "<script>alert(1)</script>",
    "[x](javascript:1)",
    "a\n\n# b",
    "![x](http://y)",
    "\\`",
    "a\r\nb",
]


@pytest.mark.parametrize("text", NASTY)
def test_nothing_in_a_text_is_markup(text):
    for written in (inline(text), cell(code(text)), cell(inline(text))):
        assert "\n" not in written and "\r" not in written
        assert written.count("|") == written.count("\\|")
    for sign in "`<[]|*":
        assert inline(text).count(sign) == inline(text).count(f"\\{sign}")


@pytest.mark.parametrize("text", NASTY)
def test_no_text_ends_its_span_or_block_of_code(text):
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence) and fence not in span[len(fence) : -len(fence)]
    first, *lines, last = block(text).split("\n")
    assert first == last and set(first) == {"`"} and first not in "\n".join(lines)
