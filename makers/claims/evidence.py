"""Questions of claims to the records. A missing figure raises `Missing`, which names the record that would have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from blocks import records
from blocks.counted import Counted, counted
from blocks.gpu_code import SWEEP, swept
from blocks.profiles import PROFILES, Profile, profiles
from blocks.records import load, load_json, matching
from blocks.source_test import RECORD as SOURCE_TEST
from blocks.source_test import Tested, tested
from blocks.speeds import VENDOR, Speed, Speeds, square
from blocks.tensor_code import RECORD as TENSOR_CODE
from blocks.tensor_code import TIMED as STAGED
from blocks.tensor_code import TIMES as STAGE_TIMES
from blocks.tensor_code import TOP, Shapes, Stages, shapes, stages
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import TF32
from gemmlab.core.program import Config
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.results.climb_rows import ClimbRow, climb_rows, short_size

TIMED = ("h200/gemm.json", "h200/configs*.json", "h200/claims*.json", "h200/reduce*.json")
"""Records of times; the first one that has all contestants of a question is used."""
COUNTS, CONFIG_COUNTS, CPU = "emulated/counters.json", "emulated/configs.json", f"{records.CPU}/climb.json"
Row = TypeVar("Row")
Timed = tuple[str, Config]
"""A kernel in a configuration, or a peer."""
DEFAULT: Config = {}
"""A kernel's default configuration."""


class Missing(Exception):  # noqa: N818 - no error: it is what an open claim waits for
    """A figure that no record has yet."""

    def __init__(
        self, what: str, count: tuple[str, Config] | None = None, times: Sequence[tuple[str, Sequence[Timed]]] = ()
    ) -> None:
        super().__init__(what)
        self.count = count
        """The kernel and configuration whose counts are missing; `None` if no counts are."""
        self.times = tuple(times)
        """The missing times: pairs of a problem's label and the contestants to time in one run."""


