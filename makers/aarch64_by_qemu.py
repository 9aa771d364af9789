"""Check a built wheel for 64-bit Arm on another processor: run it in Debian's Python for Arm, under qemu. Times mean
nothing there.

`python makers/aarch64_by_qemu.py WHEEL [FOLDER]` on Debian 12 or later with `qemu-user-static`. The system's own
packages stay as they are: all is unpacked under FOLDER (default: a temporary one), which a second run uses again.
It takes minutes: qemu is some twenty times slower than the processor, and the kernels are compiled under it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = (
    "libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "liblzma5", "libbz2-1.0", "libssl3",
    "libuuid1", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal",
)  # fmt: skip
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
NEEDED = (
    "numpy",
    "llvmlite",
    "typer",
    "rich",
    "altair",
    "vl-convert-python",
    "jinja2",
    "platformdirs",
    "threadpoolctl",
)
LIBRARY = """
import platform
import numpy as np
import gemmlab
assert platform.machine() == "aarch64"
rng = np.random.default_rng(0)
for m, n, k in [(1, 1, 1), (37, 29, 53), (130, 97, 301), (1, 500, 300), (300, 1, 200), (200, 200, 200)]:
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    results = [gemmlab.gemm(a, b, threads=threads) for threads in (1, 2, 3)]
    assert len({result.tobytes() for result in results}) == 1, (m, n, k)
    turned = gemmlab.gemm(a.T.copy(), b.T.copy(), trans_a=True, trans_b=True, alpha=2.0, beta=-1.0, c=results[0].copy())
    for result in (results[0], turned):
        assert np.abs(result - a.astype(float) @ b.astype(float)).max() < 1e-3, (m, n, k)
x = rng.standard_normal(100_000, dtype=np.float32)
assert abs(gemmlab.sum(x) - x.astype(float).sum()) < 1e-2
print("gemmlab.gemm on 1, 2 and 3 threads, and gemmlab.sum: right, and the same bits at any number of threads")
"""


def unpack_python(folder: Path) -> Path:
    """Unpack Debian's Python 3.11 for Arm, with the libraries that it needs, unless that is done; return the root of
    its files.
    """
    root, debs = folder / "root", folder / "debs"
    if (root / "usr/bin/python3.11").exists():
        return root
    for part in ("state/lists/partial", "cache/archives/partial", "debs"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "state/status").touch()
    settings = {
        "APT::Architecture": "arm64", "APT::Architectures::": "arm64", "APT::Sandbox::User": "root",
        "Dir::State": folder / "state", "Dir::State::status": folder / "state/status", "Dir::Cache": folder / "cache",
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *PACKAGES], check=True, cwd=debs)
    for package in sorted(debs.glob("*.deb")):
        subprocess.run(["/usr/bin/dpkg", "-x", package, root], check=True)
    return root


def main() -> None:
    """Unpack Python, install the wheel and its requirements, and run the checks."""
    wheel = Path(sys.argv[1]).resolve()
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="gemmlab-aarch64-")).resolve()
    root, site, own = unpack_python(folder), folder / "site", folder / "gemmlab"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target"]
    if not site.exists():
        tags = [word for platform in PLATFORMS for word in ("--platform", platform)]
        of = ["--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:"]
        subprocess.run([*install, site, *tags, *of, *NEEDED], check=True)
    subprocess.run([*install, own, "--no-deps", "--no-index", wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": f"{own}:{site}", "GEMMLAB_CACHE_DIR": str(folder / "kernels")}
    python: list[str | Path] = ["qemu-aarch64-static", "-L", root, root / "usr/bin/python3.11"]
    for command in (
        ["-c", LIBRARY],
        ["-m", "gemmlab", "check", "naive_ijk", "cache_block"],
        ["-m", "gemmlab", "check", "naive", "--device", "emulated:sm_90", "--sizes", "33x17x9,64"],
    ):
        subprocess.run([*python, *command], check=True, env=environment, cwd=folder)


if __name__ == "__main__":
    main()
