"""Verify, explain and launch an unchanged kernel on an emulated GPU.

A .toml file beside the .cu file, with the same name, says how the kernel is launched. Verifying and explaining are
commands; with --json a program can read their output.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import gemmlab

SOURCE = Path(__file__).with_name("sgemm_tiled.cu")
DEVICE = "emulated:sm_90"


def command(*words):
    """Return the JSON output of a `gemmlab` command. Its exit code is 0 for success, 1 for a wrong result."""
    line = [sys.executable, "-m", "gemmlab", *words, "--json"]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout)
    if done.returncode != 0:
        sys.exit(f"gemmlab {words[0]}: {answer}")
    return answer


# Is it right? Compare with float64, on shapes that fit the tile and others, with guard bands around the memory.
(report,) = command("check", str(SOURCE), "--device", DEVICE)["reports"]
print(f"right in {report['cases']} cases; the largest error is {report['worst_ratio']:.2f} of what is allowed")
for why, cases in report["refused"].items():
    print(f"  {cases} cases left out: {why}")

# Why is it slow, and what to try? The costliest finding comes first.
(explained,) = command("explain", str(SOURCE), "--gpu", "H200", "--sizes", "128")["kernels"]
for finding in explained["findings"][:3]:
    print(f"- {finding['text']}\n  {finding['attempt']}")

# What does one launch compute, and which instructions does it execute?
m, n, k = 50, 70, 40
rng = np.random.default_rng(0)
a = rng.standard_normal((m, k), dtype=np.float32)
b = rng.standard_normal((k, n), dtype=np.float32)
arguments = {"M": m, "N": n, "K": k, "A": a, "B": b, "C": np.zeros((m, n), np.float32)}
blocks = (-(-n // 16), -(-m // 16))
done = gemmlab.launch(SOURCE, "sgemm_tiled", blocks, (16, 16), arguments, device=DEVICE)

np.testing.assert_allclose(done.outputs["C"], a @ b, atol=1e-4)
assert done.hazards == ()
print(f"{done.counters.executed('FFMA')} FFMA to {done.counters.executed('LDS')} loads from shared memory, by warps")
print(f"{done.artifact.resources['registers']} registers a thread")
