"""An emulated GPU that checks control codes: it finds a read or overwrite of a register before the result is there.

A result is poison until its latency has passed or its barrier was waited for (`emulator.poison`).
"""

from __future__ import annotations

from dataclasses import replace

from gemmlab.core.counters import Observation
from gemmlab.core.program import Launch
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.emulated_code import EmulatedLoaded
from gemmlab.emulator.poison import PoisonRead, PoisonWatch


class PoisonedDevice(EmulatedDevice):
    """An emulated GPU that checks the control codes. It takes some hundred times as long as `EmulatedDevice`.

    `warps` is the number of warps of each block that are checked, by default all. `found` has every read or overwrite
    of a register that came too early, in all launches so far.
    """

    def __init__(self, arch: str = "sm_90", warps: int | None = None) -> None:
        super().__init__(arch)
        self.warps = warps
        self.found: list[PoisonRead] = []

    def observe(
        self, loaded: EmulatedLoaded, launch: Launch, *, races: bool = False, filling: int | None = None
    ) -> Observation:
        """Run once, and return counters and hazards; reads and overwrites that came too early are added to `found`.

        Raises `UnknownAccessError` for code with instructions whose registers are not known, such as asynchronous ones,
        and `UsageError` if no latencies are known for the architecture.
        """
        watch = PoisonWatch(loaded.image.code, self.arch, self.warps)
        made = replace(loaded, image=replace(loaded.image, code=watch.code))
        observation = super().observe(made, launch, races=races, filling=filling)
        watch.require_sound()
        self.found += watch.found.values()
        return observation
