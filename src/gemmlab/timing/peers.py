"""Parse contestants from text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.hardware import cpu_info
from gemmlab.core.precision import AS_FLOAT32, FLOAT32, TF32
from gemmlab.devices.device_name import CPU, DeviceName
from gemmlab.dispatch.precision_rule import REQUESTS
from gemmlab.kernels.by_name import NamedKernel, named_kernel, require_device
from gemmlab.timing.families import family_of
from gemmlab.timing.peer_libraries import find_library, peer_path

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,31}\Z")
_CORE_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}\Z")
REPRODUCIBLE = ":reproducible"
"""The end of the name of gemmlab's own call with `reproducible=True`."""
PACKED = "gemmlab:packed"
"""gemmlab's own call on a CPU whose b was packed before (`gemmlab.pack`)."""
_OUR_ROLES = {"gemmlab": "library call", "kernel": "rung", "probe": "peak"}
_ROLES = {**_OUR_ROLES, "cublaslt": "quoted"}

_CORE_TYPES = (
    ("Haswell", ("avx2", "fma")),
    ("Zen", ("avx2", "fma")),
    ("SkylakeX", ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
    ("Cooperlake", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16")),
    ("SapphireRapids", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16", "amx_bf16")),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """The description of one contestant, from which a worker process builds it."""

    name: str
    """The name in tables and records: a peer as the user wrote it, a kernel as `kernel:ID` or `kernel:ID[BM=64]`."""
    kind: str
    """`"gemmlab"`, `"kernel"`, `"numpy"`, `"openblas"`, `"mkl"`, `"onednn"`, `"cublas"`, `"cublaslt"`, `"torch"`,
    `"cupy"`, `"cub"`, `"library"` or `"probe"`."""
    core_type: str | None = None
    """OpenBLAS core type; `"best"` for the fastest one here; `None` for OpenBLAS's own choice, and without OpenBLAS."""
    path: str | None = None
    """The file of a shared library; `None` for other kinds."""
    kernel: str | None = None
    """The id of a kernel, or the absolute path of the user's file; `None` for other kinds."""
    config: Mapping[str, int] = field(default_factory=dict)
    device: DeviceName = CPU
    """The device that the contestant runs on."""
    mode: str = "warm"
    """State of the caches before a timed call: `"warm"` or `"cold"`."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Facts about a kernel in the user's file that its text does not state (`user_kernel`)."""
    precision: str = FLOAT32
    """The precision to which inputs may be rounded. Results are verified for it, and only speeds of one class of
    precisions are compared (`results.summary.Row.precision`).
    """
    reproducible: bool = False
    """True for gemmlab's own call with `reproducible=True`."""
    packed: bool = False
    """True for gemmlab's own call with a packed b."""
    host: str = ""
    """Contestants with the same host share one process; with an empty host a contestant has a separate process."""

    @property
    def process(self) -> str:
        """The name of the worker process."""
        return self.host or self.name

    @property
    def role(self) -> str:
        """`"rung"`, `"library call"`, `"peak"`, `"peer"` or `"quoted"`, as records store it under `facts["role"]`."""
        return _ROLES.get(self.kind, "peer")

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values, for the worker process."""
        return {**asdict(self), "device": str(self.device), "config": dict(self.config), "flags": dict(self.flags)}


PROBE = Spec("probe", "probe")


def parse_contestant(text: str, device: DeviceName = CPU, mode: str = "warm", op: str = "gemm") -> Spec:
    """Return the contestant that `text` names: `gemmlab`, `gemmlab:PRECISION`, either with `:reproducible` behind it,
    `gemmlab:packed`, `kernel:ID`, or a peer.

    Raises `UsageError` for a contestant that the device does not have, `PeerError` for one that is not installed.
    """
    head, colon, tail = text.partition(":")
    family = family_of(device.family, op)
    if head == "kernel" and colon:
        return kernel_spec(named_kernel(tail), device, mode)
    if head == "gemmlab" and (family.library_call or family.array_call):
        if text == PACKED and op == "gemm" and family.host_threads:
            return Spec(text, "gemmlab", device=device, mode=mode, packed=True)
        request = text.removesuffix(REPRODUCIBLE)
        same = request != text
        if request == "gemmlab":
            return Spec(text, "gemmlab", device=device, mode=mode, reproducible=same)
        if (tail := request.partition(":")[2]) in REQUESTS and op == "gemm":
            return Spec(text, "gemmlab", device=device, mode=mode, precision=REQUESTS[tail][-1], reproducible=same)
    if "=" in text and family.host_threads:
        return _custom(text, mode)
    if head in family.tuned_peers and (not colon or _CORE_TYPE.match(tail)):
        path = find_library("openblas") if head == "openblas" else None
        return Spec(text, head, core_type=tail or None, path=path, mode=mode)
    if head in family.tf32_peers and tail == TF32:
        return Spec(text, head, path=peer_path(head), device=device, mode=mode, precision=TF32)
    if text in (*family.peers, *family.quoted):
        return Spec(text, text, path=peer_path(text), device=device, mode=mode)
    raise UsageError(f"no contestant {text!r} for {op} on {device}; peers are {family.peer_grammar}")


def kernel_spec(named: NamedKernel, device: DeviceName = CPU, mode: str = "warm") -> Spec:
    """Return a kernel of the catalog or of the user's own file as a contestant.

    Raises `UsageError` if the kernel does not run on the device.
    """
    kernel = require_device(named.kernel, device)
    return Spec(
        f"kernel:{kernel.id}", "kernel", kernel=named.origin, device=device, mode=mode, flags=dict(named.flags),
        precision=kernel.precision,
    )  # fmt: skip


def parse_peers(
    text: str, device: DeviceName = CPU, mode: str = "warm", op: str = "gemm", precisions: Collection[str] = (FLOAT32,)
) -> list[Spec]:
    """Return the peers in a comma-separated text. `none` and the empty text mean none, `installed` means
    `installed_peers`. Raises as `parse_contestant` does, and `UsageError` for a contestant that is no peer.
    """
    if text == "none":
        return []
    names = list[str]()
    for part in text.split(","):
        found = installed_peers(device, op, precisions) if part.strip() == "installed" else [part.strip()]
        names += [name for name in found if name and name not in names]
    specs = [parse_contestant(name, device, mode, op) for name in names]
    for spec in specs:
        if spec.role not in ("peer", "quoted"):
            raise UsageError(f"{spec.name} is not a peer; peers are {family_of(device.family, op).peer_grammar}")
    return specs


def installed_peers(
    device: DeviceName = CPU, op: str = "gemm", precisions: Collection[str] = (FLOAT32,)
) -> list[str]:  # fmt: skip
    """Return the names of the installed peers: as they are if `precisions` has one that is compared as float32, and
    with `:tf32` if it has TF32. They are the default of a bench.

    Peers with core types use the fastest one (`:best`).
    """
    family = family_of(device.family, op)
    found = [name for name in family.peers if _is_installed(name)]
    plain = [f"{name}:best" if name in family.tuned_peers else name for name in found]
    rounding = [f"{name}:{TF32}" for name in found if name in family.tf32_peers]
    as_float32 = any(precision in AS_FLOAT32 for precision in precisions)
    return [*(plain if as_float32 else ()), *(rounding if TF32 in precisions else ())]


def core_types() -> list[str]:
    """Return the OpenBLAS core types that this processor can execute; empty outside x86, where none are listed."""
    features = cpu_info().features
    return [name for name, needed in _CORE_TYPES if features.issuperset(needed)]


def _custom(text: str, mode: str) -> Spec:
    name, _, place = text.partition("=")
    if not _NAME.match(name) or name.lower() in ("installed", "none", *_OUR_ROLES):
        raise UsageError(f"{text!r}: a name of letters and digits before the =, other than {', '.join(_OUR_ROLES)}")
    try:
        path = Path(place).expanduser()
    except RuntimeError:
        # `~name` of an unknown user: take the text as it is.
        path = Path(place)
    if not path.is_file():
        raise PeerError(f"{name}: no library at {place}")
    return Spec(name, "library", path=str(path.resolve()), mode=mode)


def _is_installed(name: str) -> bool:
    if name == "numpy":
        return True
    try:
        peer_path(name)
    except PeerError:
        return False
    return True
