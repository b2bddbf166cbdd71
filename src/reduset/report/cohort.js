// The report of a cohort: a map of the bags, and the distances of every two in one of two orders.

const count = data.names.length;
const places = unpacked(data.places);
const distances = whole(unpacked(data.distances));
const errors = whole(unpacked(data.errors));
const state = { order: data.order };
const SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "x"];
const NAMED = 48; // bags whose names fit along an axis

/** A symmetric matrix from the half above its diagonal. */
function whole(half) {
  const rows = Array.from({ length: count }, () => new Float32Array(count));
  let next = 0;
  for (let i = 0; i < count; i += 1) {
    for (let j = i + 1; j < count; j += 1) {
      rows[i][j] = half[next];
      rows[j][i] = half[next];
      next += 1;
    }
  }
  return rows;
}

function mapFigure() {
  const groups = data.groups || data.names.map(() => "");
  const kinds = [...new Set(groups.filter((group) => group !== null))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const hues = ["accent", "g2", "g3", "g4", "g5", "g6"].map(colour);
  const traces = [...kinds, null].map((kind, k) => {
    const mine = groups.map((group, i) => i).filter((i) => groups[i] === kind);
    return {
      name: kind === null ? "no group" : shown(short(kind)), mode: "markers", customdata: mine,
      x: mine.map((i) => places[2 * i]), y: mine.map((i) => places[2 * i + 1]),
      text: mine.map((i) => `<b>${shown(data.names[i])}</b>${kind ? `<br>${shown(kind)}` : ""}`), hoverinfo: "text",
      marker: { size: 13, symbol: kind === null ? "circle-open" : SHAPES[k % SHAPES.length], color: kind === null ? colour("quiet") : hues[k % hues.length], line: { width: 1, color: colour("card") } },
    };
  }).filter((trace) => trace.x.length);
  return {
    traces,
    showlegend: data.groups !== null,
    hovermode: "closest",
    xaxis: axis("", { showticklabels: false, zeroline: false }),
    yaxis: axis("", { showticklabels: false, scaleanchor: "x", zeroline: false }),
    margin: { l: 12, r: 12, t: 12, b: 12 },
  };
}

function heatFigure() {
  const order = state.order;
  const z = order.map((i) => Float32Array.from(order, (j) => distances[i][j]));
  const told = order.map((i) => order.map((j) => (i === j ? `<b>${shown(data.names[i])}</b>` : `<b>${shown(data.names[i])}</b><br><b>${shown(data.names[j])}</b><br>distance ${digits(distances[i][j])}<br>${data.sampled ? "standard error" : "off at most by"} ${digits(errors[i][j], 2)}`)));
  const bare = phone.matches && count > 8; // names would leave no room for the picture
  const ticks = count <= NAMED && !bare ? { tickvals: order.map((_, k) => k), ticktext: order.map((i) => shown(short(data.names[i], 14))), tickfont: { size: count > 24 ? 9 : 11 } } : { showticklabels: false, ticks: "" };
  return {
    traces: [{ type: "heatmap", z, text: told, hoverinfo: "text", colorscale: sequential(), reversescale: true, xgap: count > 60 ? 0 : 1, ygap: count > 60 ? 0 : 1, showscale: !bare, colorbar: { thickness: 8, outlinewidth: 0, len: 0.6, title: { text: "distance", side: "top", font: { size: 11 } } } }],
    xaxis: axis("", { ...ticks, showgrid: false, constrain: "domain", tickangle: -60 }),
    yaxis: axis("", { ...ticks, showgrid: false, autorange: "reversed", scaleanchor: "x", constrain: "domain" }),
    margin: { l: 8, r: 8, t: 8, b: 8 },
  };
}

const phone = matchMedia("(max-width: 640px)");
phone.addEventListener("change", () => draw(["heat"]));
figure("map", mapFigure);
figure("heat", heatFigure);
byId("order").addEventListener("change", (event) => {
  state.order = event.target.value === "given" ? data.names.map((_, k) => k) : data.order;
  draw(["heat"]);
});
setTheme(root.dataset.theme);
