"""How rows about sites and sets of sites are found, and which sites a name stands for.

A set is named by a pattern, or by several joined by ` + `; `all but` it is its complement, every other head or every
other feed-forward sublayer. The site `none` is the control without any intervention.
"""

import re
from fnmatch import fnmatchcase

from ..data_builders.registry import TASKS
from ..data_builders.tasks import ErrorSignature, Variable
from ..records.rows import Row, Rows, select, values_of


ALL_BUT, AND, NO_SITE = "all but ", " + ", "none"
HEAD = re.compile(r"\w+\.\d+\.(self|cross)\.\d+")
FEWEST_ERRORS = 20  # wrong labels from which their distribution can be read, as for the roles
STACKS = {"encoder": 0, "decoder": 1}  # in the order of computation; what spans both comes last


def is_head(site: str) -> bool:
    """Whether it is one head: no sublayer, no residual, no set.

    >>> [is_head(name) for name in ("decoder.0.cross.1", "decoder.0.cross.*", "decoder.0.mlp")]
    [True, False, False]
    """
    return HEAD.fullmatch(site) is not None


def is_complement(name: str) -> bool:
    return name.startswith(ALL_BUT)


def complement_of(name: str) -> str:
    return ALL_BUT + name


def others_words(name: str) -> str:
    """What the complement of a set is: heads stand beside heads, sublayers beside sublayers.

    >>> others_words("decoder.0.cross.*"), others_words("encoder.*.mlp")
    ('all other heads', 'all other feed-forward sublayers')
    """
    return "all other feed-forward sublayers" if ".mlp" in name else "all other heads"


def is_set(row: Row) -> bool:
    """Several sites, named for what they are, not for what they leave."""
    return row["size"] > 1 and not is_complement(row["site"])


def members(name: str, known: list[str]) -> list[str]:
    """Those of the known sites that belong to a set, or to what a set leaves.

    >>> members("decoder.*.cross.* + encoder.0.mlp", ["encoder.0.mlp", "decoder.0.self.0", "decoder.1.cross.0"])
    ['encoder.0.mlp', 'decoder.1.cross.0']
    """
    inside = [site for site in known if any(fnmatchcase(site, each) for each in name.removeprefix(ALL_BUT).split(AND))]
    if not is_complement(name):
        return inside
    kinds = {is_head(site) for site in inside}
    return [site for site in known if is_head(site) in kinds and site not in inside]


def more_per_site(together: Row, best: Row) -> float:
    """How much more a set does than the best of its members, for each of its sites: small sets tell most."""
    return (together["value"] - best["value"]) / together["size"]


def by_site(rows: Rows) -> dict[str, Row]:
    return {row["site"]: row for row in rows}


def in_reading_order(rows: Rows) -> Rows:
    """Heads before sublayers before residuals, small sets before large ones, the encoder first."""
    return sorted(rows, key=_reading_order)


def _reading_order(row: Row) -> tuple[int, int, int, str]:
    name = row["site"].removeprefix(ALL_BUT)
    kind = 2 if "residual" in name else 1 if "mlp" in name else 0
    return kind, row["size"], STACKS.get(name.split(".")[0], len(STACKS)), name


def first_variable(rows: Rows) -> str:
    return values_of(rows, "variable")[0]


def swaps(rows: Rows, metric: str, pairs: str = "minimal") -> dict[str, Row]:
    """Site or set -> what its swap does to all pairs of a kind; `none` is among them."""
    return by_site(select(rows, scope={}, metric=metric, pairs=pairs))


def joint_drops(rows: Rows) -> dict[str, dict[str, Row]]:
    """Set -> mode -> what it costs to lose the whole set, over all of the data."""
    found: dict[str, dict[str, Row]] = {}
    for row in in_reading_order(select(rows, scope={}, study="sets")):
        found.setdefault(row["site"], {})[row["mode"]] = row
    return found


def variable_of(name: str) -> Variable | None:
    """The variable as the task that has it describes it; None if no task here has it."""
    return next((task.variables[name] for task in TASKS.values() if name in task.variables), None)


def signature_of(variable: str) -> ErrorSignature | None:
    found = variable_of(variable)
    return None if found is None else found.errors


def typical_words(variable: str) -> str:
    """`off by exactly one`: how a label is wrong if the variable is."""
    found = signature_of(variable)
    return f"typical of the {variable}" if found is None else found.says.partition(",")[0]


def control_words(variable: str) -> str:
    """What pairs are in which the variable stays, as the task says."""
    found = variable_of(variable)
    return "" if found is None else found.pair_kinds.get("control", "")


def shown_offset(offset: int, modulus: int) -> int:
    """9 of 10 is one too few.

    >>> [shown_offset(offset, 10) for offset in (1, 5, 6, 9)]
    [1, 5, -4, -1]
    """
    return offset if offset <= modulus // 2 else offset - modulus
