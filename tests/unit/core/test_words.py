"""What error messages say of a name that is not known."""

from __future__ import annotations

from gemmlab.core.words import nearest, printable


def test_the_nearest_names_or_all() -> None:
    assert nearest("naiv", ["block_tile", "naive", "naive"]) == "did you mean naive?"
    assert nearest("naive_", ["naive_a", "naive_b", "naive_c", "x"], most=2).count(",") == 1
    assert nearest("other", ["a", "b"], "kernels") == "kernels: a, b"
    assert nearest("other", []) == "known: none"


def test_a_name_from_a_file_does_not_steer_the_terminal() -> None:
    assert nearest("kernel", ["kernel\x1b[2J"]) == "did you mean kernel\\x1b[2J?"
    assert printable("Zeile ä") == "Zeile ä"
