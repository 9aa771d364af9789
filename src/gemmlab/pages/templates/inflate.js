"use strict";
// Unpack zlib's format (RFC 1950, 1951) at once. A browser's `DecompressionStream` answers later, too late for a page
// that is printed when it has loaded.
const inflate = (() => {
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  const END = 256;

  // Lengths and distances: the first of each symbol's range, and how many bits say which of the range.
  const ranges = (first, widths) => widths.map((width) => [(first += 1 << width) - (1 << width), width]);
  const LENGTHS = [...ranges(3, Array.from({ length: 28 }, (_, i) => Math.max((i >> 2) - 1, 0))), [258, 0]];
  const DISTANCES = ranges(1, Array.from({ length: 30 }, (_, i) => Math.max((i >> 1) - 1, 0)));

  // A table by the next bits of the stream: each entry is a symbol and the width of its code.
  function codes(widths) {
    const longest = Math.max(...widths), entries = new Uint16Array(1 << longest);
    let code = 0;
    for (let width = 1; width <= longest; width += 1, code <<= 1) {
      widths.forEach((one, symbol) => {
        if (one !== width) return;
        let reversed = 0;
        for (let bit = 0; bit < width; bit += 1) reversed |= ((code >> bit) & 1) << (width - 1 - bit);
        for (let at = reversed; at < entries.length; at += 1 << width) entries[at] = (symbol << 4) | width;
        code += 1;
      });
    }
    return { longest, entries };
  }

  const filled = (...runs) => runs.flatMap(([count, width]) => Array(count).fill(width));
  const FIXED = [codes(filled([144, 8], [112, 9], [24, 7], [8, 8])), codes(filled([30, 5]))];

  return (bytes) => {
    let at = 2, hold = 0, held = 0, out = new Uint8Array(8 * bytes.length + 1024), size = 0;

    function need(count) {
      for (; held < count; held += 8) hold |= bytes[at++] << held;
    }

    function drop(count) {
      hold >>>= count;
      held -= count;
    }

    function bits(count) {
      need(count);
      const value = hold & ((1 << count) - 1);
      drop(count);
      return value;
    }

    function symbol(table) {
      need(table.longest);
      const entry = table.entries[hold & ((1 << table.longest) - 1)];
      drop(entry & 15);
      return entry >> 4;
    }

    function room(count) {
      if (size + count <= out.length) return;
      const larger = new Uint8Array(2 * (size + count));
      larger.set(out);
      out = larger;
    }

    function stored() {
      at -= held >> 3;
      hold = held = 0;
      const count = bytes[at] | (bytes[at + 1] << 8);
      room(count);
      out.set(bytes.subarray(at + 4, at + 4 + count), size);
      size += count;
      at += 4 + count;
    }

    function tables() {
      const literals = bits(5) + 257, distances = bits(5) + 1, count = bits(4) + 4, own = Array(19).fill(0);
      for (let i = 0; i < count; i += 1) own[ORDER[i]] = bits(3);
      const table = codes(own), widths = [];
      while (widths.length < literals + distances) {
        const one = symbol(table);
        if (one < 16) widths.push(one);
        else if (one === 16) widths.push(...Array(bits(2) + 3).fill(widths.at(-1)));
        else widths.push(...Array(one === 17 ? bits(3) + 3 : bits(7) + 11).fill(0));
      }
      return [codes(widths.slice(0, literals)), codes(widths.slice(literals))];
    }

    function coded([literals, distances]) {
      for (let one = symbol(literals); one !== END; one = symbol(literals)) {
        room(258);
        if (one < END) {
          out[size++] = one;
          continue;
        }
        const [least, wide] = LENGTHS[one - END - 1], length = least + bits(wide);
        const [nearest, far] = DISTANCES[symbol(distances)], from = size - nearest - bits(far);
        for (let i = 0; i < length; i += 1) out[size++] = out[from + i];
      }
    }

    for (let last = 0; !last;) {
      last = bits(1);
      const kind = bits(2);
      if (kind === 0) stored();
      else coded(kind === 1 ? FIXED : tables());
    }
    return out.subarray(0, size);
  };
})();
