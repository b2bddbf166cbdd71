// The report of a compression: a slider over nested sizes, and the figures that it redraws.

const SINGLE = 1e-5; // of the peak: the resolution of densities in single precision
const state = { step: stepSizes.length - 1, pair: 0 };
const name = (k) => shown(data.columns[k]);
const MOST_DRAWN = 3000; // atoms with the largest weights in a figure
const TOLD_COLUMNS = 10; // columns in the label of an atom
const SHADES = 6; // number of shades of components, by weight

function pathFigure() {
  const { path } = data;
  const traces = [];
  if (path.random_sizes) {
    traces.push({ name: "random rows", x: path.random_sizes, y: path.random_errors, mode: "lines", line: { color: colour("quiet"), dash: "dot", width: 2 }, hovertemplate: "%{x:,.0f} random rows<br>error %{y:.3p}<extra></extra>" });
  }
  traces.push({ name: `${piece}s`, x: path.sizes, y: path.errors, mode: "lines", line: { color: colour("accent"), width: 3 }, hovertemplate: `%{x:,} ${piece}s<br>error %{y:.3p}<extra></extra>` });
  if (path.bound !== null && path.bound < 1) {
    traces.push({ name: "a-priori bound", x: [path.size], y: [path.bound], mode: "markers", marker: { symbol: "triangle-down", size: 11, color: colour("ink") }, hovertemplate: "a-priori bound %{y:.3p}<extra></extra>" });
  }
  const [low, high] = path.interval;
  traces.push({
    name: "measured", x: [path.size], y: [path.error], mode: "markers",
    marker: { size: 9, color: colour("accent") },
    error_y: { type: "data", symmetric: false, array: [high - path.error], arrayminus: [path.error - low], color: colour("accent"), thickness: 2, width: 7 },
    hovertemplate: `%{x:,} ${piece}s<br>error %{y:.3p}<br>interval ${percent(low)} to ${percent(high)}<extra></extra>`,
  });
  traces.push({
    name: "slider", x: [stepSizes[state.step]], y: [data.steps.errors[state.step]], mode: "markers", showlegend: false, hoverinfo: "skip",
    marker: { symbol: "circle-open", size: 17, color: colour("ink"), line: { width: 2 } },
  });
  return {
    traces,
    xaxis: axis(`${piece}s, or rows`, { type: "log", ...sizeTicks(path), tickformat: phone.matches ? "~s" : ",~r", tickangle: 0, minor: { ticks: "outside", ticklen: 3, tickcolor: colour("line") } }),
    yaxis: axis(`error${phone.matches ? "" : path.at}`, { type: "log", ...errorTicks([...path.errors, ...(path.random_errors || [])]) }),
    margin: { l: 56, r: phone.matches ? 16 : 34, t: 12, b: 44 },
    hovermode: "closest",
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", ...(phone.matches ? { entrywidth: 0.5, entrywidthmode: "fraction", font: { size: 11 } } : {}) },
  };
}

/** Ticks at powers of ten, and at twos and fives on a short axis. */
function sizeTicks(path) {
  const largest = Math.max(...path.sizes, ...(path.random_sizes || []));
  return largest < 50 ? { tickvals: [1, 2, 5, 10, 20, 50] } : { dtick: 1 };
}

/** The axes of the selected pair, which are the same in all four figures. */
function pairLayout() {
  const [k, j] = data.pairs[state.pair];
  const ends = (column) => [data.pairAxes[column][0] + data.middles[column], data.pairAxes[column][1] + data.middles[column]];
  return {
    xaxis: axis(data.columns[k], { range: ends(k), showgrid: false, nticks: 6 }),
    yaxis: axis(data.columns[j], { range: ends(j), showgrid: false, nticks: 6 }),
    margin: { l: 52, r: 8, t: 8, b: 44 },
  };
}

function picture(z, more) {
  const [k, j] = data.pairs[state.pair];
  return {
    type: "heatmap", x: gridOf(data.pairAxes[k], data.middles[k]), y: gridOf(data.pairAxes[j], data.middles[j]), z, zsmooth: "best",
    showscale: false, colorscale: sequential(),
    hovertemplate: `${name(k)} %{x:.4~g}<br>${name(j)} %{y:.4~g}<br>density %{z:.4~g}<extra></extra>`,
    ...more,
  };
}

let current = null; // the densities of the selected pair and step

