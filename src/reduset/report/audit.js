// The report of an audit: the histogram of distances, and the covering radii of other choices.

function distancesFigure() {
  const { edges, bars, limit } = data;
  const last = edges.at(-1);
  const isFar = (k) => limit !== null && (edges[k] + edges[k + 1]) / 2 > limit;
  const marked = limit !== null && limit <= 1.05 * last;
  return {
    traces: [{
      type: "bar", x: bars.map((_, k) => (edges[k] + edges[k + 1]) / 2), y: bars, width: bars.map((_, k) => edges[k + 1] - edges[k]),
      marker: { color: bars.map((_, k) => colour(isFar(k) ? "accent" : "g2")), line: { width: 0 } },
      customdata: bars.map((_, k) => [digits(edges[k]), digits(edges[k + 1])]), hovertemplate: "%{customdata[0]} to %{customdata[1]}<br>%{y:,} rows<extra></extra>",
    }],
    bargap: 0,
    showlegend: false,
    xaxis: axis("distance to the nearest kept row", { showgrid: false, range: [0, marked ? Math.max(last, 1.02 * limit) : last], nticks: 6 }),
    yaxis: axis("rows", { rangemode: "tozero" }),
    shapes: marked ? [{ type: "line", x0: limit, x1: limit, y0: 0, y1: 1, yref: "paper", line: { color: colour("ink"), dash: "dash", width: 1.5 } }] : [],
    margin: { l: 56, r: 14, t: 12, b: 44 },
  };
}

function radiiFigure() {
  const names = data.radii.map(([name]) => name);
  const values = data.radii.map(([, value]) => value);
  return {
    traces: [{
      type: "bar", orientation: "h", y: names, x: values, width: 0.62,
      marker: { color: values.map((_, k) => colour(k === 0 ? "accent" : "shade")), line: { width: 0 } },
      text: values.map((value) => digits(value)), textposition: "outside", textfont: { color: colour("ink") }, cliponaxis: false,
      hovertemplate: "%{y}<br>%{x:.4~g}<extra></extra>",
    }],
    showlegend: false,
    xaxis: axis("covering radius", { range: [0, 1.18 * Math.max(...values) || 1], showgrid: false, nticks: 5 }),
    yaxis: axis("", { autorange: "reversed", showgrid: false, tickfont: { color: colour("ink") } }),
    margin: { l: 10, r: 14, t: 12, b: 44 },
  };
}

figure("distances", distancesFigure);
figure("radii", radiiFigure);

phone.addEventListener("change", () => draw());
setTheme(root.dataset.theme);
