// The report of a cohort: a map of the samples, and the matrix of their distances in one of two orders.

const count = data.names.length;
const places = unpacked(data.places);
const distances = whole(unpacked(data.distances));
const errors = whole(unpacked(data.errors));
const state = { order: data.order };
const NAMED = 48; // samples whose names fit along an axis

/** A symmetric matrix from its upper triangle. */
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
  const kinds = kindsOf(groups);
  const told = data.names.map((name, i) => `<b>${shown(name)}</b>${groups[i] ? `<br>${shown(groups[i])}` : ""}`);
  return { ...mapOf({ places, groups, kinds, rest: "no group", told }), showlegend: data.groups !== null };
}

function heatFigure() {
  const order = state.order;
  const z = order.map((i) => Float32Array.from(order, (j) => distances[i][j]));
  const told = order.map((i) => order.map((j) => (i === j ? `<b>${shown(data.names[i])}</b>` : `<b>${shown(data.names[i])}</b><br><b>${shown(data.names[j])}</b><br>distance ${digits(distances[i][j])}<br>${data.sampled ? "standard error" : "error at most"} ${digits(errors[i][j], 2)}`)));
  const bare = phone.matches && count > 8; // with names, the figure would be too small
  const ticks = count <= NAMED && !bare ? { tickvals: order.map((_, k) => k), ticktext: order.map((i) => shown(short(data.names[i], 14))), tickfont: { size: count > 24 ? 9 : 11 } } : { showticklabels: false, ticks: "" };
  return {
    traces: [{ type: "heatmap", z, text: told, hoverinfo: "text", colorscale: sequential(), reversescale: true, xgap: count > 60 ? 0 : 1, ygap: count > 60 ? 0 : 1, colorbar: { thickness: 8, outlinewidth: 0, title: { text: "distance", side: "top", font: { size: 11 } }, ...(phone.matches ? { orientation: "h", len: 0.9, y: -0.02, yanchor: "top", nticks: 5 } : { len: 0.6 }) } }],
    xaxis: axis("", { ...ticks, showgrid: false, constrain: "domain", tickangle: -60 }),
    yaxis: axis("", { ...ticks, showgrid: false, autorange: "reversed", scaleanchor: "x", constrain: "domain" }),
    margin: { l: 8, r: 8, t: 8, b: 8 },
  };
}

phone.addEventListener("change", () => draw(["heat"]));
figure("map", mapFigure);
figure("heat", heatFigure);
byId("order").addEventListener("change", (event) => {
  state.order = event.target.value === "given" ? data.names.map((_, k) => k) : data.order;
  draw(["heat"]);
});
setTheme(root.dataset.theme);
nameDots("map", data.names, places, (count) => sayNameless("nameless", count));
