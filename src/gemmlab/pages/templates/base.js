// Functions for every page: the theme, unpacking of compressed parts, unfolding before the page is printed.
const gemmlab = (() => {
  const root = document.documentElement;
  const KEY = "gemmlab-theme";
  let printing = false;
  const changed = [];

  // True if the theme is dark. A printed page is always light.
  const dark = () => !printing
    && (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  // A page that was opened from a file may have no storage: then the choice is lost when the page is closed.
  const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* not stored */ } };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();

  const tell = () => { for (const each of changed) each(); };

  // Return the text of a part that is in the page compressed and in base64 (`document.packed`).
  function unpacked(packed) {
    return new TextDecoder().decode(inflate(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0))));
  }

  // The elements that are unfolded for printing, and folded again after it.
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
