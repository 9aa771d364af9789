"use strict";
// Sorting and filtering of tables, and charts that are drawn when they come into view or when the page is printed.
(() => {
  const { dark, unpacked } = gemmlab;
  const NARROW = 640;

  // ---- tables

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key ?? cell.textContent;
  };
  const number = (text) => parseFloat(text.replaceAll(",", ""));

  function sort(heading) {
    const table = heading.closest("table"), column = heading.cellIndex, numeric = heading.classList.contains("n");
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const sign = up ? 1 : -1, body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => ({ row, text: value(row, column), n: number(value(row, column)) }));
    const empty = (one) => (numeric ? Number.isNaN(one.n) : one.text === "");
    keyed.sort((a, b) => {
      // Rows without a value come last in either direction.
      if (empty(a) || empty(b)) return empty(a) - empty(b);
      return sign * (numeric ? a.n - b.n : a.text.localeCompare(b.text, "en", { numeric: true }));
    });
    body.append(...keyed.map((one) => one.row));
  }

  function filter(input) {
    const words = input.value.toLowerCase().split(/\s+/), results = input.closest(".results");
    for (const row of results.querySelector("tbody").rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    offer(results);
  }

  // Number of rows of a folded table that the style sheet shows, of those that pass the filter.
  const FIRST = 20;

  function offer(results) {
    const more = results.querySelector(".more");
    if (more === null) return;
    const rows = results.querySelectorAll("tbody tr:not([hidden])").length;
    more.hidden = rows <= FIRST;
    const folded = results.classList.contains("folded");
    more.firstElementChild.textContent = folded ? `Show all ${rows} rows` : `Show the first ${FIRST} of ${rows} rows`;
  }

  function fold(results) {
    results.classList.toggle("folded");
    offer(results);
  }

  // ---- charts

  const INK = { light: "#1c1e21", dark: "#e6e6e6" }, SOFT = { light: "#555b63", dark: "#a4abb5" };
  const GRID = { light: "#e6e6e6", dark: "#363b44" };

  // Mix dark colours with white, the darker the more, because they are hard to distinguish from a dark background.
  function lightened(text) {
    return text.replace(/"#([0-9a-fA-F]{6})"/g, (whole, hex) => {
      const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
      const light = (0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]) / 255;
      const white = Math.max(0, 0.9 - 2 * light);
      const mixed = parts.map((part) => Math.round(part + (255 - part) * white));
      return `"#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}"`;
    });
  }

  function themed(text) {
    const name = dark() ? "dark" : "light";
    const spec = JSON.parse(dark() ? lightened(text) : text);
    const config = spec.config ?? {}, text_ = { labelColor: INK[name], titleColor: INK[name] };
    spec.config = {
      ...config,
      background: "transparent",
      axis: { ...config.axis, ...text_, gridColor: GRID[name], domainColor: SOFT[name], tickColor: SOFT[name] },
      text: { ...config.text, color: INK[name] },
      legend: { ...config.legend, ...text_, symbolBaseFillColor: INK[name], symbolBaseStrokeColor: INK[name] },
      title: { ...config.title, color: INK[name], subtitleColor: SOFT[name] },
      header: { ...config.header, ...text_ },
    };
    return spec;
  }

  const visit = (node, change) => {
    if (node === null || typeof node !== "object") return;
    change(node);
    for (const child of Object.values(node)) visit(child, change);
  };

  function fitted(spec, fit, width) {
    if (fit === "curves") {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
      const columns = Math.max(1, Math.floor(width / 220));
      if (width < NARROW) {
        visit(spec, (node) => { if (node.legend) Object.assign(node.legend, { orient: "bottom", columns }); });
      }
    } else if (fit === "ladder") {
      ladder(spec, width);
    }
    return spec;
  }

  // Give the names on the left and the values on the right the width that they need, and the bars the rest.
  function ladder(spec, width) {
    const axis = spec.config.axis, size = width < NARROW ? 11 : axis.labelFontSize;
    const names = [], values = [];
    visit(spec, (node) => {
      if (typeof node.entry !== "string") return;
      names.push(measured(node.entry, size));
      values.push(measured(node.label, axis.labelFontSize));
    });
    const most = width < NARROW ? width / 2 : 240, labels = Math.min(most, Math.max(...names) + 2);
    const beside = 10 + Math.max(...values) + 2 * spec.config.padding + 12;
    const bars = Math.max(60, Math.floor(width - labels - beside) - 1);
    spec.config.axis = { ...axis, labelLimit: labels, titleLimit: width, labelFontSize: size };
    for (const panel of spec.vconcat) {
      panel.width = bars;
      visit(panel, (node) => {
        const shown = node.x?.axis;
        if (!shown) return;
        shown.tickCount = Math.max(2, Math.min(shown.tickCount ?? 10, Math.floor(bars / 35)));
        // On a narrow screen the title spreads below names and values, too, because the bars are too narrow for it.
        if (shown.title && width < NARROW) {
          const title = lines(shown.title, width - 40);
          Object.assign(shown, { title, titleX: bars + beside - 24, titleAnchor: "end", titleAlign: "right" });
        }
      });
    }
  }

  const pen = document.createElement("canvas").getContext("2d");

  function measured(text, size) {
    pen.font = `${size}px "Liberation Sans", Arial, Helvetica, sans-serif`;
    return pen.measureText(text).width;
  }

  // Return a text as lines of at most `width` pixels, broken between words.
  function lines(text, width) {
    const found = [];
    for (const word of text.split(" ")) {
      const longer = found.length ? `${found.at(-1)} ${word}` : word;
      if (found.length && measured(longer, 12) <= width) found[found.length - 1] = longer;
      else found.push(word);
    }
    return found;
  }

  function tip(_handler, event, _item, value) {
    const box = document.getElementById("tip");
    box.hidden = value === null || value === undefined || value === "";
    if (box.hidden) return;
    box.textContent = typeof value === "object"
      ? Object.entries(value).map(([name, said]) => `${name}: ${said}`).join("\n")
      : String(value);
    box.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 4))}px`;
    box.style.top = `${Math.max(0, Math.min(event.clientY + 12, innerHeight - box.offsetHeight - 4))}px`;
  }

  const drawn = new Map();

  async function draw(figure) {
    const canvas = figure.querySelector(".canvas"), width = canvas.clientWidth;
    drawn.get(figure)?.view?.finalize();
    drawn.set(figure, { width, view: null });
    const text = unpacked(document.getElementById(figure.dataset.spec).textContent);
    // The colours of a fixed picture, words on boxes, belong together: it keeps its white background.
    const fixed = figure.dataset.fit === "fixed";
    const spec = fixed ? JSON.parse(text) : fitted(themed(text), figure.dataset.fit, width);
    // Expressions are interpreted, because the page's policy forbids to evaluate them as code.
    const options = { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: tip };
    try {
      const { view } = await vegaEmbed(canvas, spec, options);
      drawn.set(figure, { width, view });
      figure.dataset.drawn = dark() ? "dark" : "light";
    } catch (error) {
      canvas.textContent = `This chart could not be drawn: ${error.message}`;
      throw error;
    }
  }

  const FITTED = (figure) => figure.dataset.fit !== "fixed";
  const redraw = () => { for (const figure of drawn.keys()) if (FITTED(figure)) draw(figure); };

  // Nothing is awaited before a text or a chart is there: a browser prints the page as it is when the handlers have returned.
  function fill(code) {
    code.textContent ||= unpacked(code.dataset.packed);
  }

  function print() {
    for (const code of document.querySelectorAll("pre[data-packed]")) fill(code);
    for (const figure of document.querySelectorAll("figure[data-spec]")) {
      if (!drawn.has(figure) || (FITTED(figure) && figure.dataset.drawn === "dark")) draw(figure);
    }
  }

  function unfold(target) {
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  }

  function followed() {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (target === null) return;
    unfold(target);
    target.scrollIntoView();
  }

  function start() {
    gemmlab.onTheme(redraw);
    document.addEventListener("click", (event) => {
      const heading = event.target.closest("th");
      if (heading) sort(heading);
      const more = event.target.closest(".more");
      if (more) {
        fold(more.closest(".results"));
        more.scrollIntoView({ block: "nearest" });
      }
    });
    document.addEventListener("input", (event) => {
      if (event.target.closest(".filter")) filter(event.target);
    });
    // Long tables are folded by the script, not by the page: without a script nothing could unfold them.
    for (const more of document.querySelectorAll(".more")) fold(more.closest(".results"));
    document.addEventListener("toggle", (event) => {
      const code = event.target.open ? event.target.querySelector(":scope > pre[data-packed]") : null;
      if (code !== null) fill(code);
    }, true);
    document.getElementById("unfold")?.addEventListener("click", () => {
      for (const kernel of document.querySelectorAll("details.kernel")) kernel.open = true;
    });
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting || drawn.has(entry.target)) continue;
        draw(entry.target);
      }
    }, { rootMargin: "300px" });
    for (const figure of document.querySelectorAll("figure[data-spec]")) watch.observe(figure);
    addEventListener("beforeprint", print);
    addEventListener("afterprint", redraw);
    let later = 0;
    addEventListener("resize", () => {
      clearTimeout(later);
      later = setTimeout(() => {
        for (const [figure, { width }] of drawn) {
          if (figure.querySelector(".canvas").clientWidth !== width) draw(figure);
        }
      }, 150);
    });
    addEventListener("hashchange", followed);
    followed();
  }

  document.addEventListener("DOMContentLoaded", start);
})();
