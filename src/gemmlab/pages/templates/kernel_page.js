// The page of one or two kernels: source, PTX and machine code. Pointing at a line or an instruction highlights the
// corresponding ones in the other panes.
(() => {
  const { unpacked } = gemmlab;
  const NARROW = 900, LEVELS = 9, AROUND = 3;
  const byId = (id) => document.getElementById(id);
  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const safe = (text) => String(text).replace(/[&<>"]/g, (letter) => ESCAPES[letter]);
  const hex = (row) => `0x${(16 * row).toString(16).padStart(4, "0")}`;

  let sides = [], pairs = null;
  const shown = { heat: "", columns: new Set(), sort: null, source: 0, picked: null, entry: null };

  // ---- the data of each side (kernel)

  function add(map, key, row) {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(row);
  }

  function prepared(data) {
    const rows = data.rows, count = rows.text.length;
    const side = { ...data, count, at: new Map(), through: new Map(), callers: new Map(), ofPtx: new Map(), pinsOf: new Map(), linePins: new Map() };
    for (let row = 0; row < count; row += 1) {
      const chain = data.chains[rows.chain[row]];
      chain.forEach(([file, line], depth) => {
        const key = `${file}:${line}`;
        if (depth === 0) add(side.at, key, row);
        if (side.through.get(key)?.at(-1) !== row) add(side.through, key, row);
      });
      if (chain.length > 1) {
        const key = chain[0].join(":");
        if (!side.callers.has(key)) side.callers.set(key, new Map());
        add(side.callers.get(key), rows.chain[row], row);
      }
      if (rows.ptx[row]) add(side.ofPtx, rows.ptx[row], row);
    }
    data.pins.forEach((pin, number) => {
      for (const row of pin.rows) add(side.pinsOf, row, number);
      for (const [file, line] of pin.lines) add(side.linePins, `${file}:${line}`, number);
    });
    const barrier = (value) => (value === 7 ? "-" : value);
    const control = rows.stall.map((stall, row) => [
      rows.wait[row] ? rows.wait[row].toString(16).padStart(2, "0") : "--", barrier(rows.read[row]), barrier(rows.write[row]),
      rows.yield[row] ? "Y" : "-", stall.toString(16),
    ].join(":"));
    const fixed = (name, title, about, values, adds = false) => ({ name, title, about, origin: "code", addsUp: adds, digits: 0, values });
    side.columns = [
      fixed("control", "wait:rd:wr:y:st", "Control codes: barriers waited for, read barrier, write barrier, yield, stall.", control),
      fixed("live", "live", "Registers that are occupied.", rows.live),
      fixed("banks", "banks", "Registers read from each bank.", rows.banks.map((banks) => (banks.length ? banks.join("+") : null))),
      fixed("conflict", "conflict", "Cycles that register banks add.", rows.conflict.map((cycles) => cycles || null), true),
      ...data.columns,
    ];
    return side;
  }

  const column = (side, name) => side.columns.find((one) => one.name === name);
  const heatOf = (side) => column(side, shown.heat);
  const sum = (rows, values) => rows.reduce((total, row) => total + (values[row] ?? 0), 0);

  function figure(one, value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "string") return value;
    return value.toLocaleString("en", { minimumFractionDigits: one.digits, maximumFractionDigits: one.digits });
  }

  // The text of a line: a call tells there for which operand it is.
  const words = (side, [file, line]) => (side.files[file].lines.find(([one]) => one === line)?.[1] ?? "").trim();
  const place = (side, [file, line]) => `${side.files[file].name}:${line}`;
  const level = (value, most) => (value > 0 && most > 0 ? Math.max(1, Math.ceil(LEVELS * Math.sqrt(value / most))) : 0);
  const heat = (value, most) => (level(value, most) ? ` h${level(value, most)}` : "");

  // ---- the panes

  function mark(side, pins) {
    if (!pins) return "";
    const all = [...new Set(pins)].map((number) => side.pins[number]);
    const hazard = all.some((pin) => pin.kind === "hazard");
    return `<span class="mark${hazard ? " hazard" : ""}" title="${safe(all.map((pin) => pin.text).join("\n"))}">${hazard ? "!" : "●"}</span> `;
  }

  function sourceTable(side, number) {
    const values = heatOf(side)?.addsUp ? heatOf(side).values : null, head = heatOf(side);
    const totals = new Map([...side.through].map(([key, rows]) => [key, values ? sum(rows, values) : rows.length]));
    const most = Math.max(0, ...totals.values());
    const title = values ? `${head.title}, with what is inlined` : "instructions, with what is inlined";
    return side.files.map((file, place_) => {
      const lines = file.lines.map(([line, text]) => {
        const key = `${place_}:${line}`, total = totals.get(key), used = total !== undefined;
        const amount = used && total ? figure(values ? head : { digits: 0 }, total) : "";
        return `<tr id="s${number}-${place_}-${line}" data-file="${place_}" data-line="${line}"${used ? ' class="used"' : ""}>`
          + `<th scope="row">${line}</th><td class="heat${heat(total ?? 0, most)}"></td><td class="n">${amount}</td>`
          + `<td class="text">${mark(side, side.linePins.get(key))}${safe(text)}${calls(side, number, key)}</td></tr>`;
      });
      const absent = file.lines.every(([, text]) => text === "") ? " (source not at hand)" : "";
      return `<table><caption>${safe(file.name)}${absent}</caption><thead><tr><th scope="col"><button type="button" data-lines="order">line</button></th><td></td>`
        + `<th scope="col"><button type="button" data-lines="heat" title="${safe(title)}">${safe(values ? head.title : "instr")}</button></th><th scope="col" class="text">source</th></tr></thead>`
        + `<tbody>${lines.join("")}</tbody></table>`;
    }).join("");
  }

  function calls(side, number, key) {
    const found = side.callers.get(key);
    if (!found) return "";
    const each = [...found].map(([chain, rows]) => {
      const from = side.chains[chain].slice(1).map((one) => place(side, one)).join(", called from ");
      const text = words(side, side.chains[chain][1]);
      return `<button type="button" class="call" data-chain="${chain}" data-side="${number}">called from ${safe(from)}: ${rows.length} instr`
        + `${text ? ` <code>${safe(text)}</code>` : ""}</button>`;
    });
    return `<details><summary>${found.size} call ${found.size === 1 ? "site" : "sites"}</summary>${each.join("<br>")}</details>`;
  }

  // Return the columns to show after the code. The column that colours the rows is before the code instead, so that it is
  // visible in a narrow pane, too.
  const trailing = (side) => side.columns.filter((one) => shown.columns.has(one.name) && one.name !== shown.heat);

  function half(side, number, row, most) {
    const cells = trailing(side), lead = heatOf(side);
    const data = `data-side="${number}"`;
    if (row === null) return `<td ${data}></td><td ${data}></td>${lead ? `<td ${data}></td>` : ""}<td class="text" ${data}></td>${cells.map(() => `<td ${data}></td>`).join("")}`;
    const executions = column(side, "executions"), depth = Math.min(3, side.rows.depth[row]);
    const idle = executions && !executions.values[row] ? " idle" : "";
    const loop = side.loops.find(([first]) => first === row);
    const tag = loop ? `<span class="tag" title="loop to ${hex(loop[1])}">↻</span> ` : "";
    const look = side.pictures[row] ? ' <button type="button" class="look" tabindex="-1" aria-label="picture of the access" title="picture of the access">▦</button>' : "";
    const text = safe(side.rows.text[row]).replaceAll(".reuse", "<b>.reuse</b>");
    const value = lead?.values[row];
    return `<th scope="row" ${data}>${hex(row)}</th><td class="heat${heat(typeof value === "number" ? value : 0, most)}" ${data}></td>`
      + (lead ? `<td ${data}>${safe(figure(lead, value))}</td>` : "")
      + `<td class="text${idle}${depth ? ` d${depth}` : ""}" id="c${number}-${row}" ${data} data-row="${row}">${mark(side, side.pinsOf.get(row))}${tag}${text}${look}</td>`
      + cells.map((one) => `<td ${data}>${safe(figure(one, one.values[row]))}</td>`).join("");
  }

  const head = (one, number) =>
    `<th scope="col"><button type="button" data-sort="${one.name}" data-side="${number}" title="${safe(`${one.about} ${one.origin === "code" ? "" : `(${one.origin})`}`)}">${safe(one.title)}</button></th>`;

  const heads = (side, number) => `<th scope="col">address</th><td></td>${heatOf(side) ? head(heatOf(side), number) : ""}`
    + `<th scope="col" class="text">${safe(sides.length > 1 ? side.label : "machine code")}</th>${trailing(side).map((one) => head(one, number)).join("")}`;

  function wanted(number, row) {
    const executions = column(sides[number], "executions");
    return !byId("ran").checked || !executions || executions.values[row] > 0;
  }

  function order() {
    const list = pairs ?? sides[0].rows.text.map((_, row) => [row, null, "same"]);
    let kept = list.filter(([a, b]) => (a !== null && wanted(0, a)) || (b !== null && wanted(1, b)));
    if (shown.sort) {
      const { name, side } = shown.sort, values = column(sides[side], name)?.values ?? [];
      const key = (pair) => (pair[side] === null ? null : values[pair[side]]);
      const known = kept.filter((pair) => key(pair) !== null && key(pair) !== undefined);
      const compare = (a, b) => (typeof a === "number" ? b - a : String(a).localeCompare(String(b)));
      kept = [...known.sort((a, b) => compare(key(a), key(b))), ...kept.filter((pair) => !known.includes(pair))];
    }
    return kept;
  }

  function codeTable() {
    const most = sides.map((side) => Math.max(0, ...(heatOf(side)?.values ?? []).filter((value) => typeof value === "number")));
    const list = order(), only = byId("differences")?.checked;
    const near = only ? list.map((_, at) => list.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(([, , kind]) => kind !== "same")) : null;
    const lines = [];
    let skipped = 0;
    const skip = () => {
      if (skipped) lines.push(`<tr class="skipped"><td colspan="99">${skipped} alike</td></tr>`);
      skipped = 0;
    };
    list.forEach(([a, b, kind], at) => {
      if (near && !near[at]) { skipped += 1; return; }
      skip();
      const second = sides.length > 1 ? `<td class="gap"></td>${half(sides[1], 1, b, most[1])}` : "";
      lines.push(`<tr class="${kind}">${half(sides[0], 0, a, most[0])}${second}</tr>`);
    });
    skip();
    const both = sides.map((side, number) => heads(side, number)).join("<td class=\"gap\"></td>");
    byId("code").innerHTML = `<table><thead><tr>${both}</tr></thead><tbody>${lines.join("")}</tbody></table>`;
    byId("order").hidden = shown.sort === null;
    maps();
  }

  function ptxTable() {
    const side = sides[shown.source];
    const rows = side.ptx.map((text, at) => `<tr id="p${shown.source}-${at + 1}" data-ptx="${at + 1}"${side.ofPtx.has(at + 1) ? ' class="used"' : ""}><th scope="row">${at + 1}</th><td class="text">${safe(text)}</td></tr>`);
    const used = rows.filter((_, at) => side.ptx[at].trim() !== "");
    byId("ptx").innerHTML = `<table><caption>PTX</caption><tbody>${used.join("") || "<tr><td>the code carries no PTX</td></tr>"}</tbody></table>`;
  }

  function sources() {
    byId("source").innerHTML = sourceTable(sides[shown.source], shown.source);
    maps();
  }

  function everything() {
    sources();
    codeTable();
    if (!frame("ptx").hidden) ptxTable();
    relight();
  }

  // ---- maps beside the panes: the heat of all rows at a glance

  function maps() {
    for (const canvas of document.querySelectorAll("canvas.map")) {
      const pane = canvas.previousElementSibling, cells = [...pane.querySelectorAll("tbody td.heat")];
      const tall = Math.max(1, Math.round(pane.clientHeight));
      canvas.height = tall;
      const pen = canvas.getContext("2d");
      pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--hot");
      const hot = document.createElement("i");
      hot.className = "mark";
      pane.append(hot);
      pen.fillStyle = getComputedStyle(hot).color;
      hot.remove();
      const step = tall / Math.max(1, cells.length), deepest = new Float64Array(tall);
      cells.forEach((cell, at) => {
        const found = /\bh(\d)/.exec(cell.className);
        if (!found) return;
        for (let y = Math.floor(at * step); y < Math.max(Math.floor(at * step) + 1, (at + 1) * step) && y < tall; y += 1) {
          deepest[y] = Math.max(deepest[y], Number(found[1]));
        }
      });
      deepest.forEach((depth, y) => {
        pen.globalAlpha = depth / LEVELS;
        if (depth) pen.fillRect(0, y, canvas.width, 1);
      });
    }
  }

  // ---- highlighting of lines and instructions that belong together

  let alight = [];

  function dim() {
    for (const [node, name] of alight) node.classList.remove(name);
    alight = [];
  }

  function light(id, name) {
    const node = byId(id);
    if (!node) return;
    node.classList.add(name);
    alight.push([node, name]);
  }

  // Highlight an instruction, its source line, the places at which that was inlined, its PTX line, and its partner on the
  // other side.
  function lightRow(number, row, name) {
    const side = sides[number];
    light(`c${number}-${row}`, name);
    side.chains[side.rows.chain[row]].forEach(([file, line], depth) => light(`s${number}-${file}-${line}`, depth ? "called" : "lit"));
    light(`p${number}-${side.rows.ptx[row]}`, "lit");
    const partner = pairs?.find((pair) => pair[number] === row)?.[1 - number];
    if (partner !== null && partner !== undefined) light(`c${1 - number}-${partner}`, "lit");
  }

  function lightRows(number, rows) {
    for (const row of rows) {
      light(`c${number}-${row}`, "lit");
      light(`p${number}-${sides[number].rows.ptx[row]}`, "lit");
    }
  }

  function lit(target) {
    if (target.row !== undefined) lightRow(target.side, target.row, "lit");
    else if (target.chain !== undefined) {
      lightRows(target.side, sides[target.side].callers.get(target.line).get(target.chain));
      sides[target.side].chains[target.chain].forEach(([file, line], depth) => light(`s${target.side}-${file}-${line}`, depth ? "called" : "lit"));
    } else if (target.line !== undefined) {
      light(`s${target.side}-${target.line.replace(":", "-")}`, "lit");
      lightRows(target.side, sides[target.side].through.get(target.line) ?? []);
    } else if (target.ptx !== undefined) {
      light(`p${target.side}-${target.ptx}`, "lit");
      for (const row of sides[target.side].ofPtx.get(target.ptx) ?? []) lightRow(target.side, row, "lit");
    }
  }

  const nodeOf = (target) => byId(target.row !== undefined ? `c${target.side}-${target.row}`
    : target.ptx !== undefined ? `p${target.side}-${target.ptx}` : `s${target.side}-${target.line.replace(":", "-")}`);

  function relight(hovered) {
    dim();
    if (shown.picked) {
      lit(shown.picked);
      const node = nodeOf(shown.picked);
      if (node) light(node.id, "picked");
    }
    if (hovered) lit(hovered);
  }

  function reveal(id, pane) {
    const node = byId(id);
    if (!node || frame(pane).hidden) return;
    // Scroll only the pane: `scrollIntoView` would move the page, too.
    const box = byId(pane).getBoundingClientRect(), own = node.getBoundingClientRect();
    // A pane may reach out of the window: the node is to be in the part that is seen.
    const inside = box.top < innerHeight - 100 && box.bottom > 100;
    const top = inside ? Math.max(box.top, 0) : box.top, bottom = inside ? Math.min(box.bottom, innerHeight) : box.bottom;
    if (own.top < top + 30 || own.bottom > bottom - 10) byId(pane).scrollTop += own.top - top - (bottom - top) / 3;
    if (own.left > box.right - 80 || own.left < box.left) byId(pane).scrollLeft += own.left - box.left - 80;
  }

  function pick(target, from) {
    shown.picked = target;
    details(target);
    relight();
    const side = sides[target.side];
    if (target.row !== undefined) {
      if (target.side !== shown.source) {
        shown.source = target.side;
        byId("side").value = String(target.side);
        everything();
      }
      const [file, line] = side.chains[side.rows.chain[target.row]][0] ?? [];
      if (from !== "source") reveal(`s${target.side}-${file}-${line}`, "source");
      reveal(`c${target.side}-${target.row}`, "code");
      reveal(`p${target.side}-${side.rows.ptx[target.row]}`, "ptx");
    } else {
      const rows = target.chain !== undefined ? side.callers.get(target.line).get(target.chain)
        : target.line !== undefined ? side.at.get(target.line) ?? side.through.get(target.line) : side.ofPtx.get(target.ptx);
      if (rows?.length) {
        const worst = hottest(target.side, rows);
        reveal(`c${target.side}-${worst}`, "code");
        reveal(`p${target.side}-${side.rows.ptx[worst]}`, "ptx");
      }
      if (target.line !== undefined) reveal(`s${target.side}-${target.line.replace(":", "-")}`, "source");
    }
    maps();
  }

  // ---- details

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function paragraph(parent, ...parts) {
    const made = element("p");
    made.append(...parts);
    parent.append(made);
  }

  function link(number, [file, line]) {
    const button = element("button", place(sides[number], [file, line]), "place");
    button.type = "button";
    button.addEventListener("click", () => {
      choose("source");
      pick({ side: number, line: `${file}:${line}` });
    });
    return button;
  }

  function where(number, chain) {
    const parts = [];
    chain.forEach((one, depth) => parts.push(...(depth ? [" called from "] : []), link(number, one)));
    return parts;
  }

  const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

  function control(side, row) {
    const { stall, wait, read, write } = side.rows, found = [];
    const waits = [0, 1, 2, 3, 4, 5].filter((bit) => wait[row] >> bit & 1);
    if (waits.length) found.push(`waits for barrier ${waits.join(", ")}`);
    if (read[row] !== 7) found.push(`releases barrier ${read[row]} when its operands have been read`);
    if (write[row] !== 7) found.push(`releases barrier ${write[row]} when its result is there`);
    if (side.rows.yield[row]) found.push("asks for another warp");
    found.push(`the next instruction of the warp may issue after ${count(stall[row], "cycle")}`);
    return `${found.join("; ")}.`;
  }

  function pinned(parent, side, numbers) {
    for (const number of new Set(numbers ?? [])) {
      const pin = side.pins[number];
      paragraph(parent, element("span", pin.kind === "hazard" ? "! " : "● ", `mark ${pin.kind}`), pin.text, pin.advice ? ` ${pin.advice}` : "");
    }
  }

  function figures(parent, pairs_) {
    const list = element("dl");
    for (const [name, text, about] of pairs_) {
      const term = element("dt", name);
      term.title = about ?? "";
      list.append(term, element("dd", text));
    }
    parent.append(list);
  }

  function rowDetails(top, box, beside, number, row) {
    const side = sides[number], chain = side.chains[side.rows.chain[row]];
    paragraph(top, element("code", `${hex(row)}  ${side.rows.text[row]}`));
    if (chain.length) paragraph(top, ...where(number, chain));
    const ptx = side.ptx[side.rows.ptx[row] - 1];
    if (ptx) paragraph(box, "PTX ", element("code", ptx.trim()));
    paragraph(box, control(side, row));
    const known = side.columns.filter((one) => one.name !== "control" && one.values[row] !== null && one.values[row] !== undefined);
    figures(box, known.map((one) => [one.title, figure(one, one.values[row]), one.about]));
    const loops = side.loops.filter(([first, last]) => first <= row && row <= last);
    for (const [first, last] of loops) paragraph(box, `in the loop ${hex(first)} to ${hex(last)}, ${count(last - first + 1, "instruction")}`);
    pinned(box, side, side.pinsOf.get(row));
    for (const picture of side.pictures[row] ?? []) beside.append(lanePicture(picture));
  }

  function lineDetails(top, box, beside, number, target) {
    const side = sides[number], [file, line] = target.line.split(":").map(Number);
    const rows = target.chain !== undefined ? side.callers.get(target.line).get(target.chain) : side.through.get(target.line) ?? [];
    if (target.chain !== undefined) paragraph(top, ...where(number, side.chains[target.chain]));
    else paragraph(top, element("span", place(side, [file, line]), "place"));
    const own = side.files[file].lines.find(([at]) => at === line);
    if (own) paragraph(top, element("code", own[1].trim()));
    figures(box, [["instructions", String(rows.length)],
      ...side.columns.filter((one) => one.addsUp && one.origin !== "code").map((one) => [one.title, figure(one, sum(rows, one.values)), one.about])]);
    pinned(box, side, side.linePins.get(target.line));
    const mix = new Map();
    for (const row of rows) {
      const name = side.rows.text[row].replace(/^@\S+\s+/, "").split(/[ .]/)[0];
      mix.set(name, (mix.get(name) ?? 0) + 1);
    }
    paragraph(beside, [...mix].sort((a, b) => b[1] - a[1]).map(([name, times]) => `${times} ${name}`).join(", ") || "no instruction");
    if (target.chain === undefined) for (const [chain] of side.callers.get(target.line) ?? []) paragraph(beside, ...where(number, side.chains[chain]));
    const pictured = rows.filter((row) => side.pictures[row]).slice(0, 2);
    for (const row of pictured) for (const picture of side.pictures[row]) beside.append(element("p", hex(row)), lanePicture(picture));
  }

  function details(target) {
    const pane = byId("details"), top = element("div", "", "top"), box = element("div"), beside = element("div", "", "beside"), close = element("button", "Close", "close");
    close.type = "button";
    close.addEventListener("click", unpick);
    pane.replaceChildren(top, box, beside);
    top.append(close);
    if (target.row !== undefined) rowDetails(top, box, beside, target.side, target.row);
    else if (target.line !== undefined) lineDetails(top, box, beside, target.side, target);
    else paragraph(top, element("code", sides[target.side].ptx[target.ptx - 1].trim()));
    pane.hidden = false;
    pane.scrollTop = 0;
  }

  function unpick() {
    shown.picked = null;
    byId("details").hidden = true;
    relight();
  }

  // ---- panes, choices and keys

  const frame = (name) => document.querySelector(`.frame[data-frame="${name}"]`);

  function choose(name) {
    for (const one of document.querySelectorAll(".frame")) one.classList.toggle("chosen", one.dataset.frame === name);
    for (const tab of document.querySelectorAll("#tabs button")) tab.setAttribute("aria-selected", String(tab.dataset.pane === name));
    if (name === "ptx") showPtx(true);
    maps();
  }

  function showPtx(on) {
    frame("ptx").hidden = !on;
    const box = byId("show-ptx");
    box.checked = on;
    if (on) ptxTable();
    relight();
    maps();
  }

  function targetOf(node) {
    const call = node.closest(".call"), cell = node.closest("td[data-row]"), line = node.closest("tr[data-line]"), ptx = node.closest("tr[data-ptx]");
    if (call) {
      const side = Number(call.dataset.side), chain = Number(call.dataset.chain);
      return { side, chain, line: sides[side].chains[chain][0].join(":") };
    }
    if (cell) return { side: Number(cell.dataset.side), row: Number(cell.dataset.row) };
    const beside = node.closest("#code td[data-side], #code th[data-side]");
    if (beside) {
      const found = beside.parentElement.querySelector(`td[data-row][data-side="${beside.dataset.side}"]`);
      return found ? targetOf(found) : null;
    }
    if (line?.classList.contains("used")) return { side: shown.source, line: `${line.dataset.file}:${line.dataset.line}` };
    return ptx ? { side: shown.source, ptx: Number(ptx.dataset.ptx) } : null;
  }

  function step(pane, by) {
    const all = pane === "code" ? [...byId("code").querySelectorAll("td[data-row]")].filter((one) => !shown.picked || Number(one.dataset.side) === (shown.picked.side ?? 0))
      : [...byId(pane).querySelectorAll("tr.used")];
    const now = all.findIndex((one) => one.classList.contains("picked"));
    const first = Math.max(0, all.findIndex((one) => one.id === `c0-${shown.entry}` || one.classList.contains("lit")));
    const next = all[Math.max(0, Math.min(all.length - 1, now < 0 ? first : now + by))];
    if (next) pick(targetOf(next.matches("tr") ? next.querySelector("td.text") : next), pane);
    next?.scrollIntoView({ block: "nearest" });
  }

  let pinAt = -1;

  function toPin(by) {
    const buttons = [...document.querySelectorAll("button.pin")];
    if (!buttons.length) return;
    pinAt = (pinAt + by + buttons.length) % buttons.length;
    buttons[pinAt].focus();
    buttons[pinAt].click();
  }

  function showPin(button) {
    const number = Number(button.dataset.side), pin = sides[number].pins[Number(button.dataset.pin)];
    pinAt = [...document.querySelectorAll("button.pin")].indexOf(button);
    if (pin.rows.length) pick({ side: number, row: hottest(number, pin.rows) });
    else if (pin.lines.length) pick({ side: number, line: pin.lines[0].join(":") });
    else return;
    for (const row of pin.rows) light(`c${number}-${row}`, "lit");
    for (const [file, line] of pin.lines) light(`s${number}-${file}-${line}`, "lit");
  }

  function hottest(number, rows) {
    const values = heatOf(sides[number])?.values;
    return values ? rows.reduce((best, row) => ((values[row] ?? 0) > (values[best] ?? 0) ? row : best), rows[0]) : rows[0];
  }

  // Show the hottest instruction and its source line when the page opens, without picking them.
  function enter() {
    if (shown.picked || !heatOf(sides[0])) return;
    shown.entry = hottest(0, sides[0].rows.text.map((_, row) => row));
    const [file, line] = sides[0].chains[sides[0].rows.chain[shown.entry]][0] ?? [];
    reveal(`c0-${shown.entry}`, "code");
    reveal(`s0-${file}-${line}`, "source");
    dim();
    lightRow(0, shown.entry, "lit");
  }

  function find(text) {
    const words = text.toLowerCase().trim(), said = byId("found");
    said.textContent = "";
    if (!words) return;
    const from = shown.picked?.row ?? -1;
    const all = [];
    sides.forEach((side, number) => side.rows.text.forEach((one, row) => { if (one.toLowerCase().includes(words)) all.push([number, row]); }));
    said.textContent = count(all.length, "instruction");
    const next = all.find(([, row]) => row > from) ?? all[0];
    if (next) pick({ side: next[0], row: next[1] });
  }

  function keys(event) {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Enter" && event.target.id === "find") find(event.target.value);
      return;
    }
    const pane = event.target.closest(".pane")?.id ?? null;
    const panes = ["source", "ptx", "code"].filter((name) => !frame(name).hidden);
    const acts = {
      ArrowDown: () => pane && step(pane, 1), ArrowUp: () => pane && step(pane, -1),
      PageDown: () => pane && step(pane, 20), PageUp: () => pane && step(pane, -20),
      ArrowRight: () => pane && byId(panes[Math.min(panes.length - 1, panes.indexOf(pane) + 1)]).focus(),
      ArrowLeft: () => pane && byId(panes[Math.max(0, panes.indexOf(pane) - 1)]).focus(),
      Enter: () => pane && event.target.id === pane && shown.picked && byId("details").focus(),
      Escape: () => {
        const back = shown.picked?.row !== undefined ? "code" : "source";
        if (event.target.closest("#details")) byId(back).focus(); else unpick();
      },
      n: () => toPin(1), p: () => toPin(-1), "/": () => byId("find").focus(), x: () => showPtx(frame("ptx").hidden),
    };
    const act = acts[event.key];
    if (!act || act() === null || (event.key.startsWith("Arrow") && !pane) || (event.key === "Enter" && event.target.id !== pane)) return;
    event.preventDefault();
  }

  function sortLines(button) {
    const body = button.closest("table").tBodies[0], byHeat = button.dataset.lines === "heat";
    const value = (row) => parseFloat(row.cells[2].textContent.replaceAll(",", "")) || 0;
    const rows = [...body.rows];
    rows.sort((a, b) => (byHeat ? value(b) - value(a) : 0) || Number(a.dataset.line) - Number(b.dataset.line));
    body.append(...rows);
    maps();
  }

  function choices() {
    const all = new Map(sides.flatMap((side) => side.columns).map((one) => [one.name, one]));
    const able = [...all.values()].filter((one) => one.origin !== "code" || one.name === "conflict");
    const first = ["sampled", "time", "executions"].find((name) => all.has(name)) ?? "";
    shown.heat = first;
    byId("ran").parentElement.hidden = !all.has("executions");
    byId("heat").innerHTML = '<option value="">none</option>' + able.map((one) => `<option value="${one.name}"${one.name === first ? " selected" : ""}>${safe(one.title)}${one.origin === "code" ? "" : ` (${one.origin})`}</option>`).join("");
    const small = innerWidth < NARROW, pair = sides.length > 1;
    const usual = small ? [first] : pair ? ["control", first] : ["control", "live", "executions", "lanes", "sectors", "wavefronts", "excess", "time", "cycles", "sampled"];
    shown.columns = new Set(usual.filter((name) => all.has(name)));
    byId("columns").innerHTML = [...all.values()].map((one) =>
      `<label title="${safe(one.about)}"><input type="checkbox" value="${one.name}"${shown.columns.has(one.name) ? " checked" : ""}> ${safe(one.title)}</label>`).join("");
  }

  // Add to a page that is printed the sources of both sides, and pictures of accesses with avoidable cost.
  function paper() {
    if (sides.length > 1) {
      byId("source").innerHTML = sides.map(sourceTable).join("");
      for (const one of byId("source").querySelectorAll("details")) one.open = true;
    }
    const box = byId("printed"), costly = [];
    sides.forEach((side, number) => {
      for (const [row, pictures] of Object.entries(side.pictures)) {
        for (const picture of pictures) if (picture.cost > picture.best) costly.push([number, Number(row), picture]);
      }
    });
    box.replaceChildren(...costly.slice(0, 24).flatMap(([number, row, picture]) => {
      const side = sides[number], title = element("p");
      title.append(element("code", `${hex(row)}  ${side.rows.text[row]}`));
      return [title, lanePicture(picture)];
    }));
  }

  function start() {
    const packed = [...document.querySelectorAll('script[id^="listing-"]')];
    const data = packed.map((one) => ({ ...JSON.parse(unpacked(one.textContent)), label: one.dataset.label }));
    pairs = byId("pairs") ? JSON.parse(unpacked(byId("pairs").textContent)) : null;
    sides = data.map(prepared);
    const label = element("label"), box = element("input");
    Object.assign(box, { type: "checkbox", id: "show-ptx" });
    label.append(box, " PTX");
    byId("find").parentElement.before(label);
    choices();
    const narrow = innerWidth < NARROW;
    choose(narrow ? "code" : "source");
    // On a narrow screen the code comes first, so the parts above it are folded.
    if (narrow) for (const id of ["about", "findings"]) byId(id)?.removeAttribute("open");
    everything();
    enter();
    document.addEventListener("click", (event) => {
      const sorted = event.target.closest("[data-sort]"), lines = event.target.closest("[data-lines]"), pin = event.target.closest("button.pin");
      const tab = event.target.closest("#tabs button");
      if (sorted) {
        shown.sort = { name: sorted.dataset.sort, side: Number(sorted.dataset.side) };
        codeTable();
        relight();
      } else if (lines) sortLines(lines);
      else if (pin) {
        showPin(pin);
        byId("work").scrollIntoView({ block: "nearest" });
      }
      else if (tab) {
        choose(tab.dataset.pane);
        enter();
      }
      else if (!event.target.closest("summary") && event.target.closest(".pane")) {
        const target = targetOf(event.target);
        if (target) pick(target, event.target.closest(".pane").id);
      }
    });
    byId("panes").addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch") relight(targetOf(event.target));
    });
    byId("panes").addEventListener("pointerleave", () => relight());
    byId("order").addEventListener("click", () => {
      shown.sort = null;
      codeTable();
      relight();
    });
    byId("heat").addEventListener("change", (event) => {
      shown.heat = event.target.value;
      everything();
    });
    byId("columns").addEventListener("change", (event) => {
      shown.columns[event.target.checked ? "add" : "delete"](event.target.value);
      codeTable();
      relight();
    });
    box.addEventListener("change", () => showPtx(box.checked));
    for (const id of ["ran", "differences"]) byId(id)?.addEventListener("change", () => { codeTable(); relight(); });
    byId("side")?.addEventListener("change", (event) => {
      shown.source = Number(event.target.value);
      everything();
    });
    for (const canvas of document.querySelectorAll("canvas.map")) {
      canvas.addEventListener("click", (event) => {
        const pane = canvas.previousElementSibling;
        pane.scrollTop = (event.offsetY / canvas.clientHeight) * pane.scrollHeight - pane.clientHeight / 2;
      });
    }
    document.addEventListener("keydown", keys);
    gemmlab.onTheme(maps);
    addEventListener("beforeprint", paper);
    addEventListener("afterprint", () => { if (sides.length > 1) sources(); });
    addEventListener("resize", maps);
    document.documentElement.dataset.ready = "";
  }

  document.addEventListener("DOMContentLoaded", start);
})();
