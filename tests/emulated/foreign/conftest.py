"""A call of the kernels beside this file on every emulated architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.devices.emulated import ARCHITECTURES
from support.emulated_calls import Call, caller

HERE = Path(__file__).parent


@pytest.fixture(params=ARCHITECTURES)
def call(request: pytest.FixtureRequest) -> Call:
    return caller(HERE, request.param)
