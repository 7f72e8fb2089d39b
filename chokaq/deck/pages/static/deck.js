// Before the first paint: the theme. After it: the theme switch, the keyboard, the way back through filters.
(() => {
  const KEY = "chokaq-theme";
  const ORDER = ["auto", "light", "dark"];
  const media = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return ORDER.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "auto";
    } catch {
      return "auto";
    }
  };
  const dark = () => chosen() === "dark" || (chosen() === "auto" && media.matches);

  function apply() {
    document.documentElement.dataset.theme = dark() ? "dark" : "light";
    if (window.Quasar && window.Quasar.Dark) window.Quasar.Dark.set(dark());
    for (const button of document.querySelectorAll("[data-theme-switch]")) button.setAttribute("aria-label", "Theme: " + chosen());
    if (window.emitEvent && window.did_handshake !== false) window.emitEvent("theme");
  }
  document.documentElement.dataset.theme = dark() ? "dark" : "light";
  media.addEventListener("change", apply);
  addEventListener("load", () => window.Quasar?.Dark?.set(dark()));

  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-theme-switch]");
    if (!button) return;
    const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length];
    try {
      localStorage.setItem(KEY, next);
    } catch {
      /* a browser that keeps nothing follows the system */
    }
    apply();
    button.title = "Theme: " + next + " (press for the next)";
  });

  const PLACES = { o: "/", q: "/queues", j: "/jobs", w: "/workers", c: "/circuits", a: "/audit", s: "/settings" };
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.target.isContentEditable) return;
    if (document.querySelector(".q-dialog")) return;
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) (event.preventDefault(), search.focus(), search.select());
    } else if (event.key === "g") going = Date.now();
    else if (Date.now() - going < 1500 && PLACES[event.key]) location.assign((window.chokaqBase || "") + PLACES[event.key]);
    else going = 0;
  });

  // A socket that was closed may be one whose sign-in has ended elsewhere: then the page gives way to the form.
  const stillSignedIn = async () => {
    const answer = await fetch((window.chokaqBase || "") + "/api/openapi.json", { cache: "no-store" }).catch(() => null);
    if (answer && answer.status === 401) location.reload();
  };
  const untilSocket = setInterval(() => {
    if (!window.socket) return;
    clearInterval(untilSocket);
    window.socket.on("disconnect", stillSignedIn);
    window.socket.io.on("reconnect_error", stillSignedIn);
  }, 200);

  // Filters are kept in the address by pushState; going back reads the page of that address.
  window.addEventListener("popstate", () => location.reload());
})();

// For the charts: colours of the theme, and durations.
window.chokaqColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
window.chokaqSpan = (ms) => (ms < 1000 ? ms + " ms" : ms < 60000 ? +(ms / 1000).toFixed(1) + " s" : +(ms / 60000).toFixed(1) + " min");
