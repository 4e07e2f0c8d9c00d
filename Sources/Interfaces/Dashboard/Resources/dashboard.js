// Keeps the page up to date. Without this script, the page shows the same information.
// All markup comes from the server: updates reload the server's page, and everything else is inserted as text.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const most = 200;
  let lastLoad = 0, wanted = null, isLoading = false, isAgain = false, isHeld = false, isBehind = false, waiting = [];

  // Local times -------------------------------------------------------------------------------------------------

  const two = (number) => String(number).padStart(2, "0");
  function localTime(timestamp) {
    const time = new Date(timestamp);
    if (Number.isNaN(time.getTime())) return timestamp;
    const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
    const isToday = time.toDateString() === new Date().toDateString();
    return isToday ? clock : `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock}`;
  }
  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) time.textContent = localTime(time.dateTime);
  }

  // Escapes invisible characters as the server does.
  const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
  const short = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  const shown = (text) =>
    String(text ?? "").replace(unseen, (mark) => short[mark] ?? `\\u{${mark.codePointAt(0).toString(16)}}`);

  // Notifications -----------------------------------------------------------------------------------------------

  let toastTimer = 0, failures = 0, announceTimer = 0;
  function toast(text) {
    byId("toast").textContent = text;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { byId("toast").textContent = ""; }, 6000);
  }
  const announce = (text) => { byId("announcer").textContent = text; };
  // Announces many failures as one sentence, so that a screen reader is not flooded.
  function announceFailure() {
    failures += 1;
    if (announceTimer) return;
    announceTimer = setTimeout(() => {
      announce(failures === 1 ? "A job has failed." : `${failures} jobs have failed.`);
      failures = announceTimer = 0;
    }, 3000);
  }

  // Reloading the page ------------------------------------------------------------------------------------------

  function isSame(one, other) {
    return one.nodeType === other.nodeType && one.nodeName === other.nodeName
      && (one.nodeType !== Node.ELEMENT_NODE || one.dataset?.key === other.dataset?.key);
  }
  // Makes `old` equal to `fresh`; equal nodes keep their focus, selection and open state.
  function change(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.isEqualNode(fresh)) return;
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    let place = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      let match = place;
      if (child.dataset?.key !== undefined) {
        match = [...old.children].find((other) => isSame(other, child)) ?? null;
      } else if (match && !isSame(match, child)) {
        match = null;
      }
      if (!match) {
        old.insertBefore(document.importNode(child, true), place);
        continue;
      }
      if (match === place) place = place.nextSibling; else old.insertBefore(match, place);
      change(match, child);
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  }

  async function load() {
    if (isLoading) { isAgain = true; return; }
    isLoading = true;
    wanted = null;
    lastLoad = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        localize(fresh);
        // Events missed while disconnected are among the server's latest.
        if (isBehind && !isHeld && byId("lines")) {
          isBehind = false;
          waiting = [];
          byId("lines").replaceChildren(...document.importNode(fresh.getElementById("lines"), true).childNodes);
        }
        for (const part of document.querySelectorAll("[data-live]")) {
          const other = fresh.getElementById(part.id);
          // Does not replace a button that asks for confirmation, or a plot with an open tooltip.
          if (other && !part.querySelector(".sure, .tip")) change(part, other);
        }
        watchPictures();
      }
    } catch {
      // The event stream reports a lost connection.
    }
    isLoading = false;
    if (isAgain) { isAgain = false; loadSoon(); }
  }
  // Loads at most every two seconds, and not while the page is hidden.
  function loadSoon(least = 2000) {
    if (wanted || document.hidden) return;
    wanted = setTimeout(load, Math.max(0, lastLoad + least - Date.now()));
  }

  // Activity ----------------------------------------------------------------------------------------------------

  const kinds = { succeeded: "ok", failed: "bad", retry: "warn", not_ready: "warn" };
  function line({ timestamp, word, kind, path, message, rule, job }) {
    const item = byId("line").content.firstElementChild.cloneNode(true);
    const time = item.querySelector("time");
    time.dateTime = time.title = timestamp;
    time.textContent = localTime(timestamp);
    const badge = item.querySelector(".badge");
    badge.textContent = word;
    badge.classList.add(kind);
    const cut = path.lastIndexOf("/") + 1;
    const isNamed = cut > 0 && cut < path.length;
    item.querySelector(".path span").textContent = shown(isNamed ? path.slice(0, cut) : "");
    item.querySelector(".path b").textContent = shown(isNamed ? path.slice(cut) : path);
    item.querySelector(".message").textContent = shown(message);
    item.querySelector(".rule").textContent = shown(rule);
    const link = item.querySelector("a");
    if (job && link.dataset.jobs) link.href = link.dataset.jobs + encodeURIComponent(job);
    item.classList.add("new");
    return item;
  }
  // Inserts the lines of one frame together; lines beyond the limit are never created.
  function add(fact) {
    if (!byId("lines")) return;
    waiting.push(fact);
    if (waiting.length > most) waiting.shift();
    if (!isHeld && waiting.length === 1) requestAnimationFrame(putIn);
    if (isHeld) byId("hold").textContent = `Continue (${waiting.length}${waiting.length === most ? "+" : ""})`;
  }
  function putIn() {
    if (isHeld || waiting.length === 0) return;
    const lines = byId("lines"), view = lines.parentElement;
    lines.querySelector(".empty")?.remove();
    // Keeps the visible lines in place if the list is scrolled down.
    const above = view.scrollTop, before = view.scrollHeight;
    lines.prepend(...waiting.reverse().map(line));
    waiting = [];
    if (above > 4) view.scrollTop = above + view.scrollHeight - before;
    while (lines.children.length > most) lines.lastElementChild.remove();
  }
  function onAttempt(event) {
    const attempt = JSON.parse(event.data);
    loadSoon();
    // Files excluded by a condition are not shown, like files that the path does not match.
    if (attempt.outcome === "skipped" && attempt.code === "where") return;
    const isFailed = attempt.state === "failed";
    if (isFailed) announceFailure();
    add({
      timestamp: attempt.time, word: isFailed ? "failed" : attempt.outcome.replace("_", " "),
      kind: kinds[isFailed ? "failed" : attempt.outcome] ?? "calm", path: attempt.path, message: attempt.message,
      rule: attempt.rule, job: attempt.job,
    });
  }
  function onFile(event) {
    const file = JSON.parse(event.data);
    loadSoon();
    add({ timestamp: file.at, word: file.kind, kind: "live", path: file.path, rule: (file.rules ?? []).join(", ") });
  }

  // Connection --------------------------------------------------------------------------------------------------

  let source = null, isLost = false, isLeaving = false, hideTimer = 0;
  function lose() {
    if (isLost || isLeaving) return;
    isLost = true;
    document.documentElement.classList.add("lost");
    byId("pill").textContent = "Not connected";
    byId("pill").className = "pill bad";
    announce("The connection to Alight is lost; reconnecting.");
  }
  function connect() {
    // A browser opens at most six connections to a server: hidden pages close theirs.
    if (source || document.hidden || isLeaving) return;
    source = new EventSource("/v1/events");
    source.addEventListener("open", () => {
      if (isLost) announce("Connected again.");
      isLost = false;
      document.documentElement.classList.remove("lost");
      document.documentElement.dataset.connected = "";
      loadSoon();
    });
    source.addEventListener("error", () => {
      lose();
      // An error response closes the source permanently: create a new one.
      if (source?.readyState === EventSource.CLOSED) {
        disconnect();
        setTimeout(connect, 5000);
      }
    });
    source.addEventListener("attempt", onAttempt);
    source.addEventListener("file", onFile);
    source.addEventListener("status", () => loadSoon());
  }
  function disconnect() {
    source?.close();
    source = null;
    isBehind = true;
  }
  addEventListener("pagehide", () => { isLeaving = true; disconnect(); });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    isLeaving = false;
    connect();
    load();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hideTimer);
    if (document.hidden) {
      hideTimer = setTimeout(disconnect, 5000);
      return;
    }
    connect();
    requestAnimationFrame(putIn);
    load();
  });
  // Plots advance even without events.
  setInterval(() => loadSoon(10000), 10000);

  // Buttons -----------------------------------------------------------------------------------------------------

  const done = {
    retry: "The job will be retried.", discard: "The job is discarded.", reload: "The rules are reloaded.",
    rescan: "All files are being rescanned.",
  };
  function askOnce(button) {
    if (!("confirm" in button.dataset) || button.classList.contains("sure")) return false;
    const label = button.firstChild.data;
    button.classList.add("sure");
    button.firstChild.data = "Really?";
    announce(`Press again to ${label.toLowerCase()}.`);
    setTimeout(() => {
      button.classList.remove("sure");
      button.firstChild.data = label;
    }, 4000);
    return true;
  }
  async function send(form, button) {
    const rule = form.elements.namedItem("rule")?.value;
    const path = new URL(form.action).pathname;
    const verb = path.slice(path.lastIndexOf("/") + 1);
    const hadFocus = document.activeElement === button;
    button.disabled = true;
    try {
      const answer = await fetch(`/v1${path}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rule ? { rule } : {}),
      });
      const body = await answer.json().catch(() => ({}));
      if (!answer.ok) toast([body.error?.message ?? `status ${answer.status}`, body.error?.help].filter(Boolean).map(shown).join(" – "));
      else if (verb === "pause") toast(rule ? `'${shown(rule)}' is paused.` : "All rules are paused.");
      else if (verb === "resume") toast(rule ? `'${shown(rule)}' is resumed.` : "All rules are resumed.");
      else toast(done[verb] ?? "Done.");
      // A discarded job no longer has a page.
      if (answer.ok && verb === "discard" && location.pathname === path.replace(/\/discard$/, "")) {
        location.assign("/jobs?state=failed");
        return;
      }
    } catch {
      toast("Alight does not respond.");
    }
    button.disabled = false;
    button.classList.remove("sure");
    await load();
    // Removing a button would lose the focus.
    if (hadFocus) (button.isConnected ? button : byId("main")).focus({ preventScroll: true });
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button");
    if (!askOnce(button)) send(form, button);
  });
  // Leaves empty fields out of the address.
  document.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });

  const hold = byId("hold");
  if (hold) hold.hidden = false;
  hold?.addEventListener("click", () => {
    isHeld = !isHeld;
    hold.classList.toggle("held", isHeld);
    hold.textContent = isHeld ? "Continue" : "Hold";
    putIn();
  });

  // Hides the frame of a file that is gone or is not an image.
  function watchPictures() {
    for (const image of document.querySelectorAll(".preview img")) {
      const hide = () => { image.closest(".preview").hidden = true; };
      if (image.complete && image.naturalWidth === 0) hide(); else image.addEventListener("error", hide, { once: true });
    }
  }

  // Plot tooltips ---------------------------------------------------------------------------------------------------

  let tip = null;
  function hideTip() { tip?.remove(); tip = null; }
  document.addEventListener("pointerover", (event) => {
    const hit = event.target.closest?.(".hit");
    if (!hit) { hideTip(); return; }
    const title = hit.querySelector("title");
    // Removed, because the browser would show it as a second tooltip.
    if (title) { hit.dataset.says = title.textContent; title.remove(); }
    hideTip();
    tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("aria-hidden", "true");
    const timestamp = document.createElement("b");
    timestamp.textContent = localTime(hit.dataset.at);
    tip.append(timestamp, hit.dataset.says ?? "");
    const area = hit.closest(".area"), box = area.getBoundingClientRect(), at = hit.getBoundingClientRect();
    const middle = at.left + at.width / 2 - box.left;
    area.append(tip);
    const half = tip.offsetWidth / 2;
    tip.style.left = `${Math.min(Math.max(middle, half - 40), box.width - half + 12)}px`;
  });

  localize(document);
  watchPictures();
  connect();
})();
