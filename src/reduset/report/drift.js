// The report of a test of drift: the distance and its null distribution, the map of the cells, and the columns before and after.

const { cells, regions } = data;
const count = cells.before.length;
const places = unpacked(cells.places); // by columns
const placeOf = (k, a) => places[k * count + a];
const state = { x: data.pair[0], y: data.pair.length > 1 ? data.pair[1] : null };
const TOLD_COLUMNS = 10; // columns in the label of a cell
const REACH = 2; // standard deviations of the outline of a region
const change = cells.after.map((share, a) => share - cells.before[a]);
const { most } = cells;
const largest = Math.max(...cells.before, ...cells.after) || 1;
const line = (x, dash, hue) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: colour(hue), width: 2, dash } });
const note = (x, y, text, anchor, hue) => ({ x, y, yref: "paper", text, showarrow: false, xanchor: anchor, yanchor: "top", font: { color: colour(hue), size: 12 }, bgcolor: colour("card"), borderpad: 2 });

function nullFigure() {
  const { starts, width, shares, seen, usual } = data.null;
  const end = Math.max(starts.at(-1) + width, 1.06 * seen, 1.45 * usual); // space for the label on the right of the line
  const side = (x) => (x > 0.6 * end ? "right" : "left");
  const gap = (x) => x + (side(x) === "left" ? 0.008 : -0.008) * end;
  return {
    traces: [{
      type: "bar", x: starts.map((start) => start + width / 2), y: shares, width: starts.map(() => width), marker: { color: colour("shade"), line: { width: 0 } },
      customdata: starts.map((start) => [start, start + width]), hovertemplate: "%{customdata[0]:.3~g} to %{customdata[1]:.3~g}<br>%{y:.3p} of the samples without drift<extra></extra>", showlegend: false,
    }],
    shapes: [line(usual, "dash", "quiet"), line(seen, "solid", data.drift ? "accent" : "ink")],
    annotations: [note(usual + 0.008 * end, 0.86, "95 % without drift", "left", "quiet"), note(gap(seen), 1, `<b>new rows: ${digits(seen, 2)}</b>`, side(seen), data.drift ? "accent" : "ink")],
    xaxis: axis("distance", { range: [0, end], showgrid: false }),
    yaxis: axis("", { showticklabels: false, showgrid: false }),
    bargap: 0,
    margin: { l: 12, r: 12, t: 12, b: 44 },
  };
}

function looksFigure() {
  const { looks } = data;
  const rows = looks.map((_, k) => k);
  const lambda = (ridge) => (phone.matches ? ` (λ ${digits(ridge, 1)})` : `, standardised (λ = ${digits(ridge, 1)})`);
  const title = ({ width, ridge }) => `${digits(width, 2)}${ridge === null ? "" : lambda(ridge)}`;
  const told = ({ width, ridge, ratio }) => `${ridge === null ? "" : "standardised "}MMD at bandwidth ${digits(width, 2)}${ridge === null ? "" : `, λ = ${digits(ridge, 1)}`}<br>${digits(ratio, 3)} times the 95 % quantile without drift`;
  const beyond = looks.map(({ ratio }) => ratio > 1);
  return {
    traces: [
      { x: looks.flatMap(({ ratio }) => [0, ratio, null]), y: rows.flatMap((k) => [k, k, null]), mode: "lines", line: { color: colour("line"), width: 3 }, hoverinfo: "skip", showlegend: false },
      {
        x: looks.map(({ ratio }) => ratio), y: rows, mode: "markers", showlegend: false, text: looks.map(told), hoverinfo: "text",
        marker: { size: 12, color: beyond.map((far) => colour(far ? "accent" : "quiet")), symbol: looks.map(({ ridge }) => (ridge === null ? "circle" : "diamond")) },
      },
    ],
    shapes: [line(1, "dash", "quiet")],
    hovermode: "closest",
    xaxis: axis("distance / 95 % quantile without drift", { range: [0, Math.max(1.15, ...looks.map(({ ratio }) => 1.08 * ratio))], showgrid: false }),
    yaxis: axis(phone.matches ? "" : "bandwidth", { tickvals: rows, ticktext: looks.map(title), range: [looks.length - 0.5, -0.5], showgrid: false }),
    margin: { l: 12, r: 12, t: 12, b: 44 },
  };
}

