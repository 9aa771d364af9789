"""Notices for the third parties' scripts that pages contain: Vega's bundle, which vl-convert makes without comments.

The text is at the beginning of each bundle, and so in every page that gemmlab writes, and in `THIRD_PARTY.md`, which is
part of the wheel.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

_BSD = """\
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met: 1. Redistributions of source code must retain the above copyright notice, this list of
conditions and the following disclaimer. 2. Redistributions in binary form must reproduce the above copyright notice,
this list of conditions and the following disclaimer in the documentation and/or other materials provided with the
distribution. 3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or
promote products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF
THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE."""
_ISC = """\
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted,
provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE."""
_MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright notice and
this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""
_APACHE = """\
Licensed under the Apache License, Version 2.0; you may not use this file except in compliance with the License. You may
obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0. Unless required by applicable law or agreed
to in writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR
CONDITIONS OF ANY KIND, either express or implied."""
LICENCES = {"BSD-3-Clause": _BSD, "ISC": _ISC, "MIT": _MIT, "Apache-2.0": _APACHE}


@dataclass(frozen=True, slots=True)
class Component:
    """One third-party part of the bundle, with its copyright line and its licence, a key of `LICENCES`."""

    name: str
    copyright: str
    licence: str
    trace: str
    """A text that the bundle contains only if this part is in it."""


_UW = "University of Washington Interactive Data Lab"
COMPONENTS = (
    Component("Vega", f"Copyright (c) 2015-2023, {_UW}; 2013, Trifacta Inc.", "BSD-3-Clause", "signals"),
    Component("Vega-Lite", f"Copyright (c) 2015-2018, {_UW}", "BSD-3-Clause", "vega-lite"),
    Component("Vega-Embed, Vega Tooltip, Vega Themes", f"Copyright (c) 2015-2018, {_UW}", "BSD-3-Clause", "vg-tooltip"),
    Component("D3 modules, internmap, TopoJSON client", "Copyright 2010-2023 Mike Bostock", "ISC", "mollweide"),
    Component("d3-delaunay", "Copyright 2018-2021 Observable, Inc. and Mapbox", "ISC", "delaun"),
    Component("Delaunator", "Copyright (c) 2021, Mapbox", "ISC", "delaun"),
    Component("semver", "Copyright (c) Isaac Z. Schlueter and Contributors", "ISC", "prerelease"),
    Component("fast-json-patch", "Copyright (c) 2013, 2014, 2020 Joachim Wester", "MIT", "OPERATION_OP"),
    Component("json-stringify-pretty-compact", "Copyright (c) 2014, 2016-2022 Simon Lydell", "MIT", "maxLength"),
    Component("integrate-adaptive-simpson", "Copyright (c) 2015 Ricky Reusser", "MIT", "mollweide"),
    Component(
        "ColorBrewer schemes (d3-scale-chromatic)",
        "Copyright (c) 2002 Cynthia Brewer, Mark Harrower, and The Pennsylvania State University", "Apache-2.0",
        "viridis",
    ),
)  # fmt: skip


def notices() -> str:
    """Return every part with its copyright line, and every licence once, as plain text."""
    parts = [f"{one.name}: {one.copyright} ({one.licence})" for one in COMPONENTS]
    licences = [f"{name}\n\n{text}" for name, text in LICENCES.items()]
    head = "Charts in pages are drawn by these scripts of third parties, joined and minified:"
    return "\n\n".join([head, "\n".join(f"  {part}" for part in parts), *licences])


def markdown() -> str:
    """Return the text of the file `THIRD_PARTY.md`."""
    rows = [f"| {one.name} | {one.copyright} | {one.licence} |" for one in COMPONENTS]
    head = textwrap.dedent("""\
        # Third-party notices

        The wheel of gemmlab contains no code of third parties. Pages that gemmlab writes (`gemmlab report`, charts as
        HTML) contain the scripts below, which come from the installed package vl-convert-python. The same notices
        stand in each page, before the scripts. `gemmlab.plots.script_notices` makes this file.

        | part | copyright | licence |
        |---|---|---|
        """)
    licences = [f"## {name}\n\n{text}\n" for name, text in LICENCES.items()]
    return head + "\n".join(rows) + "\n\n" + "\n".join(licences)
