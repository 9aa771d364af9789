"""Compile the kernels beside this file and keep their disassembly: `python tests/data/sass/make.py`.

One archive a source file holds the text for every architecture, each headed by nvdisasm's own `.target` line.
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path

from gemmlab.core.program import Program
from gemmlab.toolchain.compilation import compile_cubin

HERE = Path(__file__).parent
ALL = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100")
# What differs between 8.0 and 8.9 is in the small files.
FEW = ("sm_75", "sm_80", "sm_90", "sm_100")
EMULATED = ("sm_80", "sm_89", "sm_90")
WANTED = {
    "arithmetic": ("float_basic", FEW), "halves": ("half_pairs", ALL), "control": ("calls", FEW),
    "memory": ("widths", ALL), "warps": ("shuffles", ALL), "tensor": ("wmma_loop", ALL),
    "loops": ("dot", EMULATED), "hopper": ("bulk_copy", ("sm_90a", "sm_100")),
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        headers = str(Path(folder) / "include")
        for name, (entry, architectures) in WANTED.items():
            texts = []
            for target in architectures:
                program = Program(
                    kernel=name, language="cuda", target=target, entry=entry, fingerprint="", path=f"{name}.cu",
                    emit=(HERE / f"{name}.cu").read_text, options=(f"--use-bundled-headers={headers}",),
                )  # fmt: skip
                text = compile_cubin(program).texts["sass"]
                # NVRTC puts its own header into the working directory.
                texts.append(text.replace(headers, "include").replace(str(Path.cwd()), "nvrtc"))
            packed = lzma.compress("".join(texts).encode(), preset=9 | lzma.PRESET_EXTREME)
            (HERE / f"{name}.sass.xz").write_bytes(packed)


if __name__ == "__main__":
    main()
