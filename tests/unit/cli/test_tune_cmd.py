"""`gemmlab tune` from the command line: on the emulator, on this processor, and the store."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.cli.tune_cmd import progress_status
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.records import load_record
from gemmlab.devices import select
from gemmlab.devices.device import Device
from gemmlab.instruments.tune_request import TuneRequest
from gemmlab.kernels.kernel import Kernel
from gemmlab.tuning.exchange import read_any
from gemmlab.tuning.space import Space, space_of

MINE = """/* gemmlab
grid = "ceil_div(N, BN), ceil_div(M, BM)"
threads = "BN, BM"
params = { BM = 8, BN = 32 }
%s
require = ["BM * BN <= 512"]
*/
template <int BM, int BN>
__global__ void mine(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta,
                     float* C, int ldc) {
  int row = blockIdx.y * BM + threadIdx.y, column = blockIdx.x * BN + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0;
  if (alpha != 0) for (int k = 0; k < K%s; ++k) sum += A[row * lda + k] * B[k * ldb + column];
  C[row * ldc + column] = alpha * sum + (beta == 0 ? 0 : beta * C[row * ldc + column]);
}
"""
TUNE = "tune = { BM = [4, 8, 16], BN = [16, 32] }"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_DATA_DIR", str(tmp_path / "data"))


def gemmlab(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(build_app(), list(arguments))
    return done.exit_code, done.output


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.cu"
    path.write_text(MINE % (TUNE, ""))
    return path


@pytest.mark.slow
def test_a_file_is_tuned_by_predicted_time_which_is_said(mine: Path, tmp_path: Path) -> None:
    common = ("tune", str(mine), "--device", "emulated", "--sizes", "512", "--budget", "60s")
    code, text = gemmlab(*common, "--picture", str(tmp_path / "a.svg"), "--t4", str(tmp_path / "t4.json"))
    assert code == 0, text
    assert "predicted, not measured" in text
    assert "Around BM=" in text
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert len(read_any(tmp_path / "t4.json").space) >= 4
    code, text = gemmlab(*common, "--json")
    (found,) = json.loads(text)["tunings"]
    assert found["predicted"] is True
    assert found["tried"] == found["legal"] == 6
    assert found["best"]["us"] == min(row["us"] for row in found["rows"])


def test_predicted_times_are_no_record_which_is_said_before_the_search(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_of: object) -> None:
        raise AssertionError("the search began")

    monkeypatch.setattr(TuneRequest, "run", unwanted)
    for device in ("emulated", "emulated:sm_80"):
        code, text = gemmlab("tune", str(mine), "--device", device, "--save", str(tmp_path / "r.json"))
        assert code == 2
        assert "--save: the times are predicted, not measured; --json prints them" in text


def test_a_file_is_tuned_on_the_emulator_where_there_is_no_gpu(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = select.open_device
    asked = list[str]()

    def without_gpu(name: str, mode: str | None = None) -> Device:
        if name == "cuda":
            raise DeviceError("no GPU")
        return opened(name, mode)

    def noted(request: TuneRequest, _progress: object) -> None:
        asked.append(request.device)
        raise UsageError("that is all")

    monkeypatch.setattr(select, "open_device", without_gpu)
    monkeypatch.setattr(TuneRequest, "run", noted)
    code, text = gemmlab("tune", str(mine))
    assert (code, asked) == (2, ["emulated:sm_90"])
    assert "no GPU; so times are predicted on emulated:sm_90, not measured" in text
    gemmlab("tune", "packed")
    assert asked[1:] == ["cpu"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (" - (BM == 16)", "wrong result at 70x90x50: c[0, 0] = "),
        (" + (BM == 16)", "OUT OF BOUNDS: B is read outside its bounds"),
    ],
)
def test_a_wrong_configuration_is_named(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(MINE % (TUNE, change))
    code, text = gemmlab(
        "tune", str(path), "--device", "emulated", "--sizes", "512", "--budget", "60s", "--no-counters"
    )
    assert code == 0, text
    assert f"cannot win: BM=16 BN=16: {said}" in text
    assert f"cannot win: BM=16 BN=32: {said}" in text


@pytest.mark.slow
def test_a_processor_is_tuned_and_a_record_left(tmp_path: Path) -> None:
    code, text = gemmlab(
        "tune", "cache_block", "--sizes", "40", "--budget", "40s", "--save", str(tmp_path / "r.json"), "--json"
    )
    assert code == 0, text
    (found,) = json.loads(text[text.index("{") :])["tunings"]  # behind lines on the progress
    assert found["predicted"] is False
    record = load_record(tmp_path / "r.json")
    assert len(record.results) == len(found["rows"])
    assert all(result.verified for result in record.results)
    code, text = gemmlab("report", str(tmp_path / "r.json"), "--no-explain", "--out", str(tmp_path / "r.html"))
    assert code == 0, text
    shown = "What parameters matter" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert shown == bool(found["sensitivity"]["single"])


def test_a_missing_tune_gets_a_sentence_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(MINE % ("", ""))
    code, text = gemmlab("tune", str(path), "--device", "emulated")
    assert code == 2
    assert "`tune = { BM = [4, 8, 16] }`" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a kernel or a .cu file, or give --library"),
        (("naive", "--show"), "only one of them can be given"),
        (("--show", "--forget"), "only one of them can be given"),
        (("naive", "--budget", "soon"), "write a time as 60s, 5m or 1h"),
        (("packed", "--sizes", "24", "--budget", "0.01s"), "the part of the budget of 0.01 s that the search has"),
        (("naive",), "naive is a kernel for cuda"), (("--show", "--sizes", "3"), "are for --library"),
        (("--library", "--device", "emulated"), "nothing is timed"),
        (("packed", "--sizes", "3,4", "--save", "x.json"), "takes one size"),
        (("--import", "nothing.json"), "no file nothing.json"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(arguments: tuple[str, ...], said: str) -> None:
    code, text = gemmlab("tune", *arguments)
    assert code != 0
    assert said in text


def test_ctrl_c_says_how_to_continue(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), progress_status():
        raise KeyboardInterrupt
    assert "stopped; the same command continues from here" in capsys.readouterr().err


def test_a_search_says_where_it_is_without_a_terminal_but_not_at_each_trial(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    for module in ("tune_cmd", "console"):
        monkeypatch.setattr(f"gemmlab.cli.{module}.time", SimpleNamespace(monotonic=lambda: now))
    with progress_status() as show:
        for tried in range(100):
            now += 1.0
            show(f"[{tried}] tried", tried, 100)
    assert capsys.readouterr().err.split("\n") == ["[29] tried", "[59] tried", "[89] tried", ""]


@pytest.mark.in_turns(20)
def test_an_empty_store_is_shown_exported_and_forgotten(tmp_path: Path) -> None:
    assert gemmlab("tune", "--show") == (0, f"0 choices in {tmp_path / 'data' / 'choices.json'}\n")
    assert gemmlab("tune", "--export", str(tmp_path / "a.json"))[0] == 0
    assert gemmlab("tune", "--import", str(tmp_path / "a.json"))[0] == 0
    code, text = gemmlab("tune", "--forget")
    assert code == 0
    assert "0 choices forgotten for cpu:" in text


@pytest.mark.in_turns(20)
def test_the_library_is_tuned_for_this_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gemmlab.tuning import processor_tuning

    def small(kernel: Kernel) -> Space:
        found = space_of(kernel)
        return Space(found.names, found.members[:1])

    monkeypatch.setattr(processor_tuning, "space_of", small)
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("40 # small\n50x60x70\n")
    code, text = gemmlab("tune", "--library", "--shapes", str(sizes), "--budget", "100s")
    assert code == 0, text
    assert "1 choice stored" in text
    code, text = gemmlab("tune", "--show", "--json")
    (entry,) = json.loads(text)["entries"]
    assert (entry["kernel"], entry["objection"]) == ("threaded", "")
    code, text = gemmlab("doctor", "--quick", "--json")
    (state,) = json.loads(text)["tuned"].values()
    assert (state["entries"], state["stale"]) == (1, 0)
