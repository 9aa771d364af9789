"""Descriptors of memory that no GPU reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmlab.sass.checking.register_room import odd_descriptors
from support.changed_code import subject
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
GOOD = "LDGSTS.E [R17+0x1200], desc[UR6][R10.64], P3"
BAD = "LDGSTS.E [R67+UR0], desc[UR1][R8.64], P3"
"""What ptxas 13.0.88 wrote for `split_k` with SEAM=1 and ONCE=3. An H200 ended it with "illegal instruction"."""


@pytest.mark.parametrize(("text", "odd"), [(GOOD, False), (BAD, True), (BAD.replace("UR1]", "UR13]"), True)])
def test_a_descriptor_begins_at_an_even_register(text: str, odd: bool) -> None:
    function = subject("naive", "sm_90", "65").function
    assert not odd_descriptors(function)
    first, *others = function.instructions
    changed = replace(first, text=text)
    assert odd_descriptors(replace(function, instructions=(changed, *others))) == ([changed] if odd else [])
