"""What error messages say of a name that is not known."""

from __future__ import annotations

from gemmlab.core.words import nearest, nearest_of_many, printable


def test_the_nearest_names_or_all() -> None:
    assert nearest("naiv", ["block_tile", "naive", "naive"]) == "did you mean naive?"
    assert nearest("naive_", ["naive_a", "naive_b", "naive_c", "x"], most=2).count(",") == 1
    assert nearest("other", ["a", "b"], "kernels") == "kernels: a, b"
    assert nearest("other", []) == "known: none"


def test_of_many_names_the_nearest_alone_are_shown() -> None:
    known = [f"rung_{index}" for index in range(60)] + ["naive"]
    assert nearest_of_many("naiv", known, "list") == "did you mean naive? list prints all 61"
    assert nearest_of_many("nope", known, "list") == "did you mean naive? list prints all 61"
    assert nearest_of_many("xyz", known, "list") == "list prints all 61"


def test_a_name_from_a_file_does_not_steer_the_terminal() -> None:
    assert nearest("kernel", ["kernel\x1b[2J"]) == "did you mean kernel\\x1b[2J?"
    assert printable("Zeile ä") == "Zeile ä"