function look() {
  if (!data.pairs.length) return;
  const full = fullJointOf(state.pair);
  const small = jointAt(state.pair, state.step);
  const difference = small.map((row, i) => row.map((value, k) => value - full[i][k]));
  const largest = (rows) => Math.max(...rows.map((row) => row.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
  const peak = largest(full) || 1;
  const signed = full.some((row) => row.some((value) => value < -0.01 * peak)); // rows with signed weights
  current = { full, small, difference, peak, signed, off: Math.max(largest(difference), SINGLE * peak) };
  const share = percent(current.off / peak);
  if (current.off > SINGLE * peak) scaleBetween("largest", `−${share}`, `+${share} of the peak`);
  else byId("largest").textContent = `below ${share} of the peak`;
  for (const id of ["full-shades", "small-shades"]) scaleBetween(id, signed ? "−peak" : "0", signed ? "+peak" : "peak", signed ? "" : "sequential");
  byId("shades").textContent = signed ? "Red is above zero, blue below: these rows have signed weights." : "";
}

/** The colours of a density, equal before and after. */
function shades(peak) {
  return current.signed ? { zmin: -peak, zmax: peak, colorscale: diverging() } : { zmin: 0, zmax: peak };
}

const fullFigure = () => ({ traces: [picture(current.full, shades(current.peak))], ...pairLayout() });
const smallFigure = () => ({ traces: [picture(current.small, shades(current.peak))], ...pairLayout() });

function differenceFigure() {
  const { off } = current;
  const [k, j] = data.pairs[state.pair];
  const trace = picture(current.difference, {
    zmin: -off, zmax: off, colorscale: diverging(),
    hovertemplate: `${name(k)} %{x:.4~g}<br>${name(j)} %{y:.4~g}<br>difference %{z:.4~g}<extra></extra>`,
  });
  return { traces: [trace], ...pairLayout() };
}

function atomLabel(a, weight) {
  const lines = [];
  for (let k = 0; k < Math.min(columnCount, TOLD_COLUMNS); k += 1) {
    lines.push(`${name(k)} ${digits(columnOf(k)[a] + data.middles[k], 5)}${laws ? ` ± ${digits(deviationOf(k, a), 2)}` : ""}`);
  }
  if (columnCount > TOLD_COLUMNS) lines.push("…");
  return [`<b>${piece} ${a + 1}</b>`, ...lines, `weight ${digits(weight)}`].join("<br>");
}

function atomsFigure() {
  const weights = weightsAt(state.step);
  const paired = data.pairs.length > 0;
  const [k, j] = paired ? data.pairs[state.pair] : [0, null];
  const heaviest = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) || 1;
  let order = Array.from(weights.keys());
  if (order.length > MOST_DRAWN) order = order.sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a])).slice(0, MOST_DRAWN);
  byId("drawn").textContent = [
    laws && paired ? "Ellipses are one standard deviation; opaque lines are large weights." : `Areas of markers are proportional to weights.`,
    weights.some((weight) => weight < 0) ? "Rings are negative weights." : "",
    order.length < weights.length ? `The ${order.length.toLocaleString("en")} of ${pieces(weights.length)} with the largest weights are drawn.` : "",
  ].join(" ");
  const of = (wanted, title, symbol) => {
    const mine = order.filter(wanted);
    return {
      name: title, mode: "markers", customdata: mine,
      x: mine.map((a) => columnOf(k)[a] + data.middles[k]),
      y: mine.map((a) => (paired ? columnOf(j)[a] + data.middles[j] : weights[a])),
      text: mine.map((a) => atomLabel(a, weights[a])), hoverinfo: "text", showlegend: false,
      marker: {
        symbol, color: colour("accent"), opacity: symbol === "circle" ? 0.62 : 0.9, line: { width: symbol === "circle" ? 0.5 : 1.5, color: symbol === "circle" ? colour("card") : colour("accent") },
        size: mine.map((a) => (laws && paired ? (order.length > 80 ? 3 : 5) : Math.max(3, 22 * Math.sqrt(Math.abs(weights[a]) / heaviest)))),
      },
      ...(laws && !paired ? { error_x: { type: "data", array: mine.map((a) => deviationOf(k, a)), color: colour("accent"), thickness: 1, width: 0 } } : {}),
    };
  };
  const markers = [of((a) => weights[a] >= 0, "positive", "circle"), of((a) => weights[a] < 0, "negative", "circle-open")];
  if (!paired) return { traces: markers, xaxis: axis(data.columns[0]), yaxis: axis("weight"), hovermode: "closest" };
  const behind = picture(current.full, { ...shades(current.peak * 1.6), opacity: 0.55, hoverinfo: "skip", hovertemplate: undefined });
  return { traces: [behind, ...(laws ? ellipses(order, weights, heaviest) : []), ...markers], ...pairLayout(), hovermode: "closest" };
}

/** Components as ellipses with a shade by weight. Each shade is a trace, the faintest first. Negative weights are dashed. */
function ellipses(order, weights, heaviest) {
  const [k, j] = data.pairs[state.pair];
  const thin = Math.min(1, Math.sqrt(80 / order.length)); // thinner for many overlapping lines
  const shadeOf = (a) => Math.min(SHADES - 1, Math.floor(SHADES * Math.sqrt(Math.abs(weights[a]) / heaviest)));
  return Array.from({ length: SHADES }, (_, shade) => [false, true].map((negative) => {
    const mine = order.filter((a) => shadeOf(a) === shade && weights[a] < 0 === negative);
    const [x, y] = [[], []];
    for (const a of mine) {
      const line = outline(state.pair, a);
      x.push(...line.x.map((value) => value + data.middles[k]), null);
      y.push(...line.y.map((value) => value + data.middles[j]), null);
    }
    const strength = (shade + 1) / SHADES;
    return {
      name: "ellipses", customdata: mine, x, y, mode: "lines", hoverinfo: "skip", showlegend: false, opacity: 0.25 + 0.75 * strength,
      line: { color: colour("accent"), width: thin * (0.8 + 1.2 * strength), dash: negative ? "dot" : "solid" },
    };
  })).flat().filter(({ customdata }) => customdata.length);
}

