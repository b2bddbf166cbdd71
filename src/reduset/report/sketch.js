// The report of a sketch: histograms of every column before and after, the weights, and the order of the table.

const ROW = 34; // height of a category in pixels, with two bars
const told = (value) => digits(value, 5);
const DAY = 86400000;

/** Categories, and columns of listed values: two bars each, next to each other, with proportions. */
function labelsFigure({ labels, before, after }, id) {
  byId(id).style.height = `${Math.max(150, ROW * labels.length + 40)}px`;
  const most = Math.max(...before, ...after);
  const places = labels.map((_, k) => k);
  const bars = (shares, name, hue, offset) => ({
    type: "bar", orientation: "h", name, x: shares, y: places.map((place) => place + offset), width: 0.38, marker: { color: colour(hue), line: { width: 0 } },
    text: shares.map(percent), textposition: "outside", textfont: { size: 10.5, color: colour("quiet") }, cliponaxis: false,
    customdata: labels.map(shown), hovertemplate: `%{customdata}<br>${name} %{x:.3p}<extra></extra>`,
  });
  return {
    traces: [bars(before, "all rows", "shade", -0.2), bars(after, "sketch", "accent", 0.2)],
    xaxis: axis("", { range: [0, 1.22 * most], showgrid: false, tickformat: ".0~%", nticks: 4 }),
    yaxis: axis("", { tickvals: places, ticktext: labels.map((label) => shown(short(label, 18))), range: [labels.length - 0.45, -0.55], showgrid: false }),
    margin: { l: 10, r: 14, t: 4, b: 26 },
  };
}

/** A histogram: bars of all rows, steps of the sketch, and a separate hatched bar for all values beyond. */
function histogramFigure({ edges, before, after, date }) {
  const width = edges[1] - edges[0];
  const last = edges.length - 2;
  const at = (value) => (date ? new Date(value * DAY).toISOString() : value);
  const length = (value) => (date ? value * DAY : value);
  const day = (value) => new Date(value * DAY).toISOString().slice(0, 10);
  const text = (value) => (date ? day(value) : told(value));
  const bars = before.map((share, k) => {
    if (k === 0) return { share, other: after[k], from: edges[0] - 3 * width, to: edges[0] - width, beyond: true, text: `below ${text(edges[0])}` };
    if (k === before.length - 1) return { share, other: after[k], from: edges.at(-1) + width, to: edges.at(-1) + 3 * width, beyond: true, text: `above ${text(edges.at(-1))}` };
    const whole = edges.every((edge) => Math.abs(edge % 1) === 0.5); // for whole numbers, bars begin half-way between two numbers
    const [low, high] = [edges[k - 1] + (whole ? 0.5 : 0), edges[k] - (whole ? 0.5 : 0)];
    return { share, other: after[k], from: edges[k - 1], to: edges[k], beyond: false, text: whole && low === high ? text(low) : `${text(low)} to ${text(high)}` };
  }).filter(({ beyond, share, other }) => !beyond || share + other > 0);
  const x = [];
  const y = [];
  bars.forEach((bar, k) => {
    if (k > 0 && bar.from !== bars[k - 1].to) {
      x.push(at(bar.from));
      y.push(null);
    }
    x.push(at(bar.from), at(bar.to));
    y.push(bar.other, bar.other);
  });
  return {
    traces: [
      {
        type: "bar", name: "all rows", x: bars.map(({ from, to }) => at((from + to) / 2)), y: bars.map(({ share }) => share), width: bars.map(({ from, to }) => length(to - from)),
        marker: { color: colour("shade"), line: { width: 0 }, pattern: { shape: bars.map(({ beyond }) => (beyond ? "/" : "")), fgcolor: colour("quiet"), bgcolor: colour("shade"), size: 5, fgopacity: 0.6 } },
        customdata: bars.map(({ text: each, other }) => [each, percent(other)]), hovertemplate: "%{customdata[0]}<br>all rows %{y:.3p}<br>sketch %{customdata[1]}<extra></extra>",
      },
      { name: "sketch", x, y, mode: "lines", connectgaps: false, line: { color: colour("accent"), width: 1.8 }, hoverinfo: "skip" },
    ],
    xaxis: axis("", { showgrid: false, nticks: 5, ...(date ? { type: "date" } : {}) }),
    yaxis: axis("", { tickformat: ".2~%", nticks: 4, rangemode: "tozero" }),
    hovermode: "closest",
    bargap: 0,
    margin: { l: 40, r: 10, t: 6, b: 26 },
  };
}

function columnFigure(column, id) {
  return { ...(column.labels ? labelsFigure(column, id) : histogramFigure(column)), showlegend: false };
}

function weightsFigure() {
  const { edges, strata, covering } = data.weights;
  const middles = strata.map((_, k) => (edges[k] + edges[k + 1]) / 2);
  const bars = (counts, name, hue) => ({
    type: "bar", name, x: middles, y: counts, width: edges[1] - edges[0], marker: { color: colour(hue), line: { width: 0 } },
    customdata: middles.map((_, k) => [edges[k], edges[k + 1]]), hovertemplate: `%{customdata[0]:.2~f} to %{customdata[1]:.2~f} times the average<br>%{y:,} ${name}<extra></extra>`,
  });
  const some = covering.some((count) => count > 0);
  return {
    traces: [bars(strata, "all other rows", "accent"), ...(some ? [bars(covering, "rows with rare or extreme values", "g2")] : [])],
    barmode: "stack",
    bargap: 0,
    showlegend: some,
    xaxis: axis("weight, as a multiple of the average", { showgrid: false, rangemode: "tozero" }),
    yaxis: axis("rows", { rangemode: "tozero" }),
    margin: { l: 52, r: 12, t: 12, b: 44 },
  };
}

columnFigures("column", data.columns.length, (k) => columnFigure(data.columns[k], `column-${k}`));
figure("weights", weightsFigure);
if (data.profile) figure("fine", () => fineFigure(0));

/** The table by column, or with the largest changes first. The order of equal changes is kept. */
byId("order").addEventListener("change", ({ target }) => {
  const body = document.querySelector("#changes tbody");
  const rows = [...body.rows];
  const key = (row) => (target.value === "change" ? -Number(row.dataset.change) : Number(row.dataset.order));
  body.replaceChildren(...rows.sort((a, b) => key(a) - key(b)));
});

phone.addEventListener("change", () => draw());
setTheme(root.dataset.theme);
