"""Predict every recorded time of an H200 with the performance model, into benchmarks/results/h200/model.json.

    git worktree add --detach FOLDER 8a23a7e0
    python makers/timed_codes.py FOLDER --out codes.npz
    python makers/predict_ladder.py FOLDER --codes codes.npz

FOLDER has the records whose times are judged, and the file has the machine code that was timed. The records of today
have other code: that of the rungs has changed since the configurations were timed.

No constant of the model is fitted to these times. No GPU is needed; it takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from gemmlab.analysis.model.constants import OF_H200
from gemmlab.analysis.model.kernel_study import Load, Study, loads_of, study
from gemmlab.analysis.model.model_record import CONFIGURATION, LADDER, NAME, Case, ModelRecord, save_model
from gemmlab.analysis.model.predict import Model
from gemmlab.core import gpu
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.program import Artifact
from gemmlab.core.records import Result
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from unit_cost.codes import read

ROOT, RESULTS = Path(__file__).parents[1], Path("benchmarks", "results", "h200")
SOURCES = {"gemm.json": LADDER, "climb-cuda.json": LADDER, "reduce.json": LADDER, "configs.json": CONFIGURATION}
ARCH, GPU = "sm_90", gpu.model("H200")


@dataclass(frozen=True, slots=True)
class Sample:
    """A recorded time and the inputs of its prediction."""

    kernel: str
    loads: tuple[Load, ...]
    nbytes: int
    """Least bytes that are moved from and to device memory."""
    measured_us: float


@dataclass(frozen=True, slots=True)
class Timed:
    """A recorded time, ready to be predicted."""

    op: str
    part: str
    result: Result
    sample: Sample

    @property
    def precision(self) -> str:
        return str(self.result.facts.get("precision", FLOAT32))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="checkout with the records")
    parser.add_argument("--codes", type=Path, required=True, help="machine code that was timed")
    asked = parser.parse_args()
    codes = read(asked.codes)
    timed = list(recorded(asked.folder / RESULTS))
    ladder = [item for item in timed if item.part == LADDER]
    names = {item.sample.kernel: item.result.contestant for item in ladder}
    models = {name: Model(studied(name, None, codes.get(contestant)), GPU) for name, contestant in names.items()}
    cases = [case for name in names for case in cases_of(ladder, name, models[name])]
    save(cases)
    cases += configured([item for item in timed if item.part == CONFIGURATION], codes)
    save(cases)
    return 0


def studied(name: str, config: Mapping[str, int] | None, code: Artifact | None) -> Study:
    """Return the study of the code, or of today's code if today's kernel cannot launch that one."""
    kernel = find_kernel(name)
    try:
        return study(kernel, ARCH, config, code=code)
    except UsageError as error:
        print(f"{name}: the code of today, because {error}", file=sys.stderr)
        return study(kernel, ARCH, config)


def save(cases: Sequence[Case]) -> None:
    constants = {name: float(value) for name, value in asdict(OF_H200).items()}
    save_model(ModelRecord(GPU.name, constants, tuple(cases)), ROOT / RESULTS / NAME)


def recorded(folder: Path) -> Iterator[Timed]:
    """Yield the median time of each contestant that is a rung at each size, from the first record in the folder that
    has it. Records of configurations also have the default one, which is left out there.
    """
    seen: set[tuple[str, str]] = set()
    for name, part in SOURCES.items():
        record = read_record(folder / name, notice=False)
        op = find_op(record.op)
        for result in record.results:
            key = result.contestant, result.label
            if result.facts.get("role") != "rung" or not result.samples or key in seen:
                continue
            seen.add(key)
            name_of_kernel = result.contestant.removeprefix("kernel:").partition("[")[0]
            kernel, problem = find_kernel(name_of_kernel), op.problem_from_json(result.problem)
            if part == CONFIGURATION and dict(kernel.params) == dict(result.facts["config"]):
                continue
            loads = tuple(loads_of(kernel, result.facts["config"], problem))
            measured = median(sample.time_us for sample in result.samples)
            yield Timed(op.name, part, result, Sample(kernel.id, loads, op.bytes_moved(problem), measured))


def same(item: Timed, model: Model) -> bool:
    return bool(item.result.facts["code_sha256"] == model.study.digest)


def cases_of(timed: list[Timed], name: str, model: Model) -> Iterator[Case]:
    """Yield the predictions for one kernel in the configuration of `model`."""
    for item in timed:
        if item.sample.kernel != name:
            continue
        found = model.predict(item.sample.loads, item.sample.nbytes)
        yield Case(
            name, item.op, item.result.label, item.precision, dict(item.result.facts["config"]), item.part,
            model.study.digest, same(item, model), rounded(item.sample.measured_us), rounded(found.time_us),
            {term: rounded(us) for term, us in found.terms.items()},
        )  # fmt: skip


def configured(timed: list[Timed], codes: Mapping[str, Artifact]) -> Iterator[Case]:
    """Yield the predictions for configurations other than the default one."""
    groups: dict[str, list[Timed]] = {}
    for item in timed:
        groups.setdefault(item.result.contestant, []).append(item)
    for number, (name, items) in enumerate(groups.items(), 1):
        print(f"{number}/{len(groups)} {name}")
        first = items[0]
        known = Model(studied(first.sample.kernel, first.result.facts["config"], codes.get(name)), GPU)
        yield from cases_of(items, first.sample.kernel, known)


def rounded(us: float) -> float:
    return float(f"{us:.5g}")


if __name__ == "__main__":
    sys.exit(main())
