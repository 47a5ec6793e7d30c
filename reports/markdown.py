"""Text that comes from files, in Markdown: nothing in it is markup, a link, or the end of a table's cell."""

import re
from typing import Any


def inline(text: Any) -> str:
    """Text on one line in which nothing is markup.

    >>> print(inline("a|b <img> [x](y)"))
    a\\|b \\<img> \\[x\\](y)
    """
    return re.sub(r"([\\`*\[\]<|])", r"\\\1", re.sub(r"\s+", " ", str(text)))


def code(text: Any) -> str:
    """A span of code on one line, whatever backticks are in it.

    >>> print(code("a`b"))
    `` a`b ``
    """
    line = re.sub(r"\s+", " ", str(text)).strip()
    longest = max(map(len, re.findall("`+", line)), default=0)
    if not line:
        return ""
    return f"`{line}`" if not longest else f"{'`' * (longest + 1)} {line} {'`' * (longest + 1)}"


def block(text: Any) -> str:
    """A fenced block that no line of the text can end.

    >>> print(block("a"))
    ```
    a
    ```
    """
    longest = max(map(len, re.findall("`+", str(text))), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def cell(text: Any) -> str:
    """Markdown in a cell of a table: a pipe or a line's end would end the cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", re.sub(r"\s*\n\s*", " ", str(text)))
