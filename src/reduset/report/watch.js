// The report of a watch: the statistic over the rows, the starts of files, and the start of the change.

const { rows, statistics, files, lines, alarms } = data;

/** The file of a row. */
const fileOf = (row) => files.findLast(({ first }) => first <= row);

function timeFigure() {
  const told = rows.map((row) => {
    const file = fileOf(row);
    return file ? `<br>row ${(row - file.first).toLocaleString("en")} of ${shown(short(file.name, 40))}` : "";
  });
  const top = Math.max(1.3, ...statistics) * 1.08;
  const line = (x, hue, dash) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: colour(hue), width: 1, dash } });
  const shapes = [
    { type: "line", x0: 0, x1: 1, xref: "paper", y0: 1, y1: 1, line: { color: colour("quiet"), width: 1.5, dash: "dash" } },
    ...(lines ? files.slice(1).map(({ first }) => line(first, "line", "solid")) : []),
  ];
  const began = alarms.filter(({ since }) => since !== null);
  for (const { since } of began) {
    shapes.unshift({ type: "rect", x0: since[1], x1: Math.max(since[2], since[1] + 1), y0: 0, y1: 1, yref: "paper", fillcolor: colour("accent-pale"), line: { width: 0 }, layer: "below" });
    shapes.push(line(since[0], "accent", "dot"));
  }
  const traces = [{ x: rows, y: statistics, mode: "lines", line: { color: colour("ink"), width: 1.5 }, customdata: told, hovertemplate: "row %{x:,}%{customdata}<br>%{y:.3~f} of 1<extra></extra>", showlegend: false }];
  const heights = alarms.map(({ row }) => Math.max(1, statistics[rows.findIndex((each) => each >= row)] ?? 1));
  traces.push({
    x: alarms.map(({ row }) => row), y: heights, mode: "markers+text", text: alarms.map((_, k) => (k ? "" : "<b>alarm</b>")), textposition: "top left", textfont: { color: colour("accent"), size: 13 },
    marker: { size: 11, color: colour("accent") }, hovertext: alarms.map(({ row }) => `<b>alarm</b> at row ${row.toLocaleString("en")}`), hoverinfo: "text", showlegend: false, cliponaxis: false,
  });
  return {
    traces,
    shapes,
    annotations: began.slice(0, 1).map(({ since }) => ({ x: since[0], y: 1, yref: "paper", text: "start of the change ", showarrow: false, xanchor: "right", yanchor: "top", font: { color: colour("accent"), size: 12 } })),
    xaxis: axis("row", { showgrid: false, tickformat: phone.matches ? "~s" : ",~r" }),
    yaxis: axis("statistic (alarm at 1)", { range: [0, top] }),
    hovermode: "closest",
    margin: { l: 48, r: 16, t: 16, b: 44 },
  };
}

figure("time", timeFigure);
phone.addEventListener("change", () => draw(["time"]));
setTheme(root.dataset.theme);
