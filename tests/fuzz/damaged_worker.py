"""A process that launches damaged cubins one after another and says how each ended, so that a crash is seen as one.

One request a line, JSON: `code` (base64), `text` (the disassembly, or null), `kernel`, `device`. One answer a line.
"""

from __future__ import annotations

import base64
import json
import sys
import traceback
from typing import Any

import numpy as np

import gemmlab
from gemmlab.core.errors import GemmlabError
from gemmlab.launching import source
from gemmlab.toolchain import nvdisasm
from gemmlab.toolchain.cubin import CubinFunction, read_cubin


def ended(code: bytes, text: str | None, kernel: str, device: str) -> str:
    """`"ran"`, `"hazard: ..."`, `"error: ..."` with the kind of error, or `"wrong: ..."` for what must never happen."""
    source._disassembled = lambda data, name: nvdisasm.disassemble(data, name) if text is None else text  # type: ignore[assignment]
    try:
        functions = read_cubin(code, "damaged.cubin").functions
        named = functions.get(kernel) or next(iter(functions.values()))
        done = gemmlab.launch(code, named.name, 2, 32, _arguments(named), device=device)
    except (GemmlabError, MemoryError) as error:
        # An error that says nothing is none.
        return f"error: {type(error).__name__}" if str(error) else f"wrong: {error!r} says nothing"
    except Exception:  # noqa: BLE001 - any other one is what is looked for
        return f"wrong: {traceback.format_exc()}"
    return f"hazard: {done.hazards[0].kind}" if done.hazards else "ran"


def _arguments(function: CubinFunction) -> list[Any]:
    made: list[Any] = []
    for number, param in enumerate(function.params):
        if param.size == 8:
            made.append(np.arange(256, dtype=np.float32))
        elif param.size == 4:
            made.append(np.int32(3 + number))
        else:
            made.append(np.void(bytes(param.size)))
    return made


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        answer = ended(base64.b64decode(asked["code"]), asked["text"], asked["kernel"], asked["device"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
