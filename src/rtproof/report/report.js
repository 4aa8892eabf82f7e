// SPDX-License-Identifier: Apache-2.0
// Draws the plots of a report with uPlot. What uPlot lacks is here: ticks of logarithmic axes, steps and bins that may stand
// alone, heat maps, lines that mark a limit, and a legend that works by keyboard.
"use strict";
(() => {
  const PART_COLOURS = 8;
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [1, 2], [6, 2, 1, 2, 1, 2]];
  const OTHER_DASH = [5, 3];
  const FONT_PX = 12;
  const X_TICK_PX = 70;
  const DATE_TICK_PX = 92;
  const DOT_PX = 6;
  const Y_TICK_PX = 34;
  const NEAR_MARKER = 3; // a linear axis grows to hold a marker up to this many times further than the data

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const font = () => `${FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;

  // ---- numbers

  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const superscript = (n) => (n < 0 ? "⁻" : "") + [...String(Math.abs(n))].map((digit) => SUPERSCRIPTS[digit]).join("");

  function label(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e6) return Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 9 });
    const exponent = Math.floor(Math.log10(size) + 1e-9);
    const digits = Number((value / 10 ** exponent).toPrecision(3));
    return (digits === 1 ? "" : `${digits}·`) + `10${superscript(exponent)}`;
  }

  const LEAST_TICKS = 3;
  const exact = (value) => Number(value.toPrecision(12));

  // Decades; between them 2 and 5, or every digit, where there are few of them, and every n-th only where there are many.
  function logSplits(min, max, most) {
    const first = Math.floor(Math.log10(min));
    const last = Math.ceil(Math.log10(max));
    const splits = (steps, every) => {
      const found = [];
      for (let exponent = first; exponent <= last; exponent += every) {
        for (const step of steps) found.push(exact(step * 10 ** exponent));
      }
      return found.filter((value) => value >= min && value <= max);
    };
    const fine = splits([1, 2, 5], 1);
    if (fine.length <= most && fine.length >= LEAST_TICKS) return fine;
    for (let every = Math.max(1, Math.ceil((last - first) / Math.max(most, 1))); every >= 1; every--) {
      const decades = splits([1], every);
      if (decades.length >= LEAST_TICKS) return decades;
    }
    return fine.length >= LEAST_TICKS ? fine : linearSplits(min, max, most, false);
  }

  // Multiples of 1, 2 or 5 times a power of ten: at most as many as there is room for, but never fewer than three.
  function linearSplits(min, max, most, whole) {
    const span = max - min;
    let step = 10 ** Math.floor(Math.log10(span / Math.max(most, LEAST_TICKS)));
    let last = null;
    for (let at = 0; ; at++) {
      const width = exact(step * [1, 2, 5][at % 3] * 10 ** Math.floor(at / 3));
      const [first, end] = [Math.ceil(min / width - 1e-9), Math.floor(max / width + 1e-9)];
      if (last !== null && end - first + 1 < LEAST_TICKS) break;
      if (!whole || Number.isInteger(width)) last = [first, end, width];
      if (end - first + 1 <= most && last !== null) break;
      if (end - first + 1 < 1) break;
    }
    if (last === null) return [Math.ceil(min), Math.floor(max)];
    const [first, end, width] = last;
    return Array.from({ length: end - first + 1 }, (none, n) => exact((first + n) * width));
  }

  // ---- dates: x is in seconds since 1970, UTC

  const DAY_S = 86400;
  const DATE_STEPS_S = [60, 300, 900, 1800, 3600, 10800, 21600, 43200, ...[1, 2, 3, 4, 5, 7, 10, 14, 21, 28, 42, 56, 91, 120, 182, 273, 365, 547, 730, 1095, 1825, 3650, 7300, 18250].map((days) => days * DAY_S)];

  function dateLabel(seconds) {
    const text = new Date(Math.round(seconds * 1000)).toISOString();
    return seconds % DAY_S ? text.slice(0, 16).replace("T", " ") : text.slice(0, 10);
  }

  // On an axis within one year, which its name tells, a date needs no year.
  function shortDate(seconds, splits) {
    const years = new Set([splits[0], splits.at(-1)].map((split) => dateLabel(split).slice(0, 4)));
    if (years.size > 1) return dateLabel(seconds);
    const when = new Date(Math.round(seconds * 1000));
    const day = when.toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });
    return seconds % DAY_S ? `${day} ${dateLabel(seconds).slice(11)}` : day;
  }

  const xText = (plot, value) => (plot.xDates ? dateLabel(value) : label(value));
  const yText = (plot, value) => plot.rowNames?.find(([middle]) => middle === value)?.[1] ?? label(value);

  // The widest step that leaves at least three dates, of those that have room.
  function dateSplits(min, max, most) {
    const splits = (step) => {
      const first = Math.ceil(min / step);
      return Array.from({ length: Math.max(0, Math.floor(max / step) - first + 1) }, (none, n) => (first + n) * step);
    };
    const counts = (step) => Math.floor(max / step) - Math.ceil(min / step) + 1;
    const fitting = DATE_STEPS_S.find((step) => counts(step) <= most && counts(step) >= LEAST_TICKS);
    const fewest = DATE_STEPS_S.findLast((step) => counts(step) >= LEAST_TICKS);
    const step = fitting ?? fewest;
    return step ? splits(step) : linearSplits(min, max, most, false);
  }

  // ---- ranges

  const finite = (values) => values.filter((value) => value !== null && Number.isFinite(value));

  const wholeNumbers = (plot) => plot.curves.every((curve) => finite(curve.y).every(Number.isInteger));

  function withMarkers(plot, axis, [low, high], log) {
    const reach = Math.max(Math.abs(low), Math.abs(high));
    const near = plot.markers.filter((marker) => marker.axis === axis && (log ? marker.at > 0 : Math.abs(marker.at) <= NEAR_MARKER * reach));
    const all = [low, high, ...near.map((marker) => marker.at)];
    return [Math.min(...all), Math.max(...all)];
  }

  function padded([low, high], log, share) {
    if (log) {
      const factor = high > low ? (high / low) ** share : 2;
      return [low / factor, high * factor];
    }
    const margin = (high - low || Math.abs(high) || 1) * share;
    return [low - margin, high + margin];
  }

  function xRange(plot) {
    if (plot.kind === "heat") return [plot.xEdges[0], plot.xEdges.at(-1)];
    if (plot.xEnds) return plot.xEnds;
    const end = plot.x.at(-1) + plot.binWidth;
    return padded(withMarkers(plot, "x", [plot.x[0], end], plot.logX), plot.logX, 0.02);
  }

  function yRange(plot) {
    if (plot.yEnds) return plot.yEnds;
    const values = finite(plot.curves.flatMap((curve) => curve.y)).filter((value) => !plot.logY || value > 0);
    if (plot.kind === "heat") values.push(plot.yEdges[0], plot.yEdges.at(-1));
    const ends = [Math.min(...values), Math.max(...values)];
    const held = withMarkers(plot, "y", ends, plot.logY);
    if (plot.kind === "heat") return held;
    if (plot.logY && plot.style === "bars") return [(wholeNumbers(plot) ? Math.min(1, held[0]) : held[0]) * 0.6, held[1] * 1.5];
    // The name of a limit above the plot gets room over the curve.
    const beyond = plot.markers.some((marker) => marker.axis === "y" && marker.at > held[1]);
    const range = padded(held, plot.logY, beyond ? 0.25 : plot.yWords.some(Boolean) ? 0.15 : 0.06);
    return !plot.logY && held[0] >= 0 ? [0, wholeNumbers(plot) ? Math.max(range[1], 2.1) : range[1]] : range;
  }

  // ---- paths

  const drawn = (plot, value) => value !== null && value !== undefined && (!plot.logY || value > 0);

  // Bins as a skyline: a bin without neighbours is a stem, however narrow.
  function barPath(plot, u, series, pen = () => new Path2D()) {
    const [stroke, fill] = [pen(), pen()];
    const [floor, values] = [u.bbox.top + u.bbox.height, u.data[series]];
    let last = null;
    const close = () => { if (last !== null) { stroke.lineTo(last, floor); fill.lineTo(last, floor); } };
    u.data[0].forEach((x, at) => {
      if (!drawn(plot, values[at])) return;
      const left = u.valToPos(x, "x", true);
      const right = u.valToPos(plot.binWidth ? x + plot.binWidth : u.data[0][at + 1], "x", true);
      const top = u.valToPos(values[at], "y", true);
      if (last === null || left - last > 0.5) {
        close();
        stroke.moveTo(left, floor);
        fill.moveTo(left, floor);
      }
      for (const path of [stroke, fill]) { path.lineTo(left, top); path.lineTo(right, top); }
      last = right;
    });
    close();
    return { stroke, fill, clip: null, flags: 0 };
  }

  // Steps hold until the next x of the plot; a level of 0 on a logarithmic axis ends the line.
  function stepPath(plot, u, series, pen = () => new Path2D()) {
    const stroke = pen();
    let level = null;
    u.data[0].forEach((x, at) => {
      const value = u.data[series][at];
      if (value === null || value === undefined) return;
      const left = u.valToPos(x, "x", true);
      if (level !== null) stroke.lineTo(left, level);
      const next = drawn(plot, value) ? u.valToPos(value, "y", true) : null;
      if (next !== null && level === null) stroke.moveTo(left, next);
      else if (next !== null) stroke.lineTo(left, next);
      level = next;
    });
    return { stroke, fill: null, clip: null, flags: 0 };
  }

  function linePath(plot, u, series, pen = () => new Path2D()) {
    const stroke = pen();
    let begun = false;
    u.data[0].forEach((x, at) => {
      const value = u.data[series][at];
      if (!drawn(plot, value)) return;
      const [left, top] = [u.valToPos(x, "x", true), u.valToPos(value, "y", true)];
      if (begun) stroke.lineTo(left, top);
      else stroke.moveTo(left, top);
      begun = true;
    });
    return { stroke, fill: null, clip: null, flags: 0 };
  }

  // A line of no length with round ends is a dot, on the canvas and in a file.
  function dotPath(plot, u, series, pen = () => new Path2D()) {
    const stroke = pen();
    u.data[0].forEach((x, at) => {
      const value = u.data[series][at];
      if (!drawn(plot, value)) return;
      const [left, top] = [u.valToPos(x, "x", true), u.valToPos(value, "y", true)];
      stroke.moveTo(left - 0.05, top);
      stroke.lineTo(left + 0.05, top);
    });
    return { stroke, fill: null, clip: null, flags: 0 };
  }

  const PATHS = { bars: barPath, step: stepPath, line: linePath, dots: stepPath };
  const pathOf = (plot, style) => (style.dot ? dotPath : PATHS[plot.style]);

  // ---- what uPlot does not draw

  // Cells of a heat map as plotdata.py writes them.
  const SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const NO_SHADE = ".";
  const opacity = (share) => 0.18 + 0.67 * share;

  // The cells of a heat map with equal neighbours in one: each calls draw(row, first column, column behind the last, opacity).
  function eachRun(plot, draw) {
    plot.shades.forEach((row, r) => {
      for (let first = 0, c = 1; c <= row.length; c++) {
        if (row[c] === row[first]) continue;
        if (row[first] !== NO_SHADE) draw(r, first, c, opacity(SHADES.indexOf(row[first]) / (SHADES.length - 1)));
        first = c;
      }
    });
  }

  // Cells meet at whole pixels: at fractions of one, seams would show between them.
  function drawHeat(plot, u) {
    const xs = plot.xEdges.map((x) => Math.round(u.valToPos(x, "x", true)));
    const ys = plot.yEdges.map((y) => Math.round(u.valToPos(y, "y", true)));
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    u.ctx.fillStyle = colour("heat");
    eachRun(plot, (r, first, end, alpha) => {
      u.ctx.globalAlpha = alpha;
      u.ctx.fillRect(xs[first], ys[r + 1], Math.max(xs[end] - xs[first], 1), Math.max(ys[r] - ys[r + 1], 1));
    });
    u.ctx.restore();
  }

  function drawMarkers(plot, u) {
    const { left, top, width, height } = u.bbox;
    const ratio = devicePixelRatio || 1;
    u.ctx.save();
    u.ctx.font = `600 ${FONT_PX * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    u.ctx.lineWidth = 1.5 * ratio;
    u.ctx.setLineDash([8 * ratio, 4 * ratio]);
    const wordsAt = (text, y, baseline) => {
      u.ctx.fillStyle = colour("soft");
      [u.ctx.textAlign, u.ctx.textBaseline] = ["left", baseline];
      if (text) words(u.ctx, text, left + 6 * ratio, y, ratio);
    };
    const [below, above] = plot.yWords ?? ["", ""];
    wordsAt(above && `↑ ${above}`, top + 4 * ratio, "top");
    wordsAt(below && `↓ ${below}`, top + height - 4 * ratio, "bottom");
    const box = { left, top, right: left + width, bottom: top + height };
    const placed = plot.markers.map((marker) => [marker, u.valToPos(marker.at, marker.axis, true)]);
    const ink = (marker) => { u.ctx.strokeStyle = u.ctx.fillStyle = colour(marker.role === "limit" ? "limit" : "soft"); };
    // All lines before all words: no line is drawn through the name of another.
    for (const [marker, at] of placed) {
      ink(marker);
      if (marker.axis === "x" && at >= box.left && at <= box.right) line(u.ctx, at, box.top, at, box.bottom);
      if (marker.axis === "y" && at >= box.top && at <= box.bottom) line(u.ctx, box.left, at, box.right, at);
    }
    // The names of vertical lines begin below that of a horizontal line at the top.
    const covered = placed.some(([marker, at]) => marker.axis === "y" && at - top < 2 * FONT_PX * ratio);
    let row = covered ? 1.6 : 0;
    for (const [marker, at] of placed) {
      ink(marker);
      if (marker.axis === "x") drawAcross(u.ctx, marker.name, at, ratio, row++, box);
      else drawAlong(u.ctx, marker.name, at, ratio, box);
    }
    u.ctx.restore();
  }

  // A marker outside the plot is named at the edge behind which it lies.
  function drawAcross(ctx, name, at, ratio, row, box) {
    const [before, inside] = [at < box.left, at >= box.left && at <= box.right];
    const text = inside ? name : before ? `← ${name}` : `${name} →`;
    const edge = inside ? at : before ? box.left : box.right;
    const width = ctx.measureText(text).width + 8 * ratio;
    const [rightwards, leftwards] = [edge + width < box.right, edge - width > box.left];
    const place = rightwards ? edge + 5 * ratio : leftwards ? edge - 5 * ratio : box.left + 5 * ratio;
    ctx.textAlign = !rightwards && leftwards ? "right" : "left";
    ctx.textBaseline = "top";
    words(ctx, text, place, box.top + (3 + row * (FONT_PX + 4)) * ratio, ratio);
  }

  function drawAlong(ctx, name, at, ratio, box) {
    const [above, inside] = [at < box.top, at >= box.top && at <= box.bottom];
    const edge = inside ? at : above ? box.top : box.bottom;
    const downwards = edge - box.top < 20 * ratio;
    ctx.textAlign = "right";
    ctx.textBaseline = downwards ? "top" : "bottom";
    words(ctx, inside ? name : `${name} ${above ? "↑" : "↓"}`, box.right - 5 * ratio, edge + (downwards ? 3 : -3) * ratio, ratio);
  }

  function line(ctx, x1, y1, x2, y2) {
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  }

  // Words on a rim of the page's colour, so that they can be read over curves.
  function words(ctx, text, x, y, ratio) {
    ctx.save();
    ctx.setLineDash([]);
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * ratio;
    ctx.strokeStyle = colour("paper");
    ctx.strokeText(text, x, y);
    ctx.restore();
    ctx.fillText(text, x, y);
  }

  // ---- uPlot's options

  function look(plot) {
    let parts = 0;
    const singles = plot.curves.some(thin);
    return plot.curves.map((curve) => {
      if (curve.group !== null) return inGroup(curve, singles);
      if (curve.role === "whole") return { name: "whole", width: 2.2, dash: [] };
      if (curve.role === "other") return { name: "other", width: 2, dash: OTHER_DASH };
      const number = parts++;
      if (plot.style === "dots") return { name: `curve-${number % PART_COLOURS}`, width: DOT_PX, dash: [], dot: true };
      return { name: `curve-${number % PART_COLOURS}`, width: 1.4, dash: DASHES[number % DASHES.length] };
    });
  }

  const thin = (curve) => curve.group !== null && curve.role === "part";

  // Beside thin curves the one of all is bold. Colours come again after the last, with another dash.
  function inGroup(curve, singles) {
    const name = `curve-${curve.group % PART_COLOURS}`;
    if (thin(curve)) return { name, width: 0.8, dash: [], faint: true };
    if (curve.role !== "whole") return { name, width: 1.6, dash: OTHER_DASH };
    const again = Math.floor(curve.group / PART_COLOURS);
    return { name, width: singles ? 2.6 : 1.6, dash: DASHES[(curve.group + again) % DASHES.length] };
  }

  function seriesOptions(plot, curve, style) {
    const filled = plot.style === "bars" && plot.kind === "plot" && plot.curves.length === 1;
    return {
      label: curve.name,
      width: style.width,
      dash: style.dash,
      cap: style.dot ? "round" : "butt",
      stroke: () => (style.faint ? `color-mix(in srgb, ${colour(style.name)} 55%, transparent)` : colour(style.name)),
      fill: filled ? () => `color-mix(in srgb, ${colour(style.name)} 22%, transparent)` : undefined,
      paths: (u, series) => pathOf(plot, style)(plot, u, series),
      points: { show: false },
    };
  }

  // names: those of the rows of a heat map, with their places, where they stand on the axis in place of numbers.
  function axisOptions(name, log, whole, words, space, { dates, names } = {}) {
    const most = (u) => Math.max(LEAST_TICKS, Math.floor((name === "x" ? u.bbox.width : u.bbox.height) / (devicePixelRatio || 1) / space));
    const axis = {
      scale: name,
      label: words,
      labelSize: 22,
      labelFont: font(),
      font: font(),
      space,
      stroke: () => colour("soft"),
      grid: { stroke: () => colour("grid"), width: 1 },
      ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
      values: (u, splits) => splits.map((split) => (split === null ? null : dates ? shortDate(split, splits) : yText({ rowNames: names }, split))),
      filter: (u, splits) => splits,
      splits: (u, index, min, max) => (names ? names.map(([middle]) => middle) : dates ? dateSplits(min, max, most(u)) : log ? logSplits(min, max, most(u)) : linearSplits(min, max, most(u), whole)),
    };
    if (name === "x") axis.size = 30;
    if (name === "y") axis.size = (u, values) => Math.max(40, 14 + Math.max(0, ...(values ?? []).map((text) => (text ?? "").length)) * 7.2);
    return axis;
  }

  function options(plot, styles, width, height, hooks) {
    const [wholeX, wholeY] = [xRange(plot), yRange(plot)];
    const zoomed = (min, max) => plot.x.length > 1 && (min !== plot.x[0] || max !== plot.x.at(-1)) && min !== null && max > min;
    return {
      width,
      height,
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      scales: {
        x: { time: false, distr: plot.logX ? 3 : 1, range: (u, min, max) => (zoomed(min, max) ? [min, max] : wholeX) },
        y: { distr: plot.logY ? 3 : 1, range: () => wholeY },
      },
      axes: [axisOptions("x", plot.logX, false, plot.xLabel, plot.xDates ? DATE_TICK_PX : X_TICK_PX, { dates: plot.xDates }), axisOptions("y", plot.logY, !plot.logY && wholeNumbers(plot), plot.yLabel, Y_TICK_PX, { names: plot.rowNames })],
      series: [{}, ...plot.curves.map((curve, at) => seriesOptions(plot, curve, styles[at]))],
      hooks,
    };
  }

  // ---- legend

  const SVG = "http://www.w3.org/2000/svg";

  function svg(kind, attributes) {
    const node = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  function swatch(style) {
    if (style.dot) return dotSwatch(style);
    const picture = svg("svg", { width: 26, height: 10, class: style.name, "aria-hidden": "true" });
    const dash = style.dash.length ? { "stroke-dasharray": style.dash.join(" ") } : {};
    picture.append(svg("line", { x1: 0, y1: 5, x2: 26, y2: 5, stroke: "currentColor", "stroke-width": style.width + 0.6, ...dash }));
    return picture;
  }

  function dotSwatch(style) {
    const picture = svg("svg", { width: 10, height: 10, class: style.name, "aria-hidden": "true" });
    picture.append(svg("circle", { cx: 5, cy: 5, r: DOT_PX / 2 + 0.5, fill: "currentColor" }));
    return picture;
  }

  function legendButton(name, style, toggle) {
    const button = document.createElement("button");
    const value = document.createElement("span");
    value.className = "value";
    button.type = "button";
    button.title = "Show or hide this curve";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch(style), name, value);
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      toggle(shown);
    });
    return { button, value };
  }

  // What the legend names: each curve, but the thin ones of a group together.
  function legendEntries(plot) {
    const together = new Map();
    const entries = [];
    plot.curves.forEach((curve, at) => {
      const known = thin(curve) ? together.get(curve.group) : undefined;
      if (known) known.at.push(at);
      else entries.push({ curve, at: [at] });
      if (thin(curve) && !known) together.set(curve.group, entries.at(-1));
    });
    const whole = (group) => plot.curves.find((curve) => curve.group === group && curve.role === "whole")?.name ?? "";
    const alike = (at) => at.every((each) => plot.curves[each].name === plot.curves[at[0]].name);
    const several = (curve, at) => (alike(at) ? curve.name : `${whole(curve.group)}: ${at.length} single runs`);
    const name = ({ curve, at }) => (at.length > 1 ? several(curve, at) : curve.name);
    return entries.map((entry) => ({ at: entry.at, name: name(entry) }));
  }

  // Shades of the heat map from one value in a cell to the most.
  function heatKey(plot) {
    const most = plot.most;
    const key = document.createElement("span");
    key.className = "key";
    const picture = svg("svg", { width: 60, height: 10, class: "heat", "aria-hidden": "true" });
    for (let step = 0; step < 6; step++) {
      const share = most > 1 ? step / 5 : 1;
      picture.append(svg("rect", { x: step * 10, y: 0, width: 10, height: 10, fill: "currentColor", "fill-opacity": opacity(share) }));
    }
    key.append(picture, most > 1 ? ` 1 to ${label(most)} in a cell` : " 1 in a cell");
    return key;
  }

  // The level of a curve at the cursor: of its last point at or left of it.
  function levelAt(u, series, index) {
    for (let at = index; at >= 0; at--) {
      const value = u.data[series][at];
      if (value !== null && value !== undefined) return value;
    }
    return null;
  }

  function readOut(plot, u, entries, where) {
    const index = u.cursor.idx;
    const shown = index !== null && index !== undefined && u.cursor.left >= 0;
    where.textContent = shown ? `at ${xText(plot, u.data[0][index])}: ` : "";
    entries.filter(({ at }) => at.length === 1).forEach(({ at: [at], value: node }) => {
      const value = !shown ? null : plot.style === "step" ? levelAt(u, at + 1, index) : u.data[at + 1][index];
      node.textContent = value === null || value === undefined ? "" : label(Number(value.toPrecision(4)));
    });
  }

  // ---- zoom: the plots over time show the same stretch

  const together = new Map();
  let following = false;

  function showToo(u, plot) {
    if (following || !plot.xLabel.startsWith("time ")) return;
    following = true;
    const { min, max } = u.scales.x;
    for (const other of together.get(plot.xLabel) ?? []) {
      if (other !== u && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale("x", { min, max });
    }
    following = false;
  }

  // The wheel alone scrolls the page; with Ctrl, or by two fingers, it zooms about the cursor.
  function zoomByWheel(u, plot) {
    const [place, value] = plot.logX ? [Math.log, Math.exp] : [(x) => x, (x) => x];
    u.over.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const [low, high] = [place(u.scales.x.min), place(u.scales.x.max)];
      const [first, last] = xRange(plot).map(place);
      const share = (event.clientX - u.over.getBoundingClientRect().left) / u.over.clientWidth;
      const span = (high - low) * Math.min(2, Math.max(0.5, Math.exp(event.deltaY / 300)));
      const from = Math.max(first, low + share * (high - low) - share * span);
      const to = Math.min(last, from + span);
      if (to - from > (last - first) * 1e-6) u.setScale("x", { min: value(from), max: value(to) });
    }, { passive: false });
  }

  // ---- a plot as a file

  function escaped(text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  }

  function svgPen() {
    const steps = [];
    const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    return { moveTo: (x, y) => steps.push(`M${at(x, y)}`), lineTo: (x, y) => steps.push(`L${at(x, y)}`), text: () => steps.join("") };
  }

  // The plot as it is shown, with its title and the names of its curves. Sizes are those of the canvas.
  function svgOf(plot, u, styles) {
    const ratio = devicePixelRatio || 1;
    const { left, top, width, height } = u.bbox;
    const [size, title] = [FONT_PX * ratio, 28 * ratio];
    const shown = plot.curves.map((curve, at) => at).filter((at) => u.series[at + 1].show && !thin(plot.curves[at]));
    const [wide, high] = [u.width * ratio, u.height * ratio + title + (shown.length + 1) * 1.5 * size];
    const out = [];
    const tag = (name, attributes, text) => {
      const told = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`).join("");
      out.push(text === undefined ? `<${name}${told}/>` : `<${name}${told}>${escaped(text)}</${name}>`);
    };
    const say = (text, x, y, more) => tag("text", { x, y, fill: colour("soft"), ...more }, text);
    const rule = (x1, y1, x2, y2, more) => tag("line", { x1, y1, x2, y2, stroke: colour("grid"), "stroke-width": ratio, ...more });
    tag("rect", { x: 0, y: -title, width: wide, height: high, fill: colour("paper") });
    say(plot.title, left, 14 * ratio - title, { fill: colour("ink"), "font-weight": 600 });
    for (const [axis, scale] of [[u.axes[0], u.scales.x], [u.axes[1], u.scales.y]]) {
      for (const split of axis.splits(u, 0, scale.min, scale.max)) {
        const at = u.valToPos(split, axis.scale, true);
        if (axis.scale === "x") {
          rule(at, top, at, top + height);
          say(xText(plot, split), at, top + height + 1.6 * size, { "text-anchor": "middle" });
        } else {
          rule(left, at, left + width, at);
          say(yText(plot, split), left - 0.6 * size, at + 0.35 * size, { "text-anchor": "end" });
        }
      }
    }
    say(plot.xLabel, left + width / 2, top + height + 3.2 * size, { "text-anchor": "middle" });
    say(plot.yLabel, 0, 0, { transform: `translate(${1.1 * size} ${top + height / 2}) rotate(-90)`, "text-anchor": "middle" });
    out.push(`<clipPath id="inside"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#inside)">`);
    if (plot.kind === "heat") {
      const [xs, ys] = [plot.xEdges.map((x) => u.valToPos(x, "x", true)), plot.yEdges.map((y) => u.valToPos(y, "y", true))];
      eachRun(plot, (r, first, end, alpha) => tag("rect", {
        x: xs[first].toFixed(2), y: ys[r + 1].toFixed(2), width: (xs[end] - xs[first]).toFixed(2), height: (ys[r] - ys[r + 1]).toFixed(2),
        fill: colour("heat"), "fill-opacity": alpha.toFixed(3),
      }));
    }
    plot.curves.forEach((curve, at) => {
      if (!u.series[at + 1].show) return;
      const style = styles[at];
      const { stroke } = pathOf(plot, style)(plot, u, at + 1, svgPen);
      tag("path", {
        d: stroke.text(), fill: "none", stroke: colour(style.name), "stroke-width": style.width * ratio,
        "stroke-opacity": style.faint ? 0.55 : 1, "stroke-dasharray": style.dash.map((part) => part * ratio).join(" ") || "none",
        ...(style.dot ? { "stroke-linecap": "round" } : {}),
      });
    });
    out.push("</g>");
    const [below, above] = plot.yWords ?? ["", ""];
    if (above) say(`↑ ${above}`, left + 0.5 * size, top + 1.2 * size, { "font-weight": 600 });
    if (below) say(`↓ ${below}`, left + 0.5 * size, top + height - 0.5 * size, { "font-weight": 600 });
    plot.markers.forEach((marker, row) => {
      const at = u.valToPos(marker.at, marker.axis, true);
      const stroke = colour(marker.role === "limit" ? "limit" : "soft");
      const dashed = { stroke, "stroke-width": 1.5 * ratio, "stroke-dasharray": `${8 * ratio} ${4 * ratio}` };
      const across = marker.axis === "x";
      const inside = across ? at >= left && at <= left + width : at >= top && at <= top + height;
      if (inside && across) rule(at, top, at, top + height, dashed);
      else if (inside) rule(left, at, left + width, at, dashed);
      const before = across ? at < left : at < top;
      const arrow = across ? (before ? `← ${marker.name}` : `${marker.name} →`) : `${marker.name} ${before ? "↑" : "↓"}`;
      const [x, y] = [Math.min(Math.max(at, left), left + width), Math.min(Math.max(at, top + 1.3 * size), top + height)];
      const end = !across || x > left + width / 2;
      say(inside ? marker.name : arrow, across ? x + (end ? -0.4 : 0.4) * size : left + width - 0.4 * size, across ? top + (1 + 1.3 * row) * size : y - 0.3 * size,
        { fill: stroke, "text-anchor": end ? "end" : "start", "font-weight": 600 });
    });
    shown.forEach((at, row) => {
      const y = u.height * ratio + (row + 0.8) * 1.5 * size;
      rule(left, y - 0.35 * size, left + 26 * ratio, y - 0.35 * size, { stroke: colour(styles[at].name), "stroke-width": (styles[at].width + 0.6) * ratio, "stroke-dasharray": styles[at].dash.join(" ") || "none" });
      say(plot.curves[at].name, left + 34 * ratio, y, { fill: colour("ink") });
    });
    const head = `xmlns="${SVG}" width="${wide / ratio}" height="${high / ratio}" viewBox="0 ${-title} ${wide} ${high}"`;
    return `<svg ${head} font-family="sans-serif" font-size="${size}">${out.join("")}</svg>\n`;
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  const fileName = (plot, suffix) => `${plot.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.${suffix}`;

  function saveAsPng(plot, u) {
    const [canvas, ratio] = [document.createElement("canvas"), devicePixelRatio || 1];
    [canvas.width, canvas.height] = [u.ctx.canvas.width, u.ctx.canvas.height + 28 * ratio];
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = colour("paper");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.fillStyle = colour("ink");
    ctx.font = `600 ${1.2 * FONT_PX * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.fillText(plot.title, u.bbox.left, 18 * ratio);
    ctx.drawImage(u.ctx.canvas, 0, 28 * ratio);
    canvas.toBlob((blob) => download(blob, fileName(plot, "png")));
  }

  function saveButtons(plot, styles, chart) {
    const box = document.createElement("span");
    box.className = "save";
    const button = (name, save) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = name;
      made.setAttribute("aria-label", `Save “${plot.title}” as ${name}`);
      made.addEventListener("click", save);
      box.append(made);
    };
    button("SVG", () => download(new Blob([svgOf(plot, chart(), styles)], { type: "image/svg+xml" }), fileName(plot, "svg")));
    button("PNG", () => saveAsPng(plot, chart()));
    return box;
  }

  // ---- one plot

  const heightFor = (width) => Math.round(Math.min(380, Math.max(230, width * 0.42)));

  function draw(chart, plot) {
    const styles = look(plot);
    const legend = document.createElement("div");
    legend.className = "legend";
    const where = document.createElement("span");
    where.className = "value";
    let u = null;
    const entries = legendEntries(plot).map(({ name, at }) => ({
      at,
      ...legendButton(name, styles[at[0]], (shown) => at.forEach((one) => u.setSeries(one + 1, { show: shown }))),
    }));
    if (plot.kind === "heat") legend.append(heatKey(plot));
    legend.append(where, ...entries.map((entry) => entry.button), saveButtons(plot, styles, () => u));
    const hooks = {
      drawAxes: [(self) => plot.kind === "heat" && drawHeat(plot, self)],
      draw: [(self) => drawMarkers(plot, self), () => { chart.dataset.drawn = String(Number(chart.dataset.drawn ?? 0) + 1); }],
      setCursor: [(self) => readOut(plot, self, entries, where)],
      setScale: [(self, scale) => scale === "x" && u !== null && showToo(self, plot)],
    };
    const data = [plot.x, ...plot.curves.map((curve) => curve.y)];
    u = new uPlot(options(plot, styles, chart.clientWidth, heightFor(chart.clientWidth), hooks), data, chart);
    together.set(plot.xLabel, [...(together.get(plot.xLabel) ?? []), u]);
    zoomByWheel(u, plot);
    u.over.title = "Drag or Ctrl + wheel: zoom. Double click: all";
    chart.after(legend);
    new ResizeObserver(() => {
      const width = chart.clientWidth;
      if (width > 0 && width !== u.width) u.setSize({ width, height: heightFor(width) });
    }).observe(chart);
    window.rtproofPlots.set(chart.closest("figure").id, { u, plot, svg: () => svgOf(plot, u, styles), labels: () => labels(plot, u) });
    return u;
  }

  const labels = (plot, u) => u.axes.map((axis) => axis.splits(u, 0, u.scales[axis.scale].min, u.scales[axis.scale].max)
    .map((split) => (axis.scale === "x" ? xText : yText)(plot, split)));

  // ---- tables: the name of a curve has the colour of the curve

  function stylesByName(all) {
    const found = new Map();
    for (const plot of all) {
      look(plot).forEach((style, at) => {
        const { name, group } = plot.curves[at];
        if (group === null || style.faint) return;
        const known = found.get(name);
        if (known === undefined || known?.name === style.name) found.set(name, known ?? style);
        else found.set(name, null);
      });
    }
    return found;
  }

  // A column is of a curve by its heading, a row by one of its first two cells, or by both together.
  function markRows(styles) {
    const mark = (cell, name) => { if (styles.get(name)) cell.prepend(swatch(styles.get(name)), " "); };
    for (const table of document.querySelectorAll("table")) {
      let first = "";
      for (const row of table.rows) {
        const cells = [...row.cells].map((cell) => [cell, cell.textContent]);
        const named = cells[0]?.[0].scope === "row";
        if (named) first = cells[0][1];
        const second = cells[named ? 1 : 0];
        const naming = cells.filter(([cell], at) => cell.scope === "col" || at < 2);
        for (const [cell, text] of naming) mark(cell, text.replace(/^\d+\. /, ""));
        if (second && !styles.has(second[1])) mark(second[0], `${first}, ${second[1]}`);
      }
    }
  }

  // ---- the page

  window.rtproofPlots = new Map();

  // A box that scrolls must be reachable by keyboard; one that does not should not be a stop.
  function markScrollable() {
    for (const box of document.querySelectorAll(".scroll, pre")) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }

  // No line of a paragraph ends between a number and its unit.
  function keepUnits() {
    for (const text of document.querySelectorAll("p, dd")) {
      for (const node of text.childNodes) {
        if (node.nodeType === Node.TEXT_NODE) node.data = node.data.replace(/(\d) (?=%|(?:ns|us|ms|s|min|h)\b)/g, "$1\u00a0");
      }
    }
  }

  const plots = JSON.parse(document.getElementById("plots").textContent);
  const plotOf = (chart) => plots[chart.closest("figure").id];
  markRows(stylesByName(Object.values(plots)));
  const waiting = new Set([...document.querySelectorAll(".chart")].filter((chart) => plotOf(chart).x.length));
  const drawnPlots = [];

  // What is folded has no width: a plot is drawn when it is first seen.
  function drawWhatIsSeen() {
    for (const chart of waiting) {
      if (chart.closest("details:not([open])")) continue;
      waiting.delete(chart);
      drawnPlots.push(draw(chart, plotOf(chart)));
    }
    markScrollable();
  }

  // Browsers unfold the target of a link by themselves; older ones do not.
  function unfoldTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("details:not([open])")) return;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    drawWhatIsSeen();
    target.scrollIntoView();
  }

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details.group:not([open]), details.rest:not([open])")];
    unfolded.forEach((box) => { box.open = true; });
    drawWhatIsSeen();
  });
  addEventListener("afterprint", () => unfolded.forEach((box) => { box.open = false; }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawnPlots.forEach((u) => u.redraw(false, true)));
  addEventListener("resize", markScrollable);
  addEventListener("hashchange", unfoldTarget);
  document.addEventListener("toggle", drawWhatIsSeen, true);
  keepUnits();
  drawWhatIsSeen();
  unfoldTarget();
})();
