"""Consoles escape what a terminal or an encoding cannot take."""

from __future__ import annotations

import pytest

from gemmlab.cli.console import PIPE_WIDTH, add_row, plain_table, table_console


def test_control_characters_and_half_pairs_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = plain_table(["kernel\nname\x1b[31m"], texts=1)
    add_row(table, ["naive\ud800"])
    console = table_console()
    console.print("a\x07 line\nand \udfff [bold]")
    console.print(table)
    printed = capsys.readouterr().out
    assert printed.encode("utf-8")
    for escaped in ("a\\x07 line\nand \\udfff [bold]\n", "name\\x1b[31m", "naive\\ud800"):
        assert escaped in printed


def test_a_pipe_is_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table_console().width == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "90")
    assert table_console().width == 90
    monkeypatch.setenv("COLUMNS", "wide")
    assert table_console().width == PIPE_WIDTH
