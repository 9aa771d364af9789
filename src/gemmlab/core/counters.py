"""Counts of what a kernel executed: plain values that any device may produce.

Names are Nsight Compute's where it has one. Its source metrics of shared memory and of global sectors count what an
instruction requests; its hardware counters with similar names also include arbitration, which addresses do not show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gemmlab.core.hazard import Hazard
from gemmlab.core.notebook_view import Display, View, grid

EXACT = "exact"
APPROXIMATE = "approximate"

SHARED_LOAD = "shared load"
SHARED_STORE = "shared store"
SHARED_ATOMIC = "shared atomic"
GLOBAL_LOAD = "global load"
GLOBAL_STORE = "global store"
GLOBAL_ATOMIC = "global atomic"
LOCAL_LOAD = "local load"
LOCAL_STORE = "local store"
ASYNC_COPY = "async copy"
"""A copy from global to shared memory without registers (LDGSTS): sectors count the read, wavefronts the write."""
MATRIX_OPERANDS = "matrix operands"
"""Matrices in shared memory that a warpgroup multiplication reads by their descriptors."""
CONSTANT_LOAD = "constant load"
TEXTURE_LOAD = "texture load"
BARRIER = "barrier"
SHARED_KINDS = (SHARED_LOAD, SHARED_STORE, SHARED_ATOMIC, ASYNC_COPY)
GLOBAL_KINDS = (GLOBAL_LOAD, GLOBAL_STORE, GLOBAL_ATOMIC, ASYNC_COPY)
THREADS_ON, THREADS_ON_BY_SITE = "smsp__thread_inst_executed_pred_on.sum", "thread_inst_executed_true"
WAITS_REPEATED = "mbarrier_waits_repeated.sum"
"""Name of the number of executions that only repeated a wait for an mbarrier; no other count includes them."""
EXTRA = (THREADS_ON, THREADS_ON_BY_SITE, WAITS_REPEATED)
"""Names of totals that are no sums over instructions, and that the emulator always has in `Counters.extra`."""


@dataclass(frozen=True, slots=True)
class SiteCounters:
    """Counts of one machine instruction (a site) over a whole launch.

    `executed` counts executions by warps, `active_threads` and `predicated_on_threads` those by threads.
    """

    address: int
    """Offset in bytes from the kernel's first instruction."""
    opcode: str
    """The opcode with its modifiers, `"LDG.E.128"`."""
    text: str = ""
    """The whole instruction as the disassembler prints it."""
    file: str = ""
    line: int = 0
    """Source line; 0 if the code has no line information."""
    executed: int = 0
    """Executions by warps, those with all lanes predicated off included."""
    active_threads: int = 0
    predicated_on_threads: int = 0
    kind: str = ""
    """`"shared load"`, `"global store"`, `"async copy"`, `"barrier"`, ...; empty for all other instructions."""
    requests: int = 0
    """Requests to memory: one for each execution with a lane predicated on. A generic load or store makes one for each
    memory that it reaches, a texture fetch one for each texture. 0 for constant loads, matrix operands and all
    instructions that access no memory.
    """
    sectors: int = 0
    """Sectors of 32 bytes requested in global or local memory."""
    sectors_distinct: int = 0
    """Sectors that no earlier access of the same wave (blocks resident together) requested, summed over the waves."""
    wavefronts: int = 0
    wavefronts_ideal: int = 0
    """The wavefronts of shared memory that the same accesses would need without bank conflicts."""
    bank_conflicts: int = 0
    """Bank conflicts in wavefronts, as the GPU's hardware counter has them when no other access competes."""
    page_wavefronts: int = 0
    page_wavefronts_ideal: int = 0
    page_sectors: int = 0
    """The three fields `page_...` are used for asynchronous copies only: Nsight Compute's source page shows them in
    place of `wavefronts`, `wavefronts_ideal` and `sectors`. They follow a separate rule (see `emulator.copy_counts`).
    """
    pattern: tuple[int | None, ...] = field(default=(), compare=False, repr=False)
    """For a shared load or store: byte address of each lane minus that of the first active lane, in the most recent
    access; `None` for an inactive lane. Empty if unknown, and for other kinds.
    """

    @property
    def wavefronts_excessive(self) -> int:
        """Wavefronts added by bank conflicts: `wavefronts` minus `wavefronts_ideal`."""
        return self.wavefronts - self.wavefronts_ideal

    def on_page(self, name: str) -> int:
        """Return the count in field `name` as Nsight Compute's source page shows it: `page_...` for async copies."""
        return int(getattr(self, f"page_{name}" if self.kind == ASYNC_COPY and name in _ON_PAGE else name))

    @property
    def base_opcode(self) -> str:
        """The opcode without modifiers, `"LDG"`."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Metric:
    """One total of a launch, and whether it is exact."""

    value: float
    confidence: str = EXACT
    """`"exact"` or `"approximate"`."""
    why: str = ""
    """The reason why `value` is not exact; empty if it is."""


@dataclass(frozen=True, slots=True, repr=False)
class Counters(Display):
    """Everything counted in one launch, or in the launches that make one execution."""

    kernel: str
    """Name of the machine function."""
    origin: str
    """The device or tool that counted: `"emulated:sm_90"`, `"ncu"` (Nsight Compute)."""
    sites: tuple[SiteCounters, ...]
    """Counts by instruction, in address order."""
    extra: Mapping[str, Metric] = field(default_factory=dict)
    """Totals that are not sums over sites, by Nsight Compute's names where it has one."""

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names that `totals` and `facts` always have, and those in `EXTRA`."""
        nothing = Counters("", "", ())
        return (*nothing.totals(), *nothing.facts(), *EXTRA)

    def of_kind(self, *kinds: str) -> tuple[SiteCounters, ...]:
        """Return the sites whose kind is among `kinds`."""
        return tuple(site for site in self.sites if site.kind in kinds)

    def executed(self, opcode: str) -> int:
        """Return the executions of an opcode by warps. `"LDS"` counts every form, `"LDS.128"` only those with `128`.

        Modifiers match in any order, with others between them.
        """
        base, *modifiers = opcode.split(".")
        return sum(
            site.executed
            for site in self.sites
            if site.base_opcode == base and set(modifiers) <= set(site.opcode.split(".")[1:])
        )

    def opcodes(self) -> dict[str, int]:
        """Return the executions by warps of each base opcode, the most frequent first."""
        counted: Counter[str] = Counter()
        for site in self.sites:
            counted[site.base_opcode] += site.executed
        return dict(counted.most_common())

    def _line(self) -> str:
        executed = sum(site.executed for site in self.sites)
        return f"{self.kernel} on {self.origin}: {executed:,} instructions by warps, at {len(self.sites)} places"

    def _view(self) -> View:
        totals = ((name, one.value, one.why) for name, one in self.totals().items() if one.value)
        return View(self._line(), grids=(grid(("total", "value", ""), totals, texts=(0, 2)),))

    def totals(self) -> dict[str, Metric]:
        """Return sums over the sites by Nsight Compute's names, and `extra`, which replaces sums of the same name.

        Totals of texture accesses are approximate.
        """
        sums = {
            "smsp__inst_executed.sum": _sum(self.sites, "executed"),
            "smsp__thread_inst_executed.sum": _sum(self.sites, "active_threads"),
            THREADS_ON: _sum(self.sites, "predicated_on_threads"),
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": sum(
                site.predicated_on_threads for site in self.sites if site.base_opcode == "FFMA"
            ),
            "memory_l1_wavefronts_shared": _on_page(self.of_kind(*SHARED_KINDS, MATRIX_OPERANDS), "wavefronts"),
            "memory_l1_wavefronts_shared_ideal": _on_page(
                self.of_kind(*SHARED_KINDS, MATRIX_OPERANDS), "wavefronts_ideal"
            ),
            "memory_l2_theoretical_sectors_global": _on_page(self.of_kind(*GLOBAL_KINDS), "sectors"),
            "memory_l2_theoretical_sectors_local": _sum(self.of_kind(LOCAL_LOAD, LOCAL_STORE), "sectors"),
        }
        for name, kind in _CONFLICTS.items():
            sums[name] = _sum(self.of_kind(kind), "bank_conflicts")
        for name, kind in _REQUESTS.items():
            sums[name] = _sum(self.of_kind(kind), "requests")
        for name, kind in _SECTORS.items():
            sums[name] = _sum(self.of_kind(kind), "sectors")
        textures = {name: Metric(_sum(self.of_kind(TEXTURE_LOAD), what), APPROXIMATE, _UNCOMPARED)
                    for name, what in _TEXTURE.items()}  # fmt: skip
        return {name: Metric(value) for name, value in sums.items()} | textures | dict(self.extra)

    def facts(self) -> Mapping[str, float]:
        """Return counts by short names for expectations such as `shared_load_excess == 0`.

        `KIND_requests`, `KIND_sectors`, `KIND_sectors_distinct`, `KIND_sectors_per_request`, `KIND_wavefronts`,
        `KIND_wavefronts_ideal` and `KIND_excess` for every kind of memory access but matrix operands (`shared_load`,
        `global_store`, ...), then `instructions`, `threads_per_instruction` (predicated on, at most 32) and `barriers`.
        Instructions and barriers count executions by warps. A kind of access that does not occur has zeros.
        """
        found: dict[str, float] = {}
        for kind in _MEMORY_KINDS:
            sites, name = self.of_kind(kind), kind.replace(" ", "_")
            requests, sectors = _sum(sites, "requests"), _sum(sites, "sectors")
            found[f"{name}_requests"] = requests
            found[f"{name}_sectors"] = sectors
            found[f"{name}_sectors_distinct"] = _sum(sites, "sectors_distinct")
            found[f"{name}_sectors_per_request"] = sectors / requests if requests else 0.0
            found[f"{name}_wavefronts"] = _sum(sites, "wavefronts")
            found[f"{name}_wavefronts_ideal"] = _sum(sites, "wavefronts_ideal")
            found[f"{name}_excess"] = _sum(sites, "wavefronts_excessive")
        instructions = _sum(self.sites, "executed")
        found["instructions"] = instructions
        threads = _sum(self.sites, "predicated_on_threads")
        found["threads_per_instruction"] = threads / instructions if instructions else 0.0
        found["barriers"] = _sum(self.of_kind(BARRIER), "executed")
        return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class Observation:
    """The counters and hazards of one launch, or of several merged ones, on a device that counts."""

    counters: Counters
    hazards: tuple[Hazard, ...] = ()
    stopped: bool = False
    """True if a hazard ended a launch early or prevented it: memory that it had not written yet is unchanged."""
    printed: str = ""
    """The text that the kernel printed."""


def merge(observations: Sequence[Observation]) -> Observation:
    """Merge the observations of the launches that make one execution: add up sites of the same kernel and address.

    If the launches ran different functions, their names are joined with ` + ` and their sites concatenated. In `extra`
    the metrics that every launch has are added up, the others left out. Raises `ValueError` for no observations.
    """
    if not observations:
        raise ValueError("nothing was observed")
    sites: dict[tuple[str, int], SiteCounters] = {}
    for observation in observations:
        for site in observation.counters.sites:
            key = observation.counters.kernel, site.address
            sites[key] = _add(sites[key], site) if key in sites else site
    all_counters = [observation.counters for observation in observations]
    common = set.intersection(*(set(counters.extra) for counters in all_counters))
    extra = {
        name: replace(metric, value=sum(counters.extra[name].value for counters in all_counters))
        for name, metric in all_counters[0].extra.items()
        if name in common
    }
    names = dict.fromkeys(counters.kernel for counters in all_counters)
    counters = Counters(" + ".join(names), all_counters[0].origin, tuple(sites.values()), extra)
    hazards = tuple(hazard for observation in observations for hazard in observation.hazards)
    printed = "".join(observation.printed for observation in observations)
    return Observation(counters, hazards, any(observation.stopped for observation in observations), printed)


_MEMORY_KINDS = (
    SHARED_LOAD, SHARED_STORE, SHARED_ATOMIC, GLOBAL_LOAD, GLOBAL_STORE, GLOBAL_ATOMIC, LOCAL_LOAD, LOCAL_STORE,
    ASYNC_COPY, CONSTANT_LOAD, TEXTURE_LOAD,
)  # fmt: skip
_CONFLICTS = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": SHARED_LOAD,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": SHARED_STORE,
}
_REQUESTS = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": GLOBAL_LOAD,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": GLOBAL_STORE,
}
_SECTORS = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": GLOBAL_LOAD,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": GLOBAL_STORE,
}
_TEXTURE = {
    "l1tex__t_requests_pipe_tex_mem_texture.sum": "requests",
    "l1tex__t_sectors_pipe_tex_mem_texture.sum": "sectors",
}
_UNCOMPARED = "one request a warp and texture, sectors as of a global load: not compared with a GPU's"
_ON_PAGE = ("wavefronts", "wavefronts_ideal", "sectors")
_ADDED = (
    "executed", "active_threads", "predicated_on_threads", "requests", "sectors", "sectors_distinct", "wavefronts",
    "wavefronts_ideal", "bank_conflicts", "page_wavefronts", "page_wavefronts_ideal", "page_sectors",
)  # fmt: skip


def _sum(sites: Iterable[SiteCounters], name: str) -> int:
    return sum(getattr(site, name) for site in sites)


def _on_page(sites: Iterable[SiteCounters], name: str) -> int:
    return sum(site.on_page(name) for site in sites)


def _add(one: SiteCounters, two: SiteCounters) -> SiteCounters:
    # If an instruction did not run in a launch, that launch does not know which kind of memory it accesses. The result
    # then has the kind that the other launch found.
    if not two.executed:
        return one
    if not one.executed:
        return two
    return replace(one, **{name: getattr(one, name) + getattr(two, name) for name in _ADDED})
