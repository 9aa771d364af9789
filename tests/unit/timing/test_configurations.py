"""Configurations as contestants: named, spread over the tuning space, in one process, in one table."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record, Result, Sample
from gemmlab.devices.device_name import CPU, DeviceName
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.timing.configurations import config_specs, config_tables, spread
from gemmlab.timing.peers import Spec, kernel_spec

CUDA = DeviceName("cuda", "0")

TUNED = [pytest.param(kernel, id=kernel.id) for kernel in all_kernels() if kernel.tune]


@pytest.mark.parametrize("kernel", TUNED)
def test_a_spread_is_the_same_every_time_and_meets_every_value(kernel: Kernel) -> None:
    everything = list(kernel.configurations())
    eight = spread(kernel, 8)
    assert eight == spread(kernel, 8) == spread(kernel, 20)[: len(eight)]
    assert eight[0] == dict(kernel.params)
    assert len({tuple(config.items()) for config in eight}) == len(eight) == min(8, len(everything))
    assert all(config in everything for config in eight)
    possible = {item for config in everything for item in config.items()}
    # Each configuration brings at least one value that none before it had, while there are such.
    seen = set(eight[0].items())
    for config in eight[1:]:
        assert config.items() - seen or possible == seen
        seen |= config.items()


def test_a_spread_lies_farther_apart_than_the_first_ones_do() -> None:
    kernel = replace(
        find_kernel("naive"), params={"X": 0, "Y": 0}, tune={"X": tuple(range(6)), "Y": tuple(range(6))},
        objection=lambda _config: "",
    )  # fmt: skip

    def nearest(configs: list[dict[str, int]]) -> int:
        return min(abs(a["X"] - b["X"]) + abs(a["Y"] - b["Y"]) for a, b in itertools.combinations(configs, 2))

    assert nearest(spread(kernel, 5)) >= 2
    assert nearest(list(kernel.configurations())[:5]) == 1
    assert spread(kernel, 100) == list(kernel.configurations())[:1] + spread(kernel, 36)[1:]


def test_named_configurations_are_contestants_of_one_process_on_a_gpu() -> None:
    kernels = [named_kernel("vector_load")]
    one, two = config_specs(kernels, CUDA, "cold", [{"BM": 64, "BN": 64}, {"BM": 64}])
    assert (one.name, two.name) == ("kernel:vector_load[BM=64,BN=64]", "kernel:vector_load[BM=64]")
    assert (one.config, one.mode, one.device) == ({"BM": 64, "BN": 64}, "cold", CUDA)
    assert one.process == two.process == "kernel:vector_load"
    here = config_specs([named_kernel("packed")], CPU, "warm", [{"KC": 128}, {"KC": 256}])
    assert len({spec.process for spec in here}) == 2
    assert config_specs(kernels, CUDA, "cold") == [kernel_spec(kernels[0], CUDA, "cold")]


def test_all_or_some_of_every_kernel_named() -> None:
    chosen = [named_kernel("naive"), named_kernel("block_tile")]
    everything = config_specs(chosen, CUDA, "cold", [], "all")
    kernels = [one.kernel for one in chosen]
    assert [spec.config for spec in everything] == [c for kernel in kernels for c in kernel.configurations()]
    assert [spec.config for spec in config_specs(chosen, CUDA, "cold", [], "3")] == [
        c for k in kernels for c in spread(k, 3)
    ]
    assert len({spec.name for spec in everything}) == len(everything)


@pytest.mark.parametrize(
    ("names", "named", "some", "said"),
    [
        ((), [{"BM": 8}], None, "name the kernel"),
        ((), [], "all", "name the kernel"),
        (("naive", "block_tile"), [{"BM": 8}], None, "name the one kernel"),
        (("naive",), [{"BM": 8}], "2", "give one of them"),
        (("naive",), [], "0", "--configs '0': write all, or a number of them"),
        (("naive",), [], "some", "--configs 'some'"),
        (("naive",), [{"QQ": 8}], None, "unknown parameter 'QQ'"),
        (("naive",), [{"BM": 4096}], None, "breaks the kernel's constraints"),
    ],
)
def test_what_cannot_be_asked(names: tuple[str, ...], named: list[dict[str, int]], some: str | None, said: str) -> None:
    kernels = [named_kernel(name) for name in names]
    with pytest.raises(UsageError, match=said):
        config_specs(kernels, CUDA, "cold", named, some)


def timed(name: str, size: str, time_us: float, threads: int = 1) -> Result:
    sample = Sample(0, 0, time_us, 1, 1, (time_us,))
    return Result(name, {}, size, 1000, threads, {"role": Spec(name, "kernel").role}, (sample,))


def test_the_table_has_a_row_a_configuration_and_a_column_a_size() -> None:
    results = (
        timed("kernel:k[BM=8]", "4x4x4", 2000.0), timed("kernel:k[BM=16]", "4x4x4", 1000.0),
        timed("kernel:k[BM=16]", "8x8x8", 5000.0), timed("kernel:k[BM=16]", "4x4x4", 3000.0, threads=2),
        timed("kernel:other", "4x4x4", 1.0), timed("cublas", "4x4x4", 1.0),
    )  # fmt: skip
    one, two = config_tables(Record("bench", "gemm", {}, {}, None, results))
    assert (one.kernel, one.threads, one.sizes) == ("k", 1, ("4x4x4", "8x8x8"))
    assert one.rows == {"BM=8": (2.0, None), "BM=16": (1.0, 5.0)}
    assert one.best == (1.0, 5.0)
    assert (two.threads, two.rows) == (2, {"BM=16": (3.0,)})