function cellLabel(a) {
  const lines = data.names.slice(0, TOLD_COLUMNS).map((name, k) => `${shown(inLabel(name))} ${digits(placeOf(k, a), 5)}`);
  if (data.names.length > TOLD_COLUMNS) lines.push("…");
  const sign = change[a] > 0 ? "gained" : "lost";
  return [`<b>${sign} ${percent(Math.abs(change[a]))} of all rows</b>`, `${percent(cells.before[a])} before, ${percent(cells.after[a])} now`, ...lines].join("<br>");
}

/** The outline of a region, in standard deviations around its centre. Along one column, a bar of this length. */
function outline({ centre, extent }, turns = 64) {
  const at = (k) => [centre[k], REACH * extent[k]];
  const [[x, wide], [y, high]] = [at(state.x), state.y === null ? [0, 0] : at(state.y)];
  if (state.y === null) return { x: [x - wide, x + wide], y: [0, 0] };
  const angles = Array.from({ length: turns + 1 }, (_, k) => (2 * Math.PI * k) / turns);
  return { x: angles.map((turn) => x + wide * Math.cos(turn)), y: angles.map((turn) => y + high * Math.sin(turn)) };
}

function mapFigure() {
  const order = Array.from({ length: count }, (_, a) => a).sort((a, b) => Math.max(cells.before[b], cells.after[b]) - Math.max(cells.before[a], cells.after[a]));
  const alone = state.y === null;
  const traces = [{
    name: "cells", mode: "markers", showlegend: false, customdata: order, text: order.map(cellLabel), hoverinfo: "text",
    x: order.map((a) => placeOf(state.x, a)), y: order.map((a) => (alone ? change[a] : placeOf(state.y, a))),
    marker: {
      color: order.map((a) => change[a]), cmin: -most, cmax: most, colorscale: diverging(), opacity: 0.9, line: { width: 1, color: colour("quiet") },
      size: order.map((a) => Math.max(4, (phone.matches ? 26 : 38) * Math.sqrt(Math.max(cells.before[a], cells.after[a]) / largest))),
    },
  }];
  regions.forEach((region, k) => {
    const gained = region.after > region.before;
    const told = region.columns.length === 0 || region.columns.some((each) => each === state.x || each === state.y); // defined by these columns
    traces.push({ name: "region", mode: "lines", showlegend: false, hoverinfo: "skip", ...outline(region), opacity: told ? 1 : 0.4, line: { color: colour("ink"), width: told ? 1.8 : 1, dash: gained ? "solid" : "dot" } });
    traces.push({
      name: "centre", mode: "markers+text", showlegend: false, x: [region.centre[state.x]], y: [alone ? 0 : region.centre[state.y]], text: [`<b>${k + 1}</b>`], textposition: "top right", textfont: { color: colour("ink"), size: 14 },
      marker: { symbol: "cross-thin", size: 12, color: colour("ink"), line: { width: 2, color: colour("ink") } }, hovertext: [`<b>${k + 1}</b> ${shown(region.told)}`], hoverinfo: "text",
    });
  });
  scaleBetween("most", `−${percent(most)}`, `+${percent(most)} of all rows`);
  byId("drawn").textContent = [
    alone ? "The height of a circle is the change of its cell. Its area is the larger of the proportions of rows before and now." : "A circle is at the mean of the rows of its cell. Its area is the larger of the proportions of rows before and now.",
    regions.length ? `Outlines are ${REACH} standard deviations of the rows that a region gained (solid) or lost (dotted), faint if the region is defined by other columns.` : "",
  ].join(" ");
  return {
    traces,
    hovermode: "closest",
    xaxis: axis(data.names[state.x], { showgrid: false, nticks: 7 }),
    yaxis: alone ? axis("proportion gained or lost", { tickformat: ".2~p", zeroline: true, zerolinecolor: colour("line") }) : axis(data.names[state.y], { showgrid: false, nticks: 7 }),
    margin: { l: 56, r: 12, t: 12, b: 44 },
  };
}