class Evidence:
    """Answers from the records; `used` has the names of the records that answered."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def times(self, size: int | str, *wanted: Timed) -> list[Speed]:
        """Return the speeds of kernels in configurations, or of peers, all from one record, because only times of one
        record can be compared. Raises `Missing`, also for a wrong result.

        `size` is that of a square product, or a problem's label.
        """
        label = square(size) if isinstance(size, int) else size
        for name in (name for pattern in TIMED for name in matching(pattern)):
            record = load(name)
            if record is None:
                continue
            speeds = _speeds(record)
            found = [_speed(speeds, who, label, config) for who, config in wanted]
            right = [speed for speed in found if speed is not None and speed.right]
            if len(right) == len(wanted):
                self.used.append(name)
                return right
        which = " and ".join(f"`{who}`{_said(config)}" for who, config in wanted)
        what = f"times of {which} at {short_size(label)} in one record ({' or '.join(TIMED)})"
        raise Missing(what, times=[(label, wanted)])

    def ratio(
        self, size: int | str, one: str, other: str, config: Config = DEFAULT, against: Config = DEFAULT
    ) -> float:
        """Return the ratio of one kernel's or peer's speed to another's; above 1, the first is faster. `config` is that
        of the first, `against` that of the second.
        """
        first, second = self.times(size, (one, config), (other, against))
        return first.to(second).value

    def peak_share(self, n: int, kernel: str, config: Config = DEFAULT) -> float:
        """Return a kernel's speed relative to the multiply-add peak that was measured in turns with it."""
        (speed,) = self.times(n, (kernel, config))
        record = load(self.used[-1])
        peak = None if record is None else _speeds(record).peak_tflops(square(n))
        if peak is None:
            raise Missing(f"the peak beside {n}³ in {self.used[-1]}")
        return speed.tflops / peak

    def count(self, kernel: str, config: Config = DEFAULT) -> Counted:
        """Return the emulator's counts of a kernel in a configuration."""
        whole = _whole(kernel, config)
        for name in (COUNTS, CONFIG_COUNTS):
            record = load(name)
            for item in [] if record is None else counted(record):
                if item.kernel == kernel and item.config == whole and item.right:
                    self.used.append(name)
                    return item
        raise Missing(f"counts of `{kernel}`{_said(config)} ({CONFIG_COUNTS})", (kernel, config))

    def facts(self, record: str, kernel: str, config: Config = DEFAULT) -> Mapping[str, float]:
        """Return the `Counters.facts` of a kernel of any operation from the counting record `record`."""
        whole, found = _whole(kernel, config), load(record)
        for result in () if found is None else found.results:
            known = result.facts
            same = known.get("name") == kernel and _whole(kernel, known.get("config", {})) == whole
            if same and result.verified and "facts" in known:
                self.used.append(record)
                counted_facts: Mapping[str, float] = known["facts"]
                return counted_facts
        raise Missing(f"counts of `{kernel}`{_said(config)} ({record})")

    def swept(self, kernel: str, arch: str, config: Config = DEFAULT) -> Mapping[str, Any]:
        """Return the compile sweep's figures of a configuration, by the names in `precompile.sweep.FIGURES`."""
        row = swept(kernel, arch, _whole(kernel, config))
        if row is None:
            raise Missing(f"`{kernel}`{_said(config)} for {arch} in {SWEEP}")
        self.used.append(SWEEP)
        return row.figures

    def stages(self, arch: str, count: int, modulo: int) -> Stages:
        """Return the integer instructions of `wmma_tf32_pipelined` with `count` stages."""
        found = (row for row in stages() if (row.arch, row.stages, row.modulo) == (arch, count, modulo))
        return self._first(found, TENSOR_CODE, f"{count} stages for {arch}")

    def staged(self, count: int, modulo: int) -> Speed:
        """Return the speed of `wmma_tf32_pipelined` with `count` stages at `TOP`."""
        record = load(STAGE_TIMES)
        config = {"STAGES": count, "MODULO": modulo}
        speed = None if record is None else Speeds(record, TF32).find(STAGED, square(TOP), config)
        if speed is None or not speed.right:
            raise Missing(f"times of `{STAGED}`{_said(config)} at {TOP}³ in {STAGE_TIMES}")
        self.used.append(STAGE_TIMES)
        return speed

    def shapes(self, kernel: str, arch: str) -> Shapes:
        """Return the matrix instructions and loads of a rung's main loop."""
        found = (row for row in shapes() if (row.kernel, row.arch) == (kernel, arch))
        return self._first(found, TENSOR_CODE, f"`{kernel}` for {arch}")

    def source_test(self, n: int, data: str, way: str) -> Tested:
        """Return the outcome of the sources' own test for one way to compute, at one size, with one kind of data."""
        found = (row for row in tested() if (row.n, row.data, row.way) == (n, data, way))
        return self._first(found, SOURCE_TEST, f"{way} at {n} on numbers from {data}")

    def small_run(self, record: str, schema: str, maker: str) -> Mapping[str, Any]:
        """Return a record that the script `maker` makes on a GPU for one claim."""
        found = load_json(record, schema)
        if found is None:
            raise Missing(f"{record}, not measured yet: `python makers/{maker}`")
        self.used.append(record)
        return found

    def _first(self, rows: Iterator[Row], record: str, what: str) -> Row:
        row = next(rows, None)
        if row is None:
            raise Missing(f"{what} in {record}")
        self.used.append(record)
        return row

    def profile(self, n: int, kernel: str) -> Profile:
        """Return the profile of a kernel at n x n x n under Nsight Compute."""
        for one in profiles():
            if one.name == kernel and one.size == square(n):
                self.used.append(PROFILES)
                return one
        raise Missing(f"a profile of `{kernel}` at {n}³ in {PROFILES}")

    def rungs_profiled(self) -> list[Profile]:
        """Return the profiles of all rungs, at every profiled size."""
        found = [one for one in profiles() if not one.is_library]
        if not found:
            raise Missing(f"profiles of rungs in {PROFILES}")
        self.used.append(PROFILES)
        return found

    def profiled(self, n: int, kernel: str, metric: str) -> float:
        """Return one metric of a kernel's profile."""
        metrics = self.profile(n, kernel).metrics
        if metric not in metrics:
            raise Missing(f"{metric} of `{kernel}` at {n}³ in {PROFILES}")
        return metrics[metric]

    def cpu_ratio(self, record: str, n: int, one: str, other: str) -> float:
        """Return the ratio of one contestant's speed to another's at n x n x n in a CPU's record; `one` and `other` are
        their names there.
        """
        speeds = self._of_source_tables(record)
        first, second = (speeds.at(name, square(n)) for name in (one, other))
        if first is None or second is None or not (first.right and second.right):
            raise Missing(f"times of `{one}` and `{other}` at {n}³ in {record}")
        return first.to(second).value

    def cpu_share(self, record: str, n: int, name: str) -> float:
        """Return a contestant's speed relative to the multiply-add peak of the widest vectors, measured in turns with
        it.
        """
        speeds = self._of_source_tables(record)
        speed, peak = speeds.at(name, square(n)), speeds.peak_tflops(square(n))
        if speed is None or peak is None or not speed.right:
            raise Missing(f"times of `{name}` and the peak at {n}³ in {record}")
        return speed.tflops / peak

    def _of_source_tables(self, record: str) -> Speeds:
        found = load(record)
        if found is None:
            raise Missing(f"{record}, not measured yet: `make source-tables`")
        self.used.append(record)
        return _speeds(found)

    def cpu(self, kernel: str) -> ClimbRow:
        """Return the row of a CPU rung in the recorded climb."""
        record = load(CPU)
        row = next((row for row in climb_rows(record) if row.name == kernel), None) if record else None
        if row is None:
            raise Missing(f"`{kernel}` in {CPU}")
        self.used.append(CPU)
        return row


_SPEEDS: dict[int, tuple[Record, Speeds]] = {}


def _speeds(record: Record) -> Speeds:
    """Return the speeds of a record, computed once for each record, because many claims use them."""
    if id(record) not in _SPEEDS:
        _SPEEDS[id(record)] = record, Speeds(record)  # the record too, or another one could get its id
    return _SPEEDS[id(record)][1]


def _whole(kernel: str, config: Config) -> dict[str, int]:
    try:
        return {**find_kernel(kernel).params, **config}
    except UsageError as error:
        raise Missing(f"the rung `{kernel}`") from error


def _speed(speeds: Speeds, who: str, label: str, config: Config) -> Speed | None:
    if who in speeds.peers:
        return speeds.at(who, label)
    return None if who == VENDOR else speeds.find(who, label, _whole(who, config))


def _said(config: Config) -> str:
    return "" if not config else " with " + ", ".join(f"{name} {value}" for name, value in config.items())
