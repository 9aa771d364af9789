"""Launch, check and explain other compilers' cubins: `python makers/compiled_kernels.py FOLDER`.

FOLDER is that of `compiled_elsewhere.py`. The emulator runs each cubin, and results are compared with NumPy in float64.
The table of compilers, kernels and verdicts in docs/public-kernels.md is written anew.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gemmlab
from gemmlab.core.elements import BFLOAT16, FLOAT16, FLOAT32, Element

PAGE = Path(__file__).parent.parent / "docs" / "public-kernels.md"
BEGIN, END = "<!-- begin compiled elsewhere -->", "<!-- end compiled elsewhere -->"
DEVICE = "emulated:sm_90"
TYPES: Mapping[str, Element] = {"*fp32": FLOAT32, "*fp16": FLOAT16, "*bf16": BFLOAT16}
TOLERANCE = {"*fp32": 1e-5, "*fp16": 2e-3, "*bf16": 1e-2}
"""Type -> the largest right error, relative to the largest result. TF32 has the tolerance of float16."""
Values = npt.NDArray[np.float64]


def main() -> None:
    """Run the command line."""
    folder = Path(sys.argv[1])
    facts = [(path, json.loads(path.with_suffix(".json").read_text())) for path in sorted(folder.glob("*.cubin"))]
    rows = [f"| {' | '.join(row(path, known))} |" for path, known in facts]
    head = ["| compiler | kernel | launch | hazards | check | explain |", "|---|---|---|---|---|---|"]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text = "\n".join([*head, *rows])
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def row(path: Path, known: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the table's cells for one kernel: compiler, name, and the verdicts of the launch, `check` and `explain`.

    `known` are the facts of the kernel's JSON file.
    """
    rng = np.random.default_rng(0)
    stated = [arg for arg in known["args"] if isinstance(arg, dict)]
    types = known["type"] if isinstance(known["type"], list) else [known["type"]] * len(stated)
    kinds = [TYPES[name] for name in types]
    arrays = [
        kind.stored(np.asarray(rng.uniform(-1, 1, arg["array"]))) for kind, arg in zip(kinds, stated, strict=True)
    ]
    left = iter(arrays)
    args = [next(left) if isinstance(arg, dict) else arg for arg in known["args"]]
    wanted = REFERENCES[known["computes"]]([kind.widen(array) for kind, array in zip(kinds, arrays, strict=True)])
    cells = {"launch": "refused", "hazards": "", "explain": "refused"}
    try:
        done = gemmlab.launch(
            path, known["kernel"], tuple(known["grid"]), known["threads"], args, device=DEVICE,
            smem_bytes=known["smem_bytes"],
        )  # fmt: skip
        found = kinds[-1].widen([out for out in done.outputs if isinstance(out, np.ndarray)][-1])
        narrow = "*fp16" if path.stem.endswith("tf32") else types[-1]
        right = np.abs(found - wanted).max() <= TOLERANCE[narrow] * np.abs(wanted).max()
        hazards = ", ".join(dict.fromkeys(hazard.kind for hazard in done.hazards or ()))
        cells |= {"launch": "right" if right else "wrong", "hazards": hazards or "none"}
        cells["explain"] = "yes, with lines" if re.search(r"\.(?:py|cuh?|h(?:pp)?):\d", str(done.explain())) else "yes"
    except (gemmlab.GemmlabError, MemoryError) as error:
        sys.stderr.write(f"{path.stem}: {type(error).__name__}: {error}\n")
    ran = subprocess.run([sys.executable, "-m", "gemmlab", "check", path, "--json"], capture_output=True, check=False)
    cells["check"] = {0: "right", 1: "wrong"}.get(ran.returncode, "refused")
    if ran.returncode < 2 and (opcodes := {one for answer in json.loads(ran.stdout) for one in answer["asynchronous"]}):
        cells["check"] += f", without {', '.join(sorted(opcodes))}"
    name = path.stem.partition("_")[2]
    return known["compiler"], f"`{name}`", cells["launch"], cells["hazards"], cells["check"], cells["explain"]


def _softmax(x: Values, _: Values) -> Values:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    result: Values = powers / powers.sum(axis=1, keepdims=True)
    return result


def _layer_norm(x: Values, _: Values) -> Values:
    centred = x - x.mean(axis=1, keepdims=True)
    result: Values = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return result


REFERENCES: Mapping[str, Callable[[list[Values]], Values]] = {
    "x + y": lambda arrays: arrays[0] + arrays[1],
    "saxpy": lambda arrays: 2 * arrays[0] + arrays[1],
    "softmax": lambda arrays: _softmax(*arrays),
    "layer norm": lambda arrays: _layer_norm(*arrays),
    "product": lambda arrays: arrays[0] @ arrays[1],
    "column sums": lambda arrays: arrays[0].sum(axis=0),
}


if __name__ == "__main__":
    main()
