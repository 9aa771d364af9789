from __future__ import annotations

from gemmlab.core.clocks import read_clocks, throttled_between

CPU = "/sys/devices/system/cpu"
CPUINFO = "".join(f"processor\t: {cpu}\nmodel name\t: X\ncpu MHz\t\t: {2000 + cpu}.5\n\n" for cpu in range(4))


def test_cpufreq_comes_before_cpuinfo() -> None:
    files = {f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq": f"{3_000_000 + cpu}\n" for cpu in (0, 1)}
    seen = read_clocks((files | {"/proc/cpuinfo": CPUINFO}).get, [1, 0])
    assert (seen["mhz"], seen["source"]) == ({"0": 3000.0, "1": 3000.001}, "cpufreq")


def test_cpuinfo_is_read_to_its_end_for_the_cpus_in_use() -> None:
    seen = read_clocks({"/proc/cpuinfo": CPUINFO}.get, [1, 3])
    assert seen == {"mhz": {"1": 2001.5, "3": 2003.5}, "source": "/proc/cpuinfo", "throttled": {}}


def test_nothing_told_is_nothing_known() -> None:
    nothing: dict[str, str] = {}
    assert read_clocks(nothing.get, [0]) == {"mhz": {}, "source": "unknown", "throttled": {}}
    assert read_clocks({"/proc/cpuinfo": "processor : 0\nBogoMIPS : 50\n"}.get, [0])["mhz"] == {}


def test_counts_of_throttling_are_added_by_core_and_not_by_package() -> None:
    def state(core: int, package: int) -> dict[str, str]:
        counts = {"core": core, "package": package}
        return {f"{CPU}/cpu{cpu}/thermal_throttle/{name}_throttle_count": f"{count}\n"
                for cpu in (0, 1) for name, count in counts.items()}  # fmt: skip

    before, after = (read_clocks(state(*counts).get, [0, 1]) for counts in ((5, 7), (6, 7)))
    assert before["throttled"] == {"core": 10, "package": 7}
    assert throttled_between(before, before) == ""
    assert throttled_between(before, after).endswith("while this was measured: 2 times (core)")
    assert throttled_between({"throttled": {}}, after) == ""


def test_this_machine_can_be_asked() -> None:
    seen = read_clocks()
    assert all(value > 100 for value in seen["mhz"].values())
    assert bool(seen["mhz"]) == (seen["source"] != "unknown")
