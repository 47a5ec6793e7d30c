import subprocess
import sys
from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "seq2seq_trainer.py"


def test_the_example_trains_generates_and_saves(tmp_path):
    command = [sys.executable, str(EXAMPLE), "--output", str(tmp_path), "--steps", "30", "--train", "500"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "free-running exact match on 2000 problems: 0." in answer.stdout
    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path), AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert model.generate(**tokenizer("374+814", return_tensors="pt"), max_new_tokens=6).shape[0] == 1
