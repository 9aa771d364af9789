"""Whatever a kernel file's header says: it is read, or refused by a `GemmlabError`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import GemmlabError
from gemmlab.kernels.cuda_file.header import KEYS
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from support.trials import Trials

KERNELS = sorted((Path(gemmlab.__file__).parent / "kernels").rglob("*_cuda/*.cu"))
VALUES = (
    "1", "0", "-1", "64", "2147483648", "9223372036854775808", "0x" + "f" * 5000, "9" * 5000, "1_000", "1e400", "-inf",
    "nan", "0.1", "true", '""', '"BM"', '"ceil_div(M, BM)"', '"M / 0"', '"M // 0"', '"2 ** 63"', '"2 ** 62 * 4"',
    '"1 << 99"', '"M.x"', '"__import__"', '"\\u00e9"', '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', "[]", "[[]]",
    "[1, 2]", '["M", "N"]', '["M", 1, [2]]', "{}", "{ BM = 1 }", "{ BM = [1, 2] }", '{ BM = "x" }', "{ M = 1 }",
    "1979-05-27",
    "07:32:00", "[" * 500, '"' + "(" * 300 + '"', "'''", '"""', "{ a.b.c = 1 }", '"sm_90"', '"tf32"', '"reduce"',
    '[{ shape = "64", that = "x > 1" }]', "[{ shape = 1, that = 2 }]", '[{ that = "x", config = { BM = 1e9 } }]',
)  # fmt: skip
PIECES = (
    "=",
    "\n",
    "*/",
    "/* gemmlab\n",
    "#",
    '"',
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "\x00",
    "\x1b",
    "\r",
    "\u2028",
    "é",
    "(",
)


def stated(rng: np.random.Generator) -> str:
    """Lines of keys and values that may or may not fit each other."""
    keys = rng.choice([*KEYS, "params.BM", "tune.BM", "grid", "threads", "nonsense"], 1 + rng.integers(8))
    return "\n".join(f"{key} = {VALUES[rng.integers(len(VALUES))]}" for key in keys)


def changed(rng: np.random.Generator, text: str) -> str:
    """A few places of the header replaced, doubled, cut out, or its values exchanged."""
    opening = text.index("/* gemmlab")
    closing = text.index("*/", opening) + 2
    for _ in range(1 + rng.integers(4)):
        header = text[opening:closing]
        at, length = int(rng.integers(len(header) + 1)), int(rng.integers(1, 30))
        lines = header.split("\n")
        match rng.integers(6):
            case 0:
                header = header[:at] + header[at + length :]
            case 1:
                header = header[:at] + PIECES[rng.integers(len(PIECES))] + header[at:]
            case 2:
                header = header[:at] + header[at : at + length] + header[at:]
            case 3:
                header = header.replace("*/", f"{stated(rng)}\n*/", 1)
            case 4:
                number = int(rng.integers(len(lines)))
                value = VALUES[rng.integers(len(VALUES))]
                lines[number] = f"{lines[number].partition('=')[0]}= {value}" if "=" in lines[number] else value
                header = "\n".join(lines)
            case _:
                first, second = rng.integers(len(lines), size=2)
                lines[first], lines[second] = lines[second], lines[first]
                header = "\n".join(lines)
        text = text[:opening] + header + text[closing:]
        closing = opening + len(header)
    return text


def use(path: Path) -> None:
    """What the verbs do with a kernel before anything is compiled."""
    kernel = user_kernel(path)
    config = kernel.configure()
    scalars = GemmOp().scalars(GemmProblem(64, 48, 32))
    if kernel.op == "gemm" and kernel.refusal(config, scalars) is None:
        kernel.instantiate(config, scalars)
        kernel.program(config, "sm_90")


# A key of an earlier version gets a notice.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_headers_are_read_or_refused(trials: Trials, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    texts = [kernel.read_text(encoding="utf-8") for kernel in KERNELS]
    for rng in trials:
        if rng.random() < 0.3:
            text = f"/* gemmlab\n{stated(rng)}\n*/\n__global__ void k(int M, int N, int K, const float* A) {{}}\n"
        else:
            text = changed(rng, texts[rng.integers(len(texts))])
        path.write_text(text, encoding="utf-8", newline="")
        with suppress(GemmlabError):
            use(path)
