"""Memory of freed tensors is used again, instead of being taken from the system page by page."""

import json
import platform
import subprocess
import sys

import pytest


PROGRAM = """
import json, resource, sys
import torch
from headcount.records.memory import keep_freed_memory

kept = sys.argv[1] == "keep" and keep_freed_memory()

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    first = torch.ones(2**21)  # 8 MB
    second = first + 1
    return ((first * second).cumsum(0) + second).sum()

for _ in range(10):  # the heap grows to what the work needs; how many pages that takes is up to the system
    work()
before = pages()
for _ in range(200):
    work()
print(json.dumps({"kept": kept, "pages": pages() - before}))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_large_tensors_use_freed_memory_again():
    def run(how: str) -> dict:
        answer = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
        return json.loads(answer.stdout)

    plain, kept = run("plain"), run("keep")
    assert kept["kept"] and not plain["kept"]
    assert kept["pages"] < plain["pages"] / 4
