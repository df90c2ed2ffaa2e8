"use strict";
// Everything from data goes in as text, never as markup.
(() => {
  const PAGE = 10, DIGITS = 6, LONG = 20;
  const make = (tag, attributes = {}, text = "") => {
    const it = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
    if (text !== "") it.textContent = text;
    return it;
  };
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const count = (n) => n.toLocaleString("en-US");

  // Tables that can be sorted, searched and downloaded.
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: DIGITS });
  const plain = (x) => x === 0 || (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15);
  const short = (x) => (plain(x) ? digits.format(x) : String(Number(x.toPrecision(DIGITS))));
  const csvCell = (value) => (/[",\r\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value);
  const csv = (columns, rows) => [columns, ...rows].map((row) => row.map(csvCell).join(",") + "\n").join("");

  const save = (name, text) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  const listing = (place) => {
    const { columns, rows, links, download } = data(place.dataset.rows);
    const numeric = columns.map((_, j) => rows.every((row) => row[j] === "" || (row[j] !== "" && isFinite(row[j]))));
    const longest = columns.map((_, j) => rows.reduce((most, row) => Math.max(most, row[j].length), 0));
    const look = longest.map((n) => (n > 4 * LONG ? "text longer" : n > LONG ? "text long" : "text"));
    const lower = rows.map((row) => row.join("\u0000").toLowerCase());
    let order = rows.map((_, i) => i), shown = order, sorted = -1, down = false, page = 0;

    const search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search " + place.dataset.what });
    const counted = make("span", { class: "count", "aria-live": "polite" });
    const button = make("button", { type: "button", class: "download" }, place.dataset.label);
    const above = make("div", { class: "bar" });
    above.append(search, counted, make("span", { class: "space" }), button);

    const table = make("table"), head = make("tr"), body = make("tbody"), scroll = make("div", { class: "scroll" });
    const heads = columns.map((name, j) => {
      const cell = make("th", { scope: "col", "aria-sort": "none", class: numeric[j] ? "" : "text" });
      const press = make("button", { type: "button", dir: "auto", title: `Sort by ${name}` }, name);
      press.addEventListener("click", () => { sort(j); });
      cell.append(press);
      head.append(cell);
      return cell;
    });
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    scroll.append(table);

    const before = make("button", { type: "button" }, "Previous"), after = make("button", { type: "button" }, "Next");
    const where = make("span", { class: "count" }), below = make("div", { class: "bar" });
    below.append(before, where, after);

    const compare = (j) => (a, b) => {
      const x = rows[a][j], y = rows[b][j];
      // What is empty stands last, either way.
      if (x === "" || y === "") return x === y ? a - b : x === "" ? 1 : -1;
      const sign = numeric[j] ? Number(x) - Number(y) : collator.compare(x, y);
      return (down ? -sign : sign) || a - b;
    };
    const sort = (j) => {
      down = sorted === j ? !down : false;
      sorted = j;
      heads.forEach((cell, i) => cell.setAttribute("aria-sort", i !== j ? "none" : down ? "descending" : "ascending"));
      order = rows.map((_, i) => i).sort(compare(j));
      filter();
    };
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = order.filter((i) => words.every((word) => lower[i].includes(word)));
      page = 0;
      draw();
    };
    const draw = () => {
      const pages = Math.max(1, Math.ceil(shown.length / PAGE));
      const part = shown.slice(page * PAGE, (page + 1) * PAGE);
      body.replaceChildren(...part.map((i) => {
        const line = make("tr");
        line.append(...rows[i].map((value, j) => {
          const cell = make("td", numeric[j] ? { class: "number" } : { class: look[j], dir: "auto" });
          // Whole numbers keep all their digits: they may be ids.
          const precise = numeric[j] && value.length > DIGITS + 4 && /[.e]/i.test(value);
          if (precise) cell.title = value;
          if (j === 0 && links.length) cell.append(make("a", { href: links[i] }, value));
          else if (numeric[j]) cell.textContent = precise ? short(Number(value)) : value;
          else cell.append(make("div", {}, value));
          return cell;
        }));
        return line;
      }));
      const what = place.dataset.what;
      counted.textContent = shown.length === rows.length ? `${count(rows.length)} ${what}` : `${count(shown.length)} of ${count(rows.length)} ${what}`;
      where.textContent = `${page + 1} of ${count(pages)}`;
      before.disabled = page === 0;
      after.disabled = page >= pages - 1;
      below.hidden = pages === 1;
    };
    search.addEventListener("input", filter);
    before.addEventListener("click", () => { page -= 1; draw(); });
    after.addEventListener("click", () => { page += 1; draw(); });
    button.addEventListener("click", () => {
      const file = download ?? { columns, rows };
      save(place.dataset.name, csv(file.columns, file.rows));
    });
    place.prepend(above, scroll, below);
    draw();
  };

  // Figures that tell the numbers behind the point at which one points.
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = (tag, attributes) => {
    const it = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
    return it;
  };
  const across = (axis, box, x) => {
    const [low, high] = axis.log ? axis.range.map(Math.log) : axis.range;
    return box[0] + (((axis.log ? Math.log(x) : x) - low) / (high - low)) * (box[2] - box[0]);
  };
  const up = (axis, box, y) => {
    const [low, high] = axis.log ? axis.range.map(Math.log) : axis.range;
    return box[3] - (((axis.log ? Math.log(y) : y) - low) / (high - low)) * (box[3] - box[1]);
  };
  const number = (x) => (Math.abs(x) >= 1e-3 && Math.abs(x) < 1e7) || x === 0 ? x.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : x.toExponential(3);

  const nearest = (xs, x) => {
    let best = 0;
    for (let i = 1; i < xs.length; i += 1) if (Math.abs(xs[i] - x) < Math.abs(xs[best] - x)) best = i;
    return best;
  };

  const curves = (panel, px) => {
    const places = panel.lines.map((line) => line.x.map((x) => across(panel.x, panel.box, x)));
    const closest = places.map((xs) => nearest(xs, px));
    const at = Math.min(...closest.map((i, k) => Math.abs(places[k][i] - px)));
    const texts = [], marks = [];
    let x = null;
    panel.lines.forEach((line, k) => {
      const i = closest[k];
      if (Math.abs(places[k][i] - px) > at + 0.01) return;
      x = line.x[i];
      marks.push(drawn("circle", { cx: places[k][i], cy: up(panel.y, panel.box, line.y[i]), r: 3.2, style: `fill: ${line.colour}; stroke: var(--paper)` }));
      texts.push([line.colour, `${line.name || panel.y.name}: ${number(line.y[i])}`]);
    });
    const middle = across(panel.x, panel.box, x);
    marks.unshift(drawn("line", { x1: middle, x2: middle, y1: panel.box[1], y2: panel.box[3], style: "stroke: var(--grey); stroke-width: .7" }));
    return { marks, texts: [[null, `${panel.x.name}: ${number(x)}`], ...texts], x: middle };
  };
  const bars = (panel, px) => {
    const places = panel.edges.map((x) => across(panel.x, panel.box, x));
    const i = Math.min(panel.names.length - 1, Math.max(0, places.findLastIndex((x) => x <= px)));
    const mark = drawn("rect", { x: places[i], width: places[i + 1] - places[i], y: panel.box[1], height: panel.box[3] - panel.box[1], style: "fill: var(--grey); fill-opacity: .15" });
    return { marks: [mark], texts: [[null, `${panel.x.name}: ${panel.names[i]}`], ...panel.values.map((it) => [null, `${it.name}: ${it.shares[i]}`])], x: (places[i] + places[i + 1]) / 2 };
  };
  const cells = (panel, px, py) => {
    const wide = (panel.box[2] - panel.box[0]) / panel.columns.length, high = (panel.box[3] - panel.box[1]) / panel.rows.length;
    const j = Math.min(panel.columns.length - 1, Math.max(0, Math.floor((px - panel.box[0]) / wide)));
    const i = Math.min(panel.rows.length - 1, Math.max(0, Math.floor((py - panel.box[1]) / high)));
    const mark = drawn("rect", { x: panel.box[0] + j * wide, y: panel.box[1] + i * high, width: wide, height: high, style: "fill: none; stroke: var(--orange); stroke-width: 1.5" });
    const value = panel.cells[i][j];
    const said = value === 1 ? "in" : value === 0 ? "not in" : `${number(value)} in`;
    return { marks: [mark], texts: [[null, panel.rows[i]], [null, `${said} group ${panel.columns[j]}${panel.title ? " (" + panel.title + ")" : ""}`]], x: panel.box[0] + (j + 0.5) * wide };
  };
  const tellers = { curves, bars, cells };

  const figure = (place) => {
    const panels = data(place.dataset.panels), canvas = place.querySelector(".canvas"), svg = canvas.querySelector("svg");
    if (!panels.length) return;
    const tip = make("div", { class: "tip", role: "status" }), layer = drawn("g", { class: "mark" });
    tip.hidden = true;
    canvas.append(tip);
    svg.append(layer);
    let last = null;
    const hide = () => { tip.hidden = true; layer.replaceChildren(); };
    const show = (panel, x, y) => {
      const told = tellers[panel.kind](panel, x, y);
      layer.replaceChildren(...told.marks);
      tip.replaceChildren(...told.texts.map(([colour, text]) => {
        const line = make("div", { dir: "auto" });
        if (colour) line.append(make("i", { style: `background: ${colour}` }));
        line.append(text);
        return line;
      }));
      tip.hidden = false;
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const left = told.x * scale, top = Math.max(0, y * scale - tip.offsetHeight - 8);
      tip.style.top = `${top}px`;
      tip.style.left = `${left + 12 + tip.offsetWidth > canvas.offsetWidth ? Math.max(0, left - 12 - tip.offsetWidth) : left + 12}px`;
      last = { panel, x: told.x, y };
    };
    const point = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const panel = panels.find(({ box }) => at.x >= box[0] - 6 && at.x <= box[2] + 6 && at.y >= box[1] - 6 && at.y <= box[3] + 6);
      if (panel) show(panel, at.x, at.y);
      else hide();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    canvas.addEventListener("blur", hide);
    // With the arrow keys from point to point.
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const panel = last?.panel ?? panels[0], middle = (panel.box[1] + panel.box[3]) / 2;
      const from = last?.x ?? panel.box[0];
      const stops = panel.kind === "curves" ? panel.lines.flatMap((line) => line.x.map((x) => across(panel.x, panel.box, x)))
        : panel.kind === "bars" ? panel.names.map((_, i) => (across(panel.x, panel.box, panel.edges[i]) + across(panel.x, panel.box, panel.edges[i + 1])) / 2)
          : panel.columns.map((_, j) => panel.box[0] + (j + 0.5) * (panel.box[2] - panel.box[0]) / panel.columns.length);
      const ahead = stops.filter((x) => (x - from) * step > 0.01);
      if (ahead.length) show(panel, step > 0 ? Math.min(...ahead) : Math.max(...ahead), last?.y ?? middle);
    });
  };

  // What is cut off at the right fades, until one has scrolled there.
  const fade = (place) => {
    const look = () => place.classList.toggle("more", place.scrollWidth - place.clientWidth - place.scrollLeft > 2);
    place.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(place);
    if (place.firstElementChild) watch.observe(place.firstElementChild);
  };

  document.querySelectorAll(".listing").forEach(listing);
  document.querySelectorAll(".drawing").forEach(figure);
  document.querySelectorAll(".scroll").forEach(fade);
  document.querySelectorAll(".shell").forEach((place) => {
    const button = place.querySelector(".copy");
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(place.querySelector("code").textContent.trim());
      button.textContent = "Copied";
    });
  });
})();
