"""The table of what compute-sanitizer finds: words for each report, and a sentence that counts."""

from __future__ import annotations

from blocks.sanitizer import alone, finding, table

RACE = {
    "errors": 4, "output": ["launch: done"],
    "report": ["Error: Potential RAW hazard detected at __shared__ 0x400 in block (0,0,0) :", "RACECHECK SUMMARY: 4"],
}  # fmt: skip
QUIET = {"errors": 0, "report": [], "output": ["launch: done"]}
HANG = {"errors": 0, "report": [], "output": ["launch: TimeLimitError: k: stopped at the time limit of 6 s"]}


def test_a_report_in_a_few_words() -> None:
    assert finding(RACE) == "raw hazard"
    assert finding(QUIET) == ""
    assert finding(None) == "not run"
    missing = RACE | {"report": ["Barrier error detected. Missing init.", "at arrive(unsigned int)+0x140"]}
    assert finding(missing) == "missing init"


def test_how_a_launch_ends_alone() -> None:
    assert [alone(row) for row in (QUIET, HANG, None)] == ["ends", "hangs", "not run"]


def test_the_sentence_counts_bugs_and_alarms() -> None:
    record = {
        "sanitizer": ["Version 1"],
        "emulator": {"a bug": ["race"], "a right": [], "b bug": ["deadlock"], "b right": []},
        "launches": {
            "a bug": {"none": QUIET, "racecheck": RACE}, "a right": {"racecheck": QUIET},
            "b bug": {"none": HANG, "racecheck": QUIET}, "b right": {"racecheck": RACE},
        },
    }  # fmt: skip
    text = table(record)
    assert "| a | race | ends | not run | raw hazard | not run | not run |" in text
    assert "| b | deadlock | hangs | not run |  | not run | not run |" in text
    assert "reports 2 of 2 bugs; at least one of the four tools, 1." in text
    assert "Of 2 kernels without a bug the emulator reports none, the tools 1." in text
