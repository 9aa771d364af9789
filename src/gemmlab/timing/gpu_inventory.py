"""The facts and measured peaks of each GPU for `gemmlab doctor`, or the reason why it cannot be used."""

from __future__ import annotations

from typing import Any

from gemmlab.core.errors import GemmlabError


def gpu_details(count: int, *, measure: bool = True) -> list[dict[str, Any]]:
    """Return one entry for each of `count` GPUs: `id`, `name`, `facts` and `measured` peaks (none without `measure`).

    If measuring failed, `measured_error` says why. A GPU that cannot be used has only `id` and `reason`.
    """
    return [_detail(ordinal, measure=measure) for ordinal in range(count)]


def _detail(ordinal: int, *, measure: bool) -> dict[str, Any]:
    from gemmlab.devices.cuda import CudaDevice

    name = f"cuda:{ordinal}"
    try:
        device = CudaDevice(ordinal)
        info = device.describe()
    except GemmlabError as error:
        return {"id": name, "reason": str(error)}
    found: dict[str, Any] = {"id": name, "name": info.name, "facts": dict(info.facts), "measured": {}}
    if measure:
        try:
            found["measured"] = device.measure_peaks()
        except (GemmlabError, MemoryError) as error:
            found["measured_error"] = str(error)
    return found


def gpu_text(detail: dict[str, Any]) -> str:
    """Return one entry of `gpu_details` as text."""
    if "reason" in detail:
        return f"cannot be used: {detail['reason']}"
    facts, measured = detail["facts"], detail["measured"]
    parts = [
        f"{facts['sms']} SMs, {facts['threads_per_sm']} threads and {facts['registers_per_sm']} registers each",
        f"shared memory {facts['smem_per_sm'] >> 10} KiB an SM, {facts['smem_per_block'] >> 10} KiB a block",
        f"level-2 cache {facts['l2_bytes'] / 2**20:.0f} MiB",
        f"clock up to {facts['clock_khz'] / 1e3:.0f} MHz, memory {facts['memory_clock_khz'] / 1e3:.0f} MHz",
        f"memory bus of {facts['memory_bus_bits']} bits",
        f"driver {facts['driver'] or 'unknown'} for CUDA {facts['driver_cuda']}, cuda-bindings {facts['bindings']}",
    ]
    if facts.get("clocks"):
        parts.append(f"now at {facts['clocks']['sm_mhz']:.0f} MHz")
    if measured:
        mma = f", {measured['mma_tf32_gflops'] / 1e3:.0f} of TF32 by mma.sync" if "mma_tf32_gflops" in measured else ""
        parts.append(
            f"measured {measured['fma_gflops'] / 1e3:.1f} TFLOP/s of FMA{mma}, copy {measured['copy_gbs']:.0f} GB/s"
        )
    if "measured_error" in detail:
        parts.append(f"peaks not measured: {detail['measured_error']}")
    return "; ".join(parts)
