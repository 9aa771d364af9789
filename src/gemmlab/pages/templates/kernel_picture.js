// The picture of one warp's access: lanes above, the words of memory that they access below.
const lanePicture = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const CELL = 20, HIGH = 15, LEFT = 74, LANES = 32, LINE = 128, WORD = 4;

  function part(parent, name, facts, text) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  const box = (svg, x, y, width, kind, text, title) => {
    part(svg, "rect", { x, y, width, height: HIGH, class: `box ${kind}` });
    if (text !== "") part(svg, "text", { x: x + width / 2, y: y + HIGH - 4, class: ["alone", "late"].includes(kind) ? "in" : "" }, text);
    if (title) part(svg.lastChild, "title", {}, title);
  };

  // Return the numbers of lanes as text with ranges, such as 0-7,12.
  function ranges(lanes) {
    const found = [];
    for (const lane of lanes) {
      const last = found.at(-1);
      if (last && last[1] === lane - 1) last[1] = lane; else found.push([lane, lane]);
    }
    return found.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
  }

  function frame(rows, top, label) {
    const svg = document.createElementNS(SPACE, "svg");
    const width = LEFT + LANES * CELL + 64, height = top + rows * HIGH + 6;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    return svg;
  }

  function lanes(svg, picture) {
    part(svg, "text", { x: LEFT - 6, y: 12, class: "at" }, "lane");
    for (let lane = 0; lane < LANES; lane += 1) {
      box(svg, LEFT + lane * CELL, 1, CELL - 2, picture.offsets[lane] === null ? "off" : "lane", `${lane}`);
    }
  }

  const thread = (svg, lane, x, y) => part(svg, "path", {
    class: "thread", d: `M${LEFT + lane * CELL + CELL / 2 - 1},${HIGH + 1} L${x},${y}`,
  });

  // Shared memory: columns are banks, rows wavefronts.
  function shared(picture, label) {
    const rows = Math.max(1, ...picture.transfers.map(([wavefront]) => wavefront + 1));
    const top = 70, svg = frame(rows, top, label), wide = Math.max(1, picture.width / WORD);
    lanes(svg, picture);
    part(svg, "text", { x: LEFT - 6, y: top - 4, class: "at" }, "bank");
    for (let bank = 0; bank < LANES; bank += 4) part(svg, "text", { x: LEFT + bank * CELL + CELL / 2, y: top - 4 }, `${bank}`);
    for (const [wavefront, bank, served] of picture.transfers) {
      for (const lane of served) thread(svg, lane, LEFT + (bank + wide / 2) * CELL - 1, top + wavefront * HIGH + 2);
    }
    for (const [wavefront, bank, served, late] of picture.transfers) {
      const kind = late ? "late" : served.length > 1 ? "shared" : "alone", room = wide * CELL - 2;
      const text = ranges(served).length * 5.6 <= room ? ranges(served) : `${served[0]}+`;
      box(svg, LEFT + bank * CELL, top + wavefront * HIGH, room, kind, text, `wavefront ${wavefront}, bank ${bank}: lanes ${ranges(served)}`);
    }
    for (let row = 0; row < rows; row += 1) {
      part(svg, "text", { x: LEFT - 6, y: top + (row + 1) * HIGH - 4, class: "at" }, `wavefront ${row}`);
    }
    return svg;
  }

  // Global memory: rows are lines of 128 bytes, columns words; frames are sectors of 32 bytes.
  function global(picture, label) {
    const words = new Map();
    picture.offsets.forEach((offset, lane) => {
      if (offset === null) return;
      for (let byte = 0; byte < picture.width; byte += Math.min(WORD, picture.width)) {
        const at = Math.floor((picture.first + offset + byte) / WORD);
        if (!words.has(at)) words.set(at, []);
        if (!words.get(at).includes(lane)) words.get(at).push(lane);
      }
    });
    const touched = [...new Set([...words.keys()].map((word) => Math.floor(word / LANES)))].sort((a, b) => a - b);
    const row = new Map(touched.map((line, place) => [line, place]));
    const top = 70, svg = frame(touched.length, top, label);
    lanes(svg, picture);
    part(svg, "text", { x: LEFT - 6, y: top - 4, class: "at" }, "byte");
    for (let word = 0; word < LANES; word += 8) part(svg, "text", { x: LEFT + word * CELL + CELL / 2, y: top - 4 }, `${word * WORD}`);
    const ends = new Set();
    for (const [word, served] of words) {
      const line = Math.floor(word / LANES), x = LEFT + (word % LANES) * CELL, y = top + row.get(line) * HIGH;
      for (const lane of served) {
        if (!ends.has(lane)) thread(svg, lane, x + CELL / 2 - 1, y + 2);
        ends.add(lane);
      }
    }
    for (const [word, served] of words) {
      const line = Math.floor(word / LANES), x = LEFT + (word % LANES) * CELL, y = top + row.get(line) * HIGH;
      const text = ranges(served);
      box(svg, x, y, CELL - 2, served.length > 1 ? "shared" : "alone", text.length * 5.6 <= CELL ? text : `${served[0]}+`,
        `byte ${(word % LANES) * WORD} of the line: lanes ${text}`);
    }
    for (const [line, place] of row) {
      const y = top + place * HIGH;
      part(svg, "text", { x: LEFT - 6, y: y + HIGH - 4, class: "at" }, `+${(line - touched[0]) * LINE}`);
      for (let sector = 0; sector < 4; sector += 1) {
        part(svg, "rect", { x: LEFT + sector * 8 * CELL - 1, y: y - .5, width: 8 * CELL, height: HIGH, class: "sector" });
      }
    }
    return svg;
  }

  const named = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

  function caption(picture) {
    const on = picture.offsets.filter((offset) => offset !== null).length;
    const what = `${picture.store ? "writes" : "reads"} ${named(picture.width, "byte")} a lane, ${named(on, "lane")} of warp ${picture.warp}`;
    const unit = picture.space === "shared" ? "wavefront" : "sector";
    const best = picture.best < picture.cost ? `, ${picture.best} at best` : "";
    return `${picture.space} memory: ${what}: ${named(picture.cost, unit)}${best}`;
  }

  // Return the lanes' addresses as text, for readers who cannot see the picture.
  function table(picture) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    summary.textContent = "Addresses by lane";
    const list = document.createElement("p");
    const shift = picture.space === "shared" ? picture.first : 0;
    list.textContent = picture.offsets.map((offset, lane) => {
      if (offset === null) return `${lane}: off`;
      const address = offset + shift;
      return picture.space === "shared" ? `${lane}: 0x${address.toString(16)}, bank ${Math.floor(address / WORD) % 32}` : `${lane}: +${address}`;
    }).join("; ");
    details.append(summary, list);
    return details;
  }

  return (picture) => {
    const figure = document.createElement("div"), said = document.createElement("p");
    figure.className = "picture";
    said.textContent = caption(picture);
    figure.append(said, (picture.space === "shared" ? shared : global)(picture, said.textContent), table(picture));
    return figure;
  };
})();
