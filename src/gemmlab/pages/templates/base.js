"use strict";
// What every page needs: the theme, and the text of compressed parts of the page.
const gemmlab = (() => {
  const root = document.documentElement;
  const KEY = "gemmlab-theme";
  let printing = false;
  const changed = [];

  // Paper is white, whatever the screen shows.
  const dark = () => !printing
    && (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  // A page opened from a file may have no storage: the choice then lasts as long as the page.
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* nothing is kept */ } };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();

  const tell = () => { for (const each of changed) each(); };

  // Long parts lie in the page compressed.
  function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }

  // Everything folded is open on paper, and folded again behind it.
  const opened = [];

  function unfoldAll() {
    for (const one of document.querySelectorAll("details:not([open])")) {
      opened.push(one);
      one.open = true;
    }
  }

  function foldAgain() {
    for (const one of opened.splice(0)) one.open = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      remember(root.dataset.theme);
      tell();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  });
  addEventListener("beforeprint", () => {
    printing = true;
    unfoldAll();
  });
  addEventListener("afterprint", () => {
    printing = false;
    foldAgain();
  });

  return { dark, unpacked, onTheme: (each) => changed.push(each), isPrinting: () => printing };
})();
