// Makes the page live: moves clocks and lanes, replaces what has changed, and follows keys. Without it the page is a page.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const recorded = "recorded" in document.body.dataset;
  let shownAt = Number(document.body.dataset.now), since = performance.now(), stream = null, retry = 0;
  const now = () => (recorded ? shownAt : shownAt + (performance.now() - since) / 1000);

  // Clocks, strips and lanes go on by themselves.
  const spoken = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
    return `${Math.floor(whole / 86400)} d`;
  };
  const set = (element, name, value) => element.getAttribute(name) === value || element.setAttribute(name, value);
  const tick = () => {
    const at = now();
    for (const each of document.querySelectorAll("time[data-s]")) {
      const text = spoken(at - Number(each.dataset.s));
      if (each.textContent !== text) each.textContent = text;
    }
    const groups = byId("groups");
    if (groups) {
      const span = Number(groups.dataset.span);
      const box = `${((at - Number(groups.dataset.base)) / 60 - span).toFixed(span < 60 ? 3 : 1)} 0 ${span} 10`;
      for (const each of groups.querySelectorAll(".strip")) set(each, "viewBox", box);
    }
    const lanes = byId("lanes");
    if (lanes && "live" in lanes.dataset) {
      set(byId("sliding"), "x", `${((Number(lanes.dataset.to) - at) / Number(lanes.dataset.span)) * 100}%`);
    }
  };

  // What the server sends: elements by id, lists with their order, attributes.
  const replace = (id, html) => {
    const old = byId(id);
    if (!old) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && (focused.id || focused.getAttribute("href"));
    old.outerHTML = html;
    if (place) {
      const now = byId(id);
      const again = focused.id ? byId(focused.id) : [...(now ? now.querySelectorAll("a") : [])].find((one) => one.getAttribute("href") === place);
      if (again) again.focus({ preventScroll: true });
    }
  };
  const arrange = (list, order) => {
    const wanted = new Set(order);
    for (const child of [...list.children]) if (!wanted.has(child.id)) child.remove();
    let place = list.firstElementChild;
    for (const id of order) {
      const child = byId(id);
      if (child === place) place = place.nextElementSibling;
      else if (child) {
        const focused = child.contains(document.activeElement) ? document.activeElement : null;
        list.insertBefore(child, place);
        if (focused) focused.focus({ preventScroll: true });
      }
    }
  };
  const apply = (message) => {
    shownAt = message.now;
    since = performance.now();
    for (const [id, names] of Object.entries(message.attributes || {})) {
      const element = byId(id);
      if (element) for (const [name, value] of Object.entries(names)) set(element, name, value);
    }
    for (const [id, html] of Object.entries(message.parts || {})) replace(id, html);
    for (const [id, change] of Object.entries(message.lists || {})) {
      const list = byId(id);
      if (!list) continue;
      for (const [item, html] of Object.entries(change.items || {})) {
        if (!byId(item)) list.appendChild(document.createElementNS(list.namespaceURI, list.namespaceURI.endsWith("svg") ? "g" : "li")).id = item;
        replace(item, html);
      }
      if (change.order) arrange(list, change.order);
    }
    rove();
    tick();
  };

  const say = (text, kind) => {
    const live = byId("live");
    live.className = kind;
    if (live.textContent !== text) live.textContent = text;
  };
  const listen = () => {
    if (stream) stream.close();
    if (recorded || !document.body.dataset.view) return;
    const lanes = byId("lanes");
    const query = new URLSearchParams({ view: location.pathname + location.search, have: document.body.dataset.view });
    if (lanes && "live" in lanes.dataset) query.set("anchor", lanes.dataset.to);
    stream = new EventSource(`/stream?${query}`);
    stream.onopen = () => say("live", "on");
    stream.onmessage = (event) => apply(JSON.parse(event.data));
    stream.addEventListener("gone", () => go(location.href, true));
    stream.onerror = () => {
      if (stream.readyState !== EventSource.CLOSED) return say("connection lost, trying again", "off");
      say("not live: the page is looked at by too many; it is read again every 20 s", "off");
      clearTimeout(retry);
      retry = setTimeout(() => go(location.href, true), 20000);
    };
  };

  // Another address without another page.
  const go = async (address, stay) => {
    const url = new URL(address, location.href);
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = page.getElementById("main");
      if (!main || !("view" in page.body.dataset)) return location.assign(url);
      if (url.href !== location.href) history[stay ? "replaceState" : "pushState"](null, "", url);
      const kept = document.activeElement && document.activeElement.id;
      const field = document.activeElement && document.activeElement.matches("[data-filter] *") ? document.activeElement.name : null;
      if (field && stay) {
        for (const id of ["counts", "groups", "findings"]) byId(id).replaceWith(page.getElementById(id));
      } else {
        byId("main").replaceWith(main);
        if (kept && byId(kept)) byId(kept).focus({ preventScroll: true });
      }
      byId("banner").replaceWith(page.getElementById("banner"));
      document.title = page.title;
      document.body.dataset.view = page.body.dataset.view;
      shownAt = Number(page.body.dataset.now);
      since = performance.now();
      begin();
    } catch {
      say("the page does not answer", "off");
      clearTimeout(retry);
      retry = setTimeout(() => go(location.href, true), 5000);
    }
  };

  // One bar of the lanes is reached by Tab, the others from there by arrows.
  const rove = () => {
    const bars = document.querySelectorAll("#lanes .bar");
    const active = document.activeElement;
    let first = true;
    for (const bar of bars) {
      bar.setAttribute("tabindex", bar === active || (first && !(active && active.matches("#lanes .bar"))) ? "0" : "-1");
      first = false;
    }
  };
  const beside = (bar, key) => {
    const bars = [...document.querySelectorAll("#lanes .bar")];
    const lane = (one) => one.closest("#lanes g[id]");
    const own = bars.filter((one) => lane(one) === lane(bar));
    if (key === "ArrowLeft" || key === "ArrowRight") return own[own.indexOf(bar) + (key === "ArrowRight" ? 1 : -1)];
    const lanes = [...new Set(bars.map(lane))];
    const other = lanes[lanes.indexOf(lane(bar)) + (key === "ArrowDown" ? 1 : -1)];
    const x = bar.getBoundingClientRect().left;
    const distance = (one) => Math.abs(one.getBoundingClientRect().left - x);
    return other && bars.filter((one) => lane(one) === other).sort((a, b) => distance(a) - distance(b))[0];
  };
  const rows = () => [...document.querySelectorAll(".row .name a, .findings a, tbody a")];
  const click = (id) => byId(id) && byId(id).click();
  document.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (at && at.matches("input, select, textarea")) {
      if (event.key === "Escape") at.blur();
      return;
    }
    if (at && at.matches("#lanes .bar") && event.key.startsWith("Arrow")) {
      const next = beside(at, event.key);
      if (next) {
        at.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      }
      return event.preventDefault();
    }
    const text = document.querySelector("[data-filter] input");
    switch (event.key) {
      case "/": if (text) { text.focus(); text.select(); } break;
      case "?": byId("keys").showModal(); break;
      case "j": case "k": {
        const all = rows(), here = all.indexOf(at), next = all[here < 0 ? 0 : here + (event.key === "j" ? 1 : -1)];
        if (next) next.focus();
        break;
      }
      case "u": { const up = [...document.querySelectorAll(".crumbs a")].pop(); if (up) up.click(); break; }
      case "+": case "=": click("go-in"); break;
      case "-": click("go-out"); break;
      case "[": click("go-earlier"); break;
      case "]": click("go-later"); break;
      case "n": click("go-now"); break;
      default: return;
    }
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href]");
    const copy = event.target.closest && event.target.closest("[data-copy]");
    if (copy) {
      const range = document.createRange();
      range.selectNodeContents(byId(copy.dataset.copy));
      getSelection().removeAllRanges();
      byId(copy.dataset.copy).closest("details").open = true;
      getSelection().addRange(range);
      const done = () => { copy.textContent = "Copied"; };
      if (navigator.clipboard) navigator.clipboard.writeText(byId(copy.dataset.copy).textContent).then(done, () => {});
    }
    if (event.target.closest && event.target.closest("#show-keys")) byId("keys").showModal();
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.matches(".tools nav a, .folded a")) {
      event.preventDefault();
      go(link.getAttribute("href"));
    }
  });
  let typed = 0;
  const filter = () => {
    const form = document.querySelector("[data-filter]");
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    go(query.size ? `/?${query}` : "/", true);
  };
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-filter] *")) return;
    clearTimeout(typed);
    typed = setTimeout(filter, 200);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    event.preventDefault();
    filter();
  });
  addEventListener("popstate", () => go(location.href, true));
  addEventListener("pageshow", (event) => { if (event.persisted) go(location.href, true); });

  const begin = () => {
    for (const each of document.querySelectorAll("#show-keys, [data-copy]")) each.hidden = false;
    rove();
    tick();
    listen();
  };
  begin();
  setInterval(tick, 1000);
})();