/** The histogram of the rows. */
function histogram([starts, ends, heights]) {
  return {
    type: "bar", name: "histogram", x: starts.map((start, i) => (start + ends[i]) / 2), y: heights, width: starts.map((start, i) => ends[i] - start),
    marker: { color: colour("shade"), line: { width: 0 } }, hovertemplate: "histogram %{y:.3~g}<extra></extra>",
  };
}

function marginalFigure(k) {
  const x = gridOf(data.axes[k], data.middles[k]);
  const full = fullMarginalOf(k);
  const small = marginalAt(k, state.step);
  const difference = small.map((value, i) => value - full[i]);
  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const peak = largest(full) || 1;
  const off = largest(difference);
  byId(`off-${k}`).textContent = off > SINGLE * peak ? `± ${percent(off / peak)} of the peak` : `below ${percent(SINGLE)} of the peak`;
  const told = (title) => `${title} %{y:.3~g}<extra></extra>`;
  const bars = data.bars[k]; // of the histogram of the rows, which older files do not have
  const smoothed = bars ? { line: { color: colour("quiet"), width: 1, dash: "dot", simplify: false } } : { fill: "tozeroy", fillcolor: colour("shade"), line: { color: colour("quiet"), width: 1, simplify: false } };
  return {
    traces: [
      { name: "all rows", x, y: full, mode: "lines", ...smoothed, hovertemplate: told("all rows, smoothed") },
      { name: `${piece}s`, x, y: small, mode: "lines", line: { color: colour("accent"), width: 2, simplify: false }, hovertemplate: told(`${piece}s`) },
      { name: "difference", x, y: difference, yaxis: "y2", mode: "lines", fill: "tozeroy", fillcolor: colour("accent-pale"), line: { color: colour("accent"), width: 1, simplify: false }, hovertemplate: told("difference") },
      ...(bars ? [histogram(bars)] : []),
    ],
    bargap: 0,
    showlegend: false,
    hovermode: "x unified",
    xaxis: axis("", { showgrid: false, anchor: "y2", nticks: 5, hoverformat: ".4~g" }),
    yaxis: axis("", { domain: [0.34, 1], showticklabels: false, showgrid: false, rangemode: "tozero" }),
    yaxis2: axis("", { domain: [0, 0.24], ...(off > SINGLE * peak ? {} : { range: [-SINGLE * peak, SINGLE * peak] }), zeroline: true, zerolinecolor: colour("line"), showgrid: false, showticklabels: false }),
    margin: { l: 10, r: 10, t: 6, b: 26 },
  };
}

figure("path", pathFigure);
if (data.profile) figure("fine", () => fineFigure(state.step));
if (data.pairs.length) {
  figure("full", fullFigure);
  figure("small", smallFigure);
  figure("difference", differenceFigure);
}
figure("atoms", atomsFigure);
columnFigures("marginal", columnCount, marginalFigure);

const slider = byId("step");

/** An error, 0 if it is a rounding error. */
const errorTold = (error) => percent(error !== null && error < ROUNDING ? 0 : error);

function tell() {
  const size = stepSizes[state.step];
  const text = `${pieces(size)}, error ${errorTold(data.steps.errors[state.step])}${data.path.at}`;
  byId("told").textContent = text;
  slider.setAttribute("aria-valuetext", text);
}

let asked = false;
slider.addEventListener("input", () => {
  if (asked) return; // at most once per frame
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    state.step = Number(slider.value);
    look();
    tell();
    drawSoon([...figures.keys()].filter((id) => id !== "full"));
  });
});

const box = byId("pair");
if (box) {
  box.addEventListener("change", () => {
    state.pair = Number(box.value);
    look();
    draw(["full", "small", "difference", "atoms"]);
  });
}

const play = byId("play");
let playing = null;

function stop() {
  clearInterval(playing);
  playing = null;
  play.textContent = "▶";
  play.setAttribute("aria-label", "Play through all sizes");
}

play.addEventListener("click", () => {
  if (playing !== null) {
    stop();
    return;
  }
  play.textContent = "❚❚";
  play.setAttribute("aria-label", "Pause");
  let next = Number(slider.value) === stepSizes.length - 1 ? 0 : Number(slider.value) + 1;
  playing = setInterval(() => {
    if (asked) return; // the last size is not drawn yet
    slider.value = String(next);
    slider.dispatchEvent(new Event("input"));
    next += 1;
    if (next >= stepSizes.length) stop();
  }, 450);
});
slider.addEventListener("pointerdown", stop);
phone.addEventListener("change", () => draw(["path", "fine"]));

look();
tell();
setTheme(root.dataset.theme);
