"""What the emulator counted of a rung, and the least time each unit of an SM needs for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blocks.records import with_defaults
from gemmlab.core.gpu import WARP, limits
from gemmlab.core.records import Record, Result

SHARED = ("shared_load", "shared_store", "shared_atomic", "async_copy")
GLOBAL = ("global_load", "global_store", "async_copy", "texture_load")
ISSUE, FMA, L1 = "issue slots", "FMA pipes", "L1 and shared memory"


@dataclass(frozen=True, slots=True)
class Counted:
    """One kernel on one problem; `facts` are those of `Counters.facts`."""

    kernel: str
    size: str
    config: Mapping[str, int]
    fmas: int
    """Multiply-adds of the problem, MNK."""
    k: int
    outputs: int
    """MN."""
    facts: Mapping[str, float]
    opcodes: Mapping[str, int]
    metrics: Mapping[str, float]
    """Totals by Nsight Compute's names."""
    arch: str
    right: bool
    compiler: str
    code: str
    """Digest."""
    resources: Mapping[str, int]
    """Registers, shared memory and the like, as the compiler reported them."""

    def total(self, figure: str, kinds: tuple[str, ...]) -> float:
        """`"wavefronts"` over some kinds of access."""
        return sum(self.facts.get(f"{kind}_{figure}", 0.0) for kind in kinds)

    def per_1000(self, count: float) -> float:
        """A count for 1000 multiply-adds."""
        return 1000 * count / self.fmas

    @property
    def wavefronts(self) -> float:
        """Of shared memory."""
        return self.total("wavefronts", SHARED)

    @property
    def excess(self) -> float:
        """Wavefronts that bank conflicts add."""
        return self.total("excess", SHARED)

    @property
    def requests(self) -> float:
        """Of global memory, by warps."""
        return self.total("requests", GLOBAL)

    @property
    def read_bytes(self) -> float:
        """Asked of global memory, in whole sectors."""
        return 32 * self.total("sectors", ("global_load", "async_copy", "texture_load"))

    @property
    def written_bytes(self) -> float:
        return 32 * self.total("sectors", ("global_store",))

    @property
    def fma_share(self) -> float:
        return self.opcodes.get("FFMA", 0) / self.facts["instructions"]

    def demand(self) -> dict[str, float]:
        """Cycles an SM needs at least for 1000 multiply-adds, by the unit that needs them.

        Each of the four schedulers issues one warp instruction a cycle. Shared memory and L1 are one data path of 128
        bytes a cycle: a wavefront takes one, a request of global memory one, and one for each four sectors.
        """
        chip = limits(self.arch)
        global_cycles = sum(
            max(self.facts.get(f"{kind}_requests", 0.0), self.facts.get(f"{kind}_sectors", 0.0) / 4) for kind in GLOBAL
        )
        return {
            FMA: self.per_1000(WARP * self.opcodes.get("FFMA", 0) / chip.fma_lanes),
            ISSUE: self.per_1000(self.facts["instructions"] / chip.partitions),
            L1: self.per_1000(self.wavefronts + global_cycles),
        }

    @property
    def bound_by(self) -> str:
        """The unit that needs longest."""
        needs = self.demand()
        return max(needs, key=lambda unit: needs[unit])

    @property
    def peak_share(self) -> float:
        """Of the multiply-add peak that the demands leave within reach."""
        return 1000 / limits(self.arch).fma_lanes / max(self.demand().values())


def counted(record: Record) -> list[Counted]:
    """Every kernel of a counting record of products that ran."""
    return [] if record.op != "gemm" else [_counted(result) for result in record.results if "facts" in result.facts]


def _counted(result: Result) -> Counted:
    known: Mapping[str, Any] = result.facts
    m, n, k = (int(result.problem[name]) for name in "mnk")
    return Counted(
        kernel=known["name"], size=result.label, config=with_defaults(known["name"], known["config"]),
        fmas=m * n * k, k=k, outputs=m * n,
        facts=known["facts"], opcodes=known["opcodes"],
        metrics={name: metric["value"] for name, metric in known["counters"].items()}, arch=known["target"],
        right=result.verified is not False, compiler=known["compiler"], code=known["code_sha256"],
        resources=known["resources"],
    )  # fmt: skip
