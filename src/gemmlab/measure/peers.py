"""What can be compared: contestants as text, the peers installed here, and the environment each worker gets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gemmlab.core.cpu_facts import parse_cpu_list
from gemmlab.core.environment import THREAD_VARIABLES
from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.hardware import cpu_info

GRAMMAR = "openblas[:CORETYPE|:best], numpy[:CORETYPE|:best], mkl, onednn or NAME=/path/to/library"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,31}\Z")
_CORE_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}\Z")
_WHEELS = {"mkl": ("mkl", "libmkl_rt"), "onednn": ("onednn-cpu-gomp", "libdnnl")}
_OUR_ROLES = {"gemmlab": "library call", "kernel": "rung", "probe": "peak"}

_CORE_TYPES = (
    ("Haswell", ("avx2", "fma")),
    ("Zen", ("avx2", "fma")),
    ("SkylakeX", ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
    ("Cooperlake", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16")),
    ("SapphireRapids", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16", "amx_bf16")),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """One contestant."""

    name: str
    """As it was asked for; what tables and records call it."""
    kind: str
    """`"gemmlab"`, `"kernel"`, `"numpy"`, `"openblas"`, `"mkl"`, `"onednn"`, `"library"` or `"probe"`."""
    core_type: str | None = None
    """OpenBLAS core type; `"best"` stands for the fastest one here and `None` for the library's own choice."""
    path: str | None = None
    kernel: str | None = None
    config: Mapping[str, int] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """`"rung"`, `"library call"`, `"peak"`, or `"peer"`: what records keep under `facts["role"]`."""
        return _OUR_ROLES.get(self.kind, "peer")

    def to_json(self) -> dict[str, Any]:
        """What a worker is told."""
        return {**asdict(self), "config": dict(self.config)}


PROBE = Spec("probe", "probe")


def parse_contestant(text: str) -> Spec:
    """A contestant from `gemmlab`, `kernel:ID` or a peer. Raises `UsageError`, `PeerError` (not installed)."""
    head, colon, tail = text.partition(":")
    if "=" in text:
        return _custom(text)
    if text == "gemmlab":
        return Spec(text, "gemmlab")
    if head == "kernel" and colon:
        from gemmlab.kernels.catalog import find_kernel

        return Spec(text, "kernel", kernel=find_kernel(tail).id)
    if head in ("numpy", "openblas") and (not colon or _CORE_TYPE.match(tail)):
        path = find_library("openblas") if head == "openblas" else None
        return Spec(text, head, core_type=tail or None, path=path)
    if text in _WHEELS:
        return Spec(text, text, path=find_library(text))
    raise UsageError(f"no contestant {text!r}; peers are {GRAMMAR}")


def parse_peers(text: str) -> list[Spec]:
    """Comma-separated peers; `installed` stands for those that are, `none` or nothing at all for none."""
    if text == "installed":
        return [parse_contestant(name) for name in installed_peers()]
    if text == "none":
        return []
    specs = [parse_contestant(part.strip()) for part in text.split(",") if part.strip()]
    for spec in specs:
        if spec.role != "peer":
            raise UsageError(f"{spec.name} is not a peer; peers are {GRAMMAR}")
    return specs


def installed_peers() -> list[str]:
    """The peers a bench compares with when none are named."""
    found = [name for name in ("openblas", "mkl", "onednn") if _is_installed(name)]
    return [*("openblas:best" if name == "openblas" else name for name in found), "numpy:best"]


def core_types() -> list[str]:
    """OpenBLAS core types that this processor can execute; none where OpenBLAS knows better by itself."""
    features = cpu_info().features
    return [name for name, needed in _CORE_TYPES if features.issuperset(needed)]


def worker_environment(spec: Spec, threads: int, base: Mapping[str, str]) -> dict[str, str]:
    """`base` without what changes a BLAS, then thread counts and the core type asked for."""
    environment = {name: value for name, value in base.items() if not name.startswith(THREAD_VARIABLES)}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
                 "BLIS_NUM_THREADS"):  # fmt: skip
        environment[name] = str(threads)
    environment |= {"OMP_DYNAMIC": "FALSE", "MKL_DYNAMIC": "FALSE"}
    if spec.kind == "mkl":
        environment |= {"MKL_INTERFACE_LAYER": "LP64", "MKL_THREADING_LAYER": "INTEL"}
    if spec.core_type:
        environment["OPENBLAS_CORETYPE"] = spec.core_type
    return environment


def worker_cpus(threads: int) -> list[int]:
    """The CPUs that every contestant is pinned to: one a core first, then second hardware threads.

    Empty where the system has no affinity. `UsageError` for more threads than CPUs.
    """
    if threads < 1:
        raise UsageError(f"threads = {threads}: at least 1")
    affinity = getattr(os, "sched_getaffinity", None)
    available = sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))
    if threads > len(available):
        raise UsageError(f"threads = {threads}: this process may use {len(available)} CPUs")
    first: list[int] = []
    second: list[int] = []
    seen: set[int] = set()
    for cpu in available:
        (second if cpu in seen else first).append(cpu)
        seen |= _siblings(cpu)
    return (first + second)[:threads] if affinity else []


def find_library(name: str) -> str:
    """Path of the `openblas`, `mkl` or `onednn` library of the installed wheel; `PeerError` says what to install."""
    path = _openblas_path() if name == "openblas" else _wheel_path(*_WHEELS[name])
    if path is None:
        wheel = "scipy-openblas32" if name == "openblas" else _WHEELS[name][0]
        raise PeerError(f"{name} is not installed here: pip install {wheel} (or the extra gemmlab[peers])")
    return path


def _custom(text: str) -> Spec:
    name, _, given = text.partition("=")
    if not _NAME.match(name) or name.lower() in ("installed", "none", *_OUR_ROLES):
        raise UsageError(f"{text!r}: a name of letters and digits before the =, other than {', '.join(_OUR_ROLES)}")
    path = Path(given).expanduser()
    if not path.is_file():
        raise PeerError(f"{name}: no library at {given}")
    return Spec(name, "library", path=str(path.resolve()))


def _is_installed(name: str) -> bool:
    try:
        find_library(name)
    except PeerError:
        return False
    return True


@cache
def _openblas_path() -> str | None:
    try:
        folder = Path(str(import_module("scipy_openblas32").get_lib_dir()))
    except ImportError:
        return None
    found = sorted(path for path in folder.glob("libscipy_openblas*") if path.suffix in (".so", ".dylib"))
    return str(found[0]) if found else None


@cache
def _wheel_path(wheel: str, stem: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        files = distribution(wheel).files or []
    except PackageNotFoundError:
        return None
    names = re.compile(re.escape(stem) + r"(\.so(\.\d+)*|(\.\d+)*\.dylib)\Z")
    found = sorted(str(Path(str(file.locate())).resolve()) for file in files if names.match(file.name))
    return next((path for path in found if Path(path).is_file()), None)


def _siblings(cpu: int) -> frozenset[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return frozenset((cpu,))
    return parse_cpu_list(text) | {cpu}
