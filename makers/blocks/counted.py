"""The emulator's counts of a rung, and the least time that each unit of an SM needs for it."""

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
    """The counts of one kernel at one problem; `facts` are those of `Counters.facts`."""

    kernel: str
    size: str
    config: Mapping[str, int]
    fmas: int
    """Multiply-adds of the problem, MNK."""
    k: int
    outputs: int
    """Elements of C, MN."""
    facts: Mapping[str, float]
    opcodes: Mapping[str, int]
    metrics: Mapping[str, float]
    """Totals by Nsight Compute's names."""
    arch: str
    right: bool
    compiler: str
    code: str
    """Digest of the machine code."""
    resources: Mapping[str, int]
    """Registers, shared memory and the like, as the compiler reported them."""

    def total(self, figure: str, kinds: tuple[str, ...]) -> float:
        """Return the sum of a figure, such as `"wavefronts"`, over some kinds of access."""
        return sum(self.facts.get(f"{kind}_{figure}", 0.0) for kind in kinds)

    def per_1000(self, count: float) -> float:
        """Return a count divided by the thousands of multiply-adds of the problem."""
        return 1000 * count / self.fmas

    @property
    def wavefronts(self) -> float:
        """Wavefronts of shared memory."""
        return self.total("wavefronts", SHARED)

    @property
    def excess(self) -> float:
        """Wavefronts of shared memory that bank conflicts add."""
        return self.total("excess", SHARED)

    @property
    def requests(self) -> float:
        """Requests of warps to global memory."""
        return self.total("requests", GLOBAL)

    @property
    def read_bytes(self) -> float:
        """Bytes of the sectors that are read from global memory."""
        return 32 * self.total("sectors", ("global_load", "async_copy", "texture_load"))

    @property
    def written_bytes(self) -> float:
        return 32 * self.total("sectors", ("global_store",))

    @property
    def fma_share(self) -> float:
        return self.opcodes.get("FFMA", 0) / self.facts["instructions"]

    def demand(self) -> dict[str, float]:
        """Return the least cycles that an SM needs for 1000 multiply-adds, by the unit that needs them.

        Each scheduler issues one warp instruction a cycle. Shared memory and L1 are one data path of 128 bytes a cycle:
        a wavefront takes one cycle, a request of global memory one for each four sectors, at least one.
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
        """The unit that needs the most cycles."""
        needs = self.demand()
        return max(needs, key=lambda unit: needs[unit])

    @property
    def peak_share(self) -> float:
        """The share of the multiply-add peak that `demand` allows at most."""
        return 1000 / limits(self.arch).fma_lanes / max(self.demand().values())


def counted(record: Record) -> list[Counted]:
    """Return the counts of every kernel that ran in a counting record; none for a record of another operation than
    products.
    """
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
