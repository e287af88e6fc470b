"use strict";
// The page of `wirekit inspect --report`. Every text from a capture goes into text nodes, never into markup.
(async () => {
  const ROW = 22, LANES = 14, LANE = 18, AXIS = 22, LABELS = 150, WIDTH = 16;
  const $ = (id) => document.getElementById(id);
  const data = await unpack($("data").textContent);
  const { frames, strings } = data;
  const count = frames.number.length;
  const rows = Array.from({ length: count }, (_, at) => ({
    at, number: frames.number[at], connection: frames.connection[at], time: frames.time[at],
    role: strings[frames.role[at]], api: strings[frames.api[at]], topics: strings[frames.topics[at]],
    group: strings[frames.group[at]], client: strings[frames.client[at]], error: strings[frames.error[at]],
    note: strings[frames.note[at]], latency: frames.latency[at], size: frames.size[at], request: frames.request[at],
  }));
  const links = new Map(data.connections.map((link) => [link.number, link]));
  const byNumber = new Map(rows.filter((row) => row.number).map((row) => [key(row, row.number), row]));
  const responses = new Map(rows.filter((row) => row.request).map((row) => [key(row, row.request), row]));
  for (const row of rows) {
    row.text = [row.api, row.topics, row.group, row.client, row.error, row.note].join(" ").toLowerCase();
  }
  const names = [...tally(rows.map((row) => row.api).filter(Boolean))].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const colours = new Map(names.map((name, at) => [name, `hsl(${(205 + at * 47) % 300 + 25} 65% var(--light))`]));
  let shown = rows, picked = null;

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
  function key(row, number) {
    const link = links.get(row.connection);
    return `${link ? link.capture : 0}:${number}`;
  }
  function asked(row) {
    const request = row.request && byNumber.get(key(row, row.request));
    return request ? request.api : "";
  }
  function tally(items) {
    const counts = new Map();
    for (const item of items) counts.set(item, (counts.get(item) || 0) + 1);
    return counts;
  }
  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) {
      if (attribute.startsWith("on")) node.addEventListener(attribute.slice(2), value);
      else if (value !== false && value !== undefined) node.setAttribute(attribute, value);
    }
    node.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
    return node;
  }
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function number(value) { return value == null ? "" : value.toLocaleString("en-US"); }
  function bytes(size) {
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (size < 1000) return `${unit === "B" || size >= 100 ? Math.round(size) : size.toFixed(1)} ${unit}`;
      size /= 1000;
    }
    return `${size.toFixed(1)} TB`;
  }
  function ms(us) { return us == null ? "" : (us / 1000).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 }); }
  function brief(value) { return value < 10 ? value.toFixed(3) : value.toFixed(1); }
  function clock(us, dated) {
    if (us == null) return "";
    const total = data.begin + us, date = new Date(Math.floor(total / 1000));
    if (Number.isNaN(date.getTime())) return `${total} µs`;
    const text = date.toISOString().replace("T", " ").slice(0, 23) + String(((total % 1000) + 1000) % 1000).padStart(3, "0");
    return dated ? text : text.slice(11);
  }

  // A table that creates only the visible rows. Columns: {title, value, text, number, width, style}.
  function table(place, label, columns, items, pick) {
    const body = element("tbody"), head = element("tr");
    const view = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label });
    let sorted = [], order = null, selected = -1, first = -1;
    for (const column of columns) {
      const button = element("button", { type: "button", onclick: () => sort(column) }, column.title);
      column.head = element("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": "none" }, button);
      column.head.style.width = column.width || "auto";
      head.append(column.head);
    }
    view.append(element("table", {}, element("thead", {}, head), body));
    place.append(view);
    view.addEventListener("scroll", () => draw());
    view.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
      if (!step || !pick) return;
      event.preventDefault();
      move(step);
    });
    function sort(column) {
      const down = order && order.column === column && !order.down;
      order = { column, down };
      for (const each of columns) each.head.setAttribute("aria-sort", each !== column ? "none" : down ? "descending" : "ascending");
      arrange();
    }
    function arrange() {
      const chosen = sorted[selected];
      if (order) {
        const { column, down } = order, sign = down ? -1 : 1;
        sorted = [...items].sort((a, b) => {
          const x = column.value(a), y = column.value(b);
          if (x == null || y == null || x === "" || y === "") return (x == null || x === "") - (y == null || y === "");
          return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
        });
      } else sorted = items;
      selected = chosen ? sorted.indexOf(chosen) : -1;
      draw(true);
    }
    function draw(force) {
      const top = Math.max(0, Math.floor(view.scrollTop / ROW) - 10), end = Math.min(sorted.length, top + 60);
      if (!force && top === first) return;
      first = top;
      body.replaceChildren(spacer(top), ...sorted.slice(top, end).map((item, at) => line(item, top + at)), spacer(sorted.length - end));
    }
    function spacer(size) {
      const row = element("tr", { "aria-hidden": "true" });
      row.style.height = `${size * ROW}px`;
      return row;
    }
    function line(item, at) {
      const row = element("tr", { "aria-selected": at === selected ? "true" : "false", class: pick ? "pickable" : "" });
      if (pick) row.addEventListener("click", () => choose(at));
      for (const column of columns) {
        const text = column.text ? column.text(item) : number(column.value(item));
        const cell = element("td", { class: [column.number ? "number" : "", column.style ? column.style(item) : ""].join(" ").trim(), title: text }, text);
        if (column.paint) cell.style.color = column.paint(item);
        row.append(cell);
      }
      return row;
    }
    function choose(at) {
      selected = at;
      const top = at * ROW;
      if (top < view.scrollTop || top > view.scrollTop + view.clientHeight - 3 * ROW) view.scrollTop = top - view.clientHeight / 2;
      draw(true);
      pick(sorted[at]);
    }
    function move(step) {
      if (sorted.length) choose(Math.min(sorted.length - 1, Math.max(0, selected + step)));
    }
    arrange();
    return {
      view, move,
      fill(next) { items = next; arrange(); },
      show(item) { const at = sorted.indexOf(item); if (at >= 0) choose(at); else { selected = -1; draw(true); pick(item); } },
    };
  }

  // Summary.
  const several = data.captures.length > 1;
  $("about").textContent = [
    `${number(data.total)} frames`,
    count < data.total ? `${number(count)} of them in this page: a sample that includes faulty frames and the slowest responses; all counts cover all frames` : "",
    data.payloads ? "with application data" : "without application data: bytes and strings that may contain it are shown as dots",
  ].filter(Boolean).join(" · ");
  const cards = element("div", { class: "cards" });
  const sum = (name) => data.captures.reduce((total, capture) => total + capture.apis.reduce((part, api) => part + api[name], 0), 0);
  const failures = data.captures.flatMap((capture) => capture.apis).flatMap((api) => Object.values(api.errors)).reduce((a, b) => a + b, 0);
  for (const [title, value, style] of [
    ["calls", sum("calls")], ["answered", sum("answered")], ["errors in responses", failures, failures ? "bad" : ""],
    ["connections", data.connections.length], ["topics", new Set(data.captures.flatMap((each) => each.topics.map((topic) => topic.topic))).size],
    ["clients", data.captures.reduce((total, capture) => total + capture.clients.length, 0)],
  ]) cards.append(element("div", { class: style || "" }, element("b", {}, number(value)), title));
  $("summary").append(element("h2", {}, "Summary"), cards);
  for (const capture of data.captures) {
    const list = element("dl");
    let title = "";
    for (const [heading, text, style] of capture.facts) {
      title = heading || title;
      if (["clients", "topics", "groups", "calls"].includes(title)) continue; // they have tables below
      const kind = style.includes("red") ? "bad" : style.includes("yellow") ? "warn" : style === "dim" ? "dim" : "";
      list.append(element("dt", {}, heading), element("dd", { class: kind }, text));
    }
    $("summary").append(several ? element("h3", {}, capture.name) : "", list);
  }

  // Filters.
  for (const name of names) $("api").append(element("option", { value: name }, name));
  const total = rows.reduce((last, row) => Math.max(last, row.time || 0), 0);
  const starts = rows.reduce((first, row) => Math.min(first, (row.time || 0) - (row.latency || 0)), 0);
  let view = { from: starts, to: Math.max(total, starts + 1000) };
  const whole = { ...view };
  const lines = rows.every((row) => row.number) ? "frames" : "frames and undecoded pieces";
  function filter() {
    const words = $("text").value.toLowerCase().split(/\s+/).filter(Boolean), api = $("api").value;
    const slow = $("slow").value === "" ? null : Number($("slow").value) * 1000;
    const zoomed = view.from > whole.from || view.to < whole.to;
    shown = rows.filter((row) =>
      words.every((word) => row.text.includes(word)) && (!api || row.api === api || asked(row) === api) && (!$("wrong").checked || row.error || row.note) &&
      (slow === null || (row.latency != null && row.latency > slow)) &&
      (!zoomed || (row.time >= view.from && row.time - (row.latency || 0) <= view.to)));
    $("count").textContent = `${number(shown.length)} of ${number(count)} ${lines}${zoomed ? ", those in the timeline's window" : ""}`;
    for (const box of $("latencies").children) box.setAttribute("aria-pressed", String(box.dataset.api === api));
    list.fill(shown);
    paint();
  }
  for (const id of ["text", "api", "wrong", "slow"]) $(id).addEventListener("input", filter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => { $("filters").reset(); view = { ...whole }; filter(); });

  // Timeline: a lane for each API, the most frequent on top; a bar from request to response.
  const canvas = $("timeline"), lanes = new Map();
  names.forEach((name, at) => lanes.set(name, Math.min(at, LANES - 1)));
  const height = AXIS + LANE * Math.max(1, Math.min(names.length, LANES));
  let wide = canvas.clientWidth; // stored, because reading it forces a layout of the page
  function across(time) { return LABELS + ((time - view.from) / (view.to - view.from)) * (wide - LABELS); }
  function time(x) { return view.from + ((x - LABELS) / (wide - LABELS)) * (view.to - view.from); }
  function paint() {
    const scale = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
    const width = wide = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = width * scale;
    canvas.height = height * scale;
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    const paints = new Map(names.map((name) => [name, colours.get(name).replace("var(--light)", colour("--light"))]));
    const text = colour("--dim"), bad = colour("--bad"), line = colour("--line");
    names.slice(0, LANES).forEach((name, at) => {
      const label = at === LANES - 1 && names.length > LANES ? "others" : name;
      pen.fillStyle = paints.get(name);
      pen.fillText(label.length > 24 ? `${label.slice(0, 23)}…` : label, 0, AXIS + at * LANE + 13);
      pen.fillStyle = line;
      pen.fillRect(LABELS, AXIS + (at + 1) * LANE - 1, width - LABELS, 0.5);
    });
    pen.fillStyle = text;
    const step = nice((view.to - view.from) / Math.max(2, (width - LABELS) / 130));
    for (let at = Math.ceil((data.begin + view.from) / step) * step - data.begin; at <= view.to; at += step) {
      pen.fillText(clock(at).slice(0, step >= 1e6 ? 8 : step >= 1e3 ? 12 : 15), across(at) + 3, 12);
      pen.fillRect(across(at), 0, 0.5, height);
    }
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, 0, width - LABELS, height);
    pen.clip();
    const painted = new Set(), marked = new Set(); // bars and marks at the same points are painted once
    for (const row of shown) {
      if (row.time == null || row.time < view.from || row.time - (row.latency || 0) > view.to) continue;
      const lane = lanes.get(row.api) ?? 0, top = AXIS + lane * LANE;
      const right = across(row.time), left = across(row.time - (row.latency || 0));
      const spot = `${lane} ${row.latency == null} ${Math.round(left)} ${Math.round(right)} ${lane === LANES - 1 ? row.api : ""}`;
      if (!painted.has(spot)) {
        painted.add(spot);
        pen.fillStyle = paints.get(row.api) || text;
        if (row.latency != null) pen.fillRect(left, top + 5, Math.max(right - left, 1.5), LANE - 9);
        else pen.fillRect(right, top + 3, 1.5, LANE - 5);
      }
      if (row.error && !marked.has(`${lane} ${Math.round(right)}`)) {
        marked.add(`${lane} ${Math.round(right)}`);
        pen.fillStyle = bad;
        pen.beginPath();
        pen.moveTo(right - 4, top); pen.lineTo(right + 4, top); pen.lineTo(right, top + 7);
        pen.fill();
      }
    }
    if (picked && picked.time != null) {
      const top = AXIS + (lanes.get(picked.api) ?? 0) * LANE, right = across(picked.time), left = across(picked.time - (picked.latency || 0));
      pen.strokeStyle = colour("--text");
      pen.strokeRect(left - 2, top + 1, Math.max(right - left, 2) + 4, LANE - 3);
    }
    pen.restore();
  }
  function nice(raw) {
    const base = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
    return [1, 2, 5, 10].map((factor) => factor * base).find((step) => step >= raw);
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, lane = Math.floor((event.clientY - box.top - AXIS) / LANE);
    let best = null, distance = 7;
    for (const row of shown) {
      if (row.time == null || (lanes.get(row.api) ?? 0) !== lane) continue;
      const right = across(row.time), left = across(row.time - (row.latency || 0));
      const away = x < left ? left - x : x > right ? x - right : Math.min(right - x, 3);
      if (away < distance) { best = row; distance = away; }
    }
    return best;
  }
  function zoom(factor, centre = (view.from + view.to) / 2) {
    const span = Math.min(whole.to - whole.from, Math.max((view.to - view.from) * factor, 10));
    shift(centre - ((centre - view.from) / (view.to - view.from)) * span, span);
  }
  function shift(from, span = view.to - view.from) {
    const start = Math.min(Math.max(from, whole.from), whole.to - span);
    view = { from: start, to: start + span };
    filter();
  }
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time(event.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: view.from, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    const row = drag && !drag.moved ? nearest(event) : null;
    drag = null;
    if (row) list.show(row);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const away = event.clientX - drag.x;
      drag.moved ||= Math.abs(away) > 3;
      if (drag.moved) shift(drag.from - (away / (canvas.clientWidth - LABELS)) * (view.to - view.from));
    }
    const row = drag ? null : nearest(event), tip = $("tip");
    tip.hidden = !row;
    if (!row) return;
    tip.textContent = `${row.number || ""} ${clock(row.time)} ${row.api} ${row.topics} ${row.latency == null ? "" : `${ms(row.latency)} ms`} ${row.error}`.replace(/\s+/g, " ");
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 300)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("dblclick", () => { view = { ...whole }; filter(); });
  canvas.addEventListener("keydown", (event) => {
    const span = view.to - view.from;
    const act = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1.7), 0: () => { view = { ...whole }; filter(); },
      ArrowLeft: () => shift(view.from - span / 4), ArrowRight: () => shift(view.from + span / 4) }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  new ResizeObserver(() => paint()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint());

  // The frames.
  const list = table($("frames"), "Frames", [
    { title: "#", value: (row) => row.number || null, number: true, width: "60px" },
    { title: "time", value: (row) => row.time, text: (row) => clock(row.time), width: "134px" },
    { title: "conn", value: (row) => row.connection, text: (row) => `${row.connection}${row.role}`, number: true, width: "60px" },
    { title: "ms", value: (row) => row.latency, text: (row) => ms(row.latency), number: true, width: "86px" },
    { title: "bytes", value: (row) => row.size, number: true, width: "70px" },
    { title: "API", value: (row) => row.api, text: (row) => row.api, width: `${Math.min(200, 24 + 7 * Math.max(4, ...names.map((name) => name.length)))}px`, paint: (row) => colours.get(row.api) || "" },
    { title: "topic, group", value: (row) => row.topics || row.group, text: (row) => [row.topics, row.group].filter(Boolean).join("  ") },
    { title: "error", value: (row) => row.error || row.note, text: (row) => row.error || row.note, style: () => "bad" },
    { title: "client", value: (row) => row.client, text: (row) => row.client, width: "150px" },
  ], rows, choose);

  // A frame: a chosen field highlights its bytes or bits, and a chosen byte its field.
  function choose(row) {
    picked = row;
    paint();
    const place = $("frame"), link = links.get(row.connection), content = data.opened[row.at];
    const partner = row.request ? byNumber.get(key(row, row.request)) : responses.get(key(row, row.number));
    const way = link ? (row.role === "←" ? `${link.server} → ${link.client}` : `${link.client} → ${link.server}`) : "";
    const bar = element("div", { class: "bar" },
      element("b", {}, `${row.number ? `frame ${row.number}` : row.error} · ${row.api}`), element("span", { class: "dim" }, `${clock(row.time, true)} · ${way}${several && link ? ` · ${data.captures[link.capture].name}` : ""}`));
    if (partner) bar.append(element("button", { type: "button", id: "partner", onclick: () => list.show(partner) }, row.request ? `its request, ${partner.number}` : `its response, ${partner.number}`));
    place.replaceChildren(bar);
    if (row.error || row.note) place.append(element("p", { class: "bad" }, [row.error, row.note].filter(Boolean).join(": ")));
    if (!content) {
      place.append(element("p", { class: "dim" }, row.number ? `The bytes of this frame are not in the page: wirekit frames --frame ${row.number} shows them.` : ""));
      return;
    }
    place.append(explorer(content));
  }
  function explorer(content) {
    const owners = content.pieces.map(() => new Map()), cells = content.pieces.map(() => new Map());
    const bitsAt = new Map(), node = element("div"), bits = element("div", { class: "bits", "aria-live": "polite" });
    const dump = element("div", { class: "bytes", role: "group", "aria-label": "Bytes" });
    const tree = element("div", { class: "fields", role: "listbox", "aria-label": "Fields", tabindex: -1 });
    content.fields.forEach(([, , , , , places, leaf], at) => {
      for (const [piece, start, end, bit] of leaf ? places : places.slice(0, -1)) {
        for (let index = start; index < end; index++) {
          if (!owners[piece].has(index)) owners[piece].set(index, []);
          owners[piece].get(index).push(at);
        }
        if (bit != null) bitsAt.set(`${piece}:${start}:${end}`, [...(bitsAt.get(`${piece}:${start}:${end}`) || []), at]);
      }
    });
    content.pieces.forEach(([hex, path, size], piece) => {
      if (piece) dump.append(element("div", {}, element("i", {}, `#${piece}: ${number(size)} bytes decompressed from ${path}`)));
      for (let start = 0; start < hex.length / 2; start += WIDTH) {
        const line = element("div", {}, element("i", {}, (start + (piece ? 0 : content.offset)).toString(16).padStart(8, "0"), " "));
        const texts = [];
        for (let index = start; index < Math.min(start + WIDTH, hex.length / 2); index++) {
          const digits = hex.slice(2 * index, 2 * index + 2), byte = Number.parseInt(digits, 16);
          const marks = { "data-piece": piece, "data-index": index };
          const cell = element("span", { class: "hex", ...marks }, digits === ".." ? "··" : digits);
          const shownAs = digits === ".." ? "·" : byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".";
          const text = element("span", marks, shownAs);
          cells[piece].set(index, [cell, text]);
          line.append(cell);
          texts.push(text);
        }
        line.append("   ".repeat(WIDTH - texts.length), "  ", ...texts);
        dump.append(line);
      }
      if (hex.length / 2 < size) dump.append(element("div", { class: "dim" }, `${number(size - hex.length / 2)} more bytes`));
    });
    const lines = content.fields.map(([depth, name, value, note, verdicts], at) => {
      const line = element("div", { role: "option", tabindex: at ? -1 : 0, "data-at": at, "aria-selected": "false" }, element("b", {}, name));
      line.style.paddingLeft = `${4 + 14 * depth}px`;
      if (value) line.append(` = ${value}`);
      if (note) line.append(element("span", { class: "dim" }, `  ${note}`));
      for (const [status, text] of verdicts) {
        line.append(element("span", { class: status === "bad" ? "bad" : status === "ok" ? "good" : "dim" }, `  ${{ bad: "✗", ok: "✓", absent: "– no" }[status]} ${text}`));
      }
      return line;
    });
    tree.append(...lines);
    if (content.more) tree.append(element("div", { class: "dim" }, `${number(content.more)} more fields`));
    let lit = [];
    function light(fields, places, scroll) {
      for (const each of lit) each.classList.remove("lit");
      lit = fields.map((at) => lines[at]);
      for (const [piece, start, end] of places) {
        for (let index = start; index < end; index++) lit.push(...(cells[piece].get(index) || []));
      }
      for (const each of lit) each.classList.add("lit");
      if (scroll === "fields" && fields.length) reveal(tree, lines[fields[0]]);
      if (scroll === "bytes" && places.length && cells[places[0][0]].get(places[0][1])) reveal(dump, cells[places[0][0]].get(places[0][1])[0]);
    }
    function reveal(box, inner) {
      const outer = box.getBoundingClientRect(), at = inner.getBoundingClientRect();
      if (at.top < outer.top || at.bottom > outer.bottom) box.scrollTop += at.top - outer.top - outer.height / 2;
    }
    // The bits of a number, each with the field that it belongs to.
    function drawBits(piece, start, end, field) {
      const group = bitsAt.get(`${piece}:${start}:${end}`) || [], hex = content.pieces[piece][0].slice(2 * start, 2 * end);
      bits.replaceChildren();
      if (hex.includes(".") || end - start > 8) return;
      const value = [...hex].map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
      bits.append(element("span", { class: "dim" }, `${end - start === 1 ? "byte" : "bytes"} ${hex} `), element("span", { class: "gap" }));
      [...value].forEach((bit, place) => {
        const low = value.length - 1 - place;
        const owner = group.find((at) => content.fields[at][5].some(([p, s, , first, size]) => p === piece && s === start && first != null && low >= first && low < first + size));
        const cell = element("span", { title: owner === undefined ? "" : content.fields[owner][1], "data-field": owner ?? "" }, bit);
        if (owner !== undefined) {
          cell.addEventListener("pointerenter", () => { light([owner], content.fields[owner][5], "fields"); mark(owner); });
        }
        if (place && place % 4 === 0) bits.append(element("span", { class: "gap" }));
        bits.append(cell);
      });
      mark(field);
    }
    function mark(field) {
      for (const cell of bits.children) cell.classList.toggle("lit", field !== undefined && cell.dataset.field === String(field));
    }
    function fromField(at, scroll = "bytes") {
      const places = content.fields[at][5], last = places[places.length - 1];
      light([at], places, scroll);
      if (last) drawBits(last[0], last[1], last[2], last[3] == null ? undefined : at);
      else bits.replaceChildren();
    }
    function fromByte(event) {
      const cell = event.target.closest("[data-index]");
      if (!cell) return;
      const piece = Number(cell.dataset.piece), index = Number(cell.dataset.index), fields = owners[piece].get(index) || [];
      const places = fields.flatMap((at) => content.fields[at][5]).filter(([p, start, end]) => p === piece && start <= index && index < end);
      light(fields, [...places, [piece, index, index + 1]], "fields");
      const grouped = places.find(([, , , bit]) => bit != null);
      if (grouped) drawBits(piece, grouped[1], grouped[2]);
      else drawBits(piece, index, index + 1);
    }
    dump.addEventListener("pointerover", fromByte);
    tree.addEventListener("pointerover", (event) => {
      const line = event.target.closest("[data-at]");
      if (line) fromField(Number(line.dataset.at));
    });
    tree.addEventListener("focusin", (event) => { if (event.target.dataset.at) fromField(Number(event.target.dataset.at)); });
    tree.addEventListener("keydown", (event) => {
      const at = Number(event.target.dataset.at), next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
      if (next === undefined || !lines[next]) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      lines[next].tabIndex = 0;
      lines[next].focus();
    });
    node.append(element("p", { class: "dim" }, `${content.schema}, ${number(content.pieces[0][2])} bytes. Point at a field or a byte.`), dump, bits, tree);
    return node;
  }

  // Latencies: a histogram for each API with responses, over powers of two.
  const measured = data.captures.flatMap((capture) => capture.apis).filter((api) => api.histogram.length);
  const ends = measured.flatMap((api) => [api.histogram[0][0], api.histogram[api.histogram.length - 1][0]]);
  const first = Math.min(...ends), last = Math.max(...ends);
  for (const api of measured.slice(0, 40)) {
    const name = `${api.api}${api.version == null ? "" : ` v${api.version}`}`, buckets = new Map(api.histogram), most = Math.max(...buckets.values());
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${last - first + 1} 100`);
    svg.setAttribute("preserveAspectRatio", "none");
    for (const [bucket, hits] of buckets) {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const tall = Math.max(2, (hits / most) * 100);
      for (const [attribute, value] of Object.entries({ x: bucket - first + 0.05, y: 100 - tall, width: 0.9, height: tall })) bar.setAttribute(attribute, value);
      bar.style.fill = colours.get(name) || "currentColor";
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = `${ms(2 ** (bucket / data.octave))} to ${ms(2 ** ((bucket + 1) / data.octave))} ms: ${number(hits)}`;
      bar.append(title);
      svg.append(bar);
    }
    const { p50, p95, p99, max } = api.latency_ms;
    const box = element("button", { type: "button", class: "histogram", "data-api": name, "aria-pressed": "false" },
      element("b", {}, name), ` ${number(api.answered)} ${api.answered === 1 ? "response" : "responses"}`, svg,
      element("span", { class: "dim" }, `p50 ${brief(p50)}  p95 ${brief(p95)}  p99 ${brief(p99)}  max ${brief(max)}`));
    box.addEventListener("click", () => { $("api").value = $("api").value === name ? "" : name; filter(); });
    $("latencies").append(box);
  }
  $("scale").textContent = measured.length ? `in ms, from ${ms(2 ** (first / data.octave))} to ${ms(1000 * Math.max(...measured.map((api) => api.latency_ms.max)))}, logarithmic` : "";
  if (!measured.length) $("latencies").append(element("p", { class: "dim" }, "No response has its request in the capture."));

  // All other tables.
  const captureColumn = several ? [{ title: "capture", value: (row) => data.captures[row.capture].name, text: (row) => data.captures[row.capture].name }] : [];
  const text = (title, name, width) => ({ title, value: (row) => row[name], text: (row) => row[name] ?? "", width });
  const plain = (title, name, width = "90px") => ({ title, value: (row) => row[name], number: true, width });
  const size = (title, name) => ({ title, value: (row) => row[name], text: (row) => (row[name] ? bytes(row[name]) : ""), number: true, width: "90px" });
  const each = (name) => data.captures.flatMap((capture, at) => capture[name].map((row) => ({ ...row, capture: at })));
  for (const [title, columns, items, search] of [
    ["Connections", [...captureColumn, plain("#", "number", "60px"), text("client", "client"), text("server", "server"), text("protocol", "protocol", "90px"), text("name", "name"),
      text("software", "software"), { title: "opened", value: (row) => row.opened, text: (row) => (row.opened == null ? "" : clock(row.opened - data.begin, true)), width: "220px" },
      plain("frames", "frames"), size("sent", "sent"), size("received", "received"), size("missing", "missing"), size("not decoded", "undecoded")], data.connections,
      (row) => { $("text").value = row.name; filter(); }],
    ["Topics", [...captureColumn, text("topic", "topic"), plain("calls", "calls"), plain("produced", "produced"), plain("delivered", "delivered"), size("bytes", "bytes")], each("topics"),
      (row) => { $("text").value = row.topic; filter(); }],
    ["Clients", [...captureColumn, text("client", "client"), text("address", "address"), text("software", "software"), plain("requests", "requests"), plain("connections", "connections")], each("clients"),
      (row) => { $("text").value = row.client || ""; filter(); }],
    ["Groups", [...captureColumn, text("group", "group_id"), plain("calls", "calls"), { title: "clients", value: (row) => row.clients.length, text: (row) => row.clients.join(", ") }], each("groups"),
      (row) => { $("text").value = row.group_id; filter(); }],
    ["Calls by API", [...captureColumn, text("protocol", "protocol", "90px"), text("API", "api"), plain("version", "version", "70px"), plain("calls", "calls"), plain("answered", "answered"),
      ...["p50", "p95", "p99", "max"].map((name) => ({ title: `${name} ms`, value: (row) => row.latency_ms && row.latency_ms[name], text: (row) => (row.latency_ms ? row.latency_ms[name].toFixed(3) : ""), number: true, width: "90px" })),
      { title: "errors", value: (row) => Object.values(row.errors).reduce((a, b) => a + b, 0), text: (row) => Object.entries(row.errors).map(([name, hits]) => `${name} ×${hits}`).join(", "), style: () => "bad" }], each("apis"),
      (row) => { $("api").value = `${row.api}${row.version == null ? "" : ` v${row.version}`}`; filter(); }],
  ]) {
    const find = element("input", { type: "search", placeholder: "filter", "aria-label": `Filter ${title.toLowerCase()}` });
    const place = element("section", { "aria-label": title }, element("div", { class: "bar" }, element("h2", {}, `${title} (${number(items.length)})`), find));
    $("tables").append(place);
    const made = table(place, title, columns, items, search);
    made.view.style.maxHeight = "320px";
    find.addEventListener("input", () => {
      const word = find.value.toLowerCase();
      made.fill(items.filter((row) => columns.some((column) => String(column.text ? column.text(row) : column.value(row)).toLowerCase().includes(word))));
    });
  }

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") { $("text").blur(); list.view.focus(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => $("text").focus(), j: () => list.move(1), k: () => list.move(-1), p: () => $("partner") && $("partner").click(),
      f: () => { const field = document.querySelector(".fields [tabindex='0']"); if (field) field.focus(); } }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  filter();
  document.documentElement.dataset.ready = "true";
})();
