"""The settings of measurements for each family of devices: sizes, peers, durations of turns, notes on the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gemmlab.kernels.by_name import NamedKernel
from gemmlab.ops.catalog import all_ops, find_op


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of a turn (a warm-up, then timed calls of one contestant) in microseconds, and a worker's timeout."""

    min_us: float = 3000.0
    """The timed calls of a turn last about this long together, the work beside them (copies) included."""
    warm_us: float = 1000.0
    """The warm-up lasts at least this long, the work beside its calls included; it has at least one call."""
    inner_us: float = 20.0
    """Calls shorter than this are timed several at a time; 0: always one at a time."""
    raw_limit: int = 16
    """Most single times of a turn that a record stores."""
    timeout_s: float = 300.0
    """Seconds after which a worker that has not answered a request is killed."""
    long_us: float = float("inf")
    """Calls at least this long get no warm-up, once an earlier turn has measured them."""
    cell_us: float = float("inf")
    """If one call per round would last longer than this in all, the contestant has turns in only some of the rounds."""


@dataclass(frozen=True, slots=True)
class Family:
    """Settings of one family of devices for one operation."""

    library_call: str
    """gemmlab's own function that computes on these devices for arrays of the host, such as `"gemmlab.gemm"`; empty if
    there is none. `check`, `climb` and `bench` run it.
    """
    timed: bool
    """True if times are meaningful; on emulated devices they are not, and what a kernel does is counted instead."""
    host_threads: bool
    """True if threads of this machine compute, so that workers are pinned to its CPUs."""
    peers: tuple[str, ...]
    """Names of other libraries to compare with, in the order in which they are looked for."""
    peer_grammar: str
    """The names that `--peers` takes, for messages."""
    bench_sizes: str
    """Default sizes of `gemmlab bench`, as text."""
    climb_sizes: str
    profile_sizes: str
    """Default sizes of `gemmlab profile`; empty for CPUs, on which nothing is profiled."""
    array_call: str = ""
    """gemmlab's own function for arrays that are already on these devices, such as `"gemmlab.gemm"`; empty if there is
    none. Only `bench` times it.
    """
    quoted: tuple[str, ...] = ()
    """Libraries that are timed on request and whose times are only quoted: no speed is compared with theirs."""
    tuned_peers: tuple[str, ...] = ()
    """The peers whose speed depends on an OpenBLAS core type, which can be chosen."""
    tf32_peers: tuple[str, ...] = ()
    """The peers that can round their inputs to TF32 on request, as in `cublas:tf32`."""
    timing: Mapping[str, Timing] = field(default_factory=dict)
    """Mode (`"warm"` or `"cold"`) -> durations."""
    method: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Mode -> notes on the method, stored in records."""


_STOPPED = "workers stopped between their turns"
_COPIED = "each contestant has its own copy of the operands on the GPU, times are by events"
_LONG = (
    "calls of 10 ms or more are timed without a warm-up once that is known",
    "a contestant takes fewer turns at a size where they would last more than a second, and at least three",
)
# A GPU needs longer than a processor to reach its clock.
_GPU_TIMING = Timing(min_us=7000.0, warm_us=3000.0, long_us=10_000.0, cell_us=1e6)
FAMILIES: Mapping[str, Family] = MappingProxyType({
    "cpu": Family(
        library_call="gemmlab.gemm",
        timed=True,
        host_threads=True,
        peers=("openblas", "mkl", "onednn", "numpy"),
        peer_grammar="openblas[:CORETYPE|:best], numpy[:CORETYPE|:best], mkl, onednn or NAME=/path/to/library",
        tuned_peers=("openblas", "numpy"),
        bench_sizes="256,512,1024",
        climb_sizes="256,512,1024,2048",
        profile_sizes="",
        # With a flush before every call, batches of calls are impossible.
        timing={"warm": Timing(), "cold": Timing(inner_us=0.0)},
        method={
            "warm": ("operands shared by all contestants, in caches as the last call left them", _STOPPED),
            "cold": (
                "operands shared by all contestants, flushed from every cache before each call",
                "code, workspaces and address translations as the last call left them",
                _STOPPED,
            ),
        },
    ),
    "cuda": Family(
        library_call="",
        timed=True,
        host_threads=False,
        peers=("cublas", "torch", "cupy"),
        peer_grammar="cublas[:tf32], torch[:tf32], cupy, and cublaslt, which is only quoted",
        array_call="gemmlab.gemm",
        quoted=("cublaslt",),
        tf32_peers=("cublas", "torch"),
        bench_sizes="512,1024,2048,4096",
        climb_sizes="512,1024,2048,4096",
        profile_sizes="2048",
        # With a flush before every call, batches of calls are impossible.
        timing={
            "cold": replace(_GPU_TIMING, inner_us=0.0),
            "warm": replace(_GPU_TIMING, inner_us=200.0),
        },
        method={
            "cold": (_COPIED, "the level-2 cache is written over before each call", *_LONG, _STOPPED),
            "warm": (_COPIED, "caches as the last call left them; short calls are replayed as one graph", *_LONG,
                     _STOPPED),
        },
    ),
    "emulated": Family(
        library_call="",
        timed=False,
        host_threads=False,
        peers=(),
        peer_grammar="none",
        bench_sizes="256",
        climb_sizes="256",
        profile_sizes="256",
    ),
})  # fmt: skip


_BATCHES = "512*32,64*128,16*512x64x512"
_GROUPS = "61/17/45/9x512x512:nt,12*37/128/512x37/128/512x64:nt,64*128"
_ALONG_AXES = "4096x4096x1,1x4096x4096,2^20x16x1,1x2^20x16,1x16x2^20,1024x1024x64,64x65536x1"
_SUMS = "2^10,2^14,2^18,2^22,2^26"
OF_OPERATION: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType({
    ("cpu", "reduce"): {
        "library_call": "gemmlab.sum", "peers": ("numpy",), "peer_grammar": "numpy", "tuned_peers": (),
        "bench_sizes": _SUMS, "climb_sizes": _SUMS,
    },
    ("cuda", "reduce"): {
        "array_call": "", "peers": ("torch", "cupy", "cub"), "peer_grammar": "torch, cupy, cub", "tf32_peers": (),
        "quoted": (),
        "bench_sizes": f"{_SUMS},2^28", "climb_sizes": "2^20,2^24,2^28", "profile_sizes": "2^26",
    },
    ("cpu", "batch"): {
        "peers": ("numpy",), "peer_grammar": "numpy", "tuned_peers": (), "bench_sizes": _BATCHES,
        "climb_sizes": _BATCHES,
    },
    ("cuda", "batch"): {
        "tf32_peers": (), "peer_grammar": "cublas, torch, cupy, and cublaslt, which is only quoted",
        "bench_sizes": _BATCHES, "climb_sizes": _BATCHES, "profile_sizes": "64*128",
    },
    ("emulated", "batch"): {"bench_sizes": "4*64", "climb_sizes": "4*64", "profile_sizes": "4*64"},
    ("cpu", "group"): {
        "library_call": "", "array_call": "gemmlab.gemm_group", "peers": ("numpy",), "peer_grammar": "numpy",
        "tuned_peers": (), "bench_sizes": _GROUPS,
    },
    ("cuda", "group"): {
        "array_call": "gemmlab.gemm_group", "peer_grammar": "cublas, torch, cupy", "tf32_peers": (), "quoted": (),
        "bench_sizes": _GROUPS,
    },
    ("cuda", "sums"): {
        "array_call": "gemmlab.sum", "peers": ("torch", "cupy"), "peer_grammar": "torch, cupy", "tf32_peers": (),
        "quoted": (), "bench_sizes": _ALONG_AXES, "climb_sizes": "4096x4096x1,1x4096x4096",
        "profile_sizes": "4096x4096x1",
    },
    ("cpu", "sums"): {"library_call": "", "peers": (), "peer_grammar": "none", "tuned_peers": ()},
    ("emulated", "sums"): {"bench_sizes": "64x1024x1,1x1024x64,64x16x3", "climb_sizes": "64x1024x1,1x1024x64",
                           "profile_sizes": "64x1024x1"},
    ("emulated", "reduce"): {"bench_sizes": "2^16", "climb_sizes": "2^16", "profile_sizes": "2^16"},
})  # fmt: skip
"""(family, operation) -> the fields of `Family` that differ from those of the matrix product."""


_WITHOUT_LIBRARY: Mapping[str, Any] = MappingProxyType(
    {
        "library_call": "",
        "array_call": "",
        "peers": (),
        "peer_grammar": "none",
        "tuned_peers": (),
        "tf32_peers": (),
        "quoted": (),
    }
)
"""The fields of `Family` for an operation that no function of gemmlab or of other libraries computes."""


def family_of(family: str, op: str = "gemm") -> Family:
    """Return the settings for operation `op` on family `"cpu"`, `"cuda"` or `"emulated"`.

    An operation that states its own usual sizes has no libraries to compare with.
    """
    usual, settings = find_op(op).usual_sizes, FAMILIES[family]
    if usual:
        sizes = usual["bench" if settings.timed else "count"]
        profiled = sizes if settings.profile_sizes else ""
        return replace(
            settings, **_WITHOUT_LIBRARY, bench_sizes=sizes, climb_sizes=sizes, profile_sizes=profiled
        )  # fmt: skip
    return replace(settings, **OF_OPERATION.get((family, op), {}))


def library_operation(name: str) -> str:
    """Return the operation that gemmlab's function `name` computes on a CPU; empty for other names.

    `"gemmlab.gemm"` gives `"gemm"`, and `"gemmlab.sum"` gives `"reduce"`.
    """
    return next((op.name for op in all_ops() if name == family_of("cpu", op.name).library_call), "")


def operation_of(names: Sequence[str], kernels: Mapping[str, NamedKernel], request: str = "") -> str:
    """Return the operation `request`, or if it is empty that of the first kernel or library function in `names`.

    Without both it is `"gemm"`. If the first kernel computes `request` on other types (`request:TYPES`), the name with
    the types is returned.
    """
    named = (library_operation(names[0]) or kernels[names[0]].kernel.op) if names else request or "gemm"
    return request if request and named.partition(":")[0] != request else named