const said = (value) => digits(value, 4);
const MOST_PAIRS = 20; // values with two bars next to each other; for more, the bars would be too thin

/** A column of listed values as bars next to each other. The last bar is all other values, if they occur. */
function valuesFigure({ values, before, after }) {
  const others = before.at(-1) + after.at(-1) > 0;
  const kept = others ? before.length : values.length;
  const titles = [...values.map(said), "other"].slice(0, kept);
  const bars = (shares, name, hue) => ({
    type: "bar", name, x: titles.map((_, k) => k), y: shares.slice(0, kept), marker: { color: colour(hue) }, customdata: titles,
    hovertemplate: `%{customdata}<br>${name} %{y:.3p}<extra></extra>`,
  });
  const every = Math.ceil(kept / 8);
  const ticks = titles.map((_, k) => k).filter((k) => k % every === 0);
  if (kept > MOST_PAIRS) {
    const now = { ...bars(after, "now", "accent"), type: "scatter", mode: "lines", line: { shape: "hvh", color: colour("accent"), width: 2 } };
    return { traces: [bars(before, "before", "shade"), now], xaxis: axis("", { tickvals: ticks, ticktext: ticks.map((k) => titles[k]), showgrid: false, tickangle: 0 }), bargap: 0, hovermode: "x" };
  }
  return { traces: [bars(before, "before", "shade"), bars(after, "now", "accent")], xaxis: axis("", { tickvals: ticks, ticktext: ticks.map((k) => titles[k]), showgrid: false, tickangle: 0 }), bargap: 0.25, bargroupgap: 0.05 };
}

/** A column of many values as steps. The bars at both ends have all values beyond. */
function stepsFigure({ edges, before, after }) {
  const width = edges[1] - edges[0];
  const ends = [edges[0] - width, ...edges, edges.at(-1) + width];
  const told = before.map((_, k) => (k === 0 ? `below ${said(edges[0])}` : k === before.length - 1 ? `above ${said(edges.at(-1))}` : `${said(ends[k])} to ${said(ends[k + 1])}`));
  const steps = (shares) => ({ x: shares.flatMap((_, k) => [ends[k], ends[k + 1]]), y: shares.flatMap((share) => [share, share]), customdata: told.flatMap((text) => [text, text]) });
  return {
    traces: [
      { ...steps(before), name: "before", mode: "lines", fill: "tozeroy", fillcolor: colour("shade"), line: { color: colour("quiet"), width: 1 }, hovertemplate: "%{customdata}<br>before %{y:.3p}<extra></extra>" },
      { ...steps(after), name: "now", mode: "lines", line: { color: colour("accent"), width: 2 }, hovertemplate: "now %{y:.3p}<extra></extra>" },
    ],
    xaxis: axis("", { showgrid: false, nticks: 5 }),
    hovermode: "x",
  };
}

function columnFigure(column) {
  return {
    ...(column.values ? valuesFigure(column) : stepsFigure(column)),
    showlegend: false,
    yaxis: axis("", { tickformat: ".2~%", nticks: 4, rangemode: "tozero" }),
    margin: { l: 40, r: 10, t: 6, b: 26 },
  };
}

figure("null", nullFigure);
figure("looks", looksFigure);
figure("map", mapFigure);
columnFigures("column", data.columns.length, (k) => columnFigure(data.columns[k]));

chooseTwo(state, () => draw(["map"]));
phone.addEventListener("change", () => draw(["map", "looks"]));
setTheme(root.dataset.theme);
