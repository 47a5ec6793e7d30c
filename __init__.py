"""Stands in for the package where Python finds the checkout itself under its name.

A clone is mostly called headcount, so in the folder that holds it `import headcount` finds the clone before anything
that is installed in editable mode. Without this file that would be an empty namespace package; with it, it is the
package: the public names in headcount/, and the rooms beside it.
"""

import importlib.util
import sys
from pathlib import Path


NAME = "headcount"

if __name__ == NAME:  # a test runner may import it as the package of the tests, under the name of its folder
    root = Path(__file__).parent
    spec = importlib.util.spec_from_file_location(
        NAME, root / "headcount/__init__.py", submodule_search_locations=[str(root / "headcount"), str(root)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
