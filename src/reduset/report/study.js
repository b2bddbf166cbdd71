// The report of a cohort study: fold changes and proportions of populations, the map of samples, populations by markers, and differences among the markers.

const { names, sizes, levels, controls, populations, differences, witness } = data;
const places = unpacked(data.places);
const counts = unpacked(data.counts);
const limits = unpacked(data.limits);
const GROUP_HUES = ["g2", "accent", "g3", "g4", "g5", "g6"]; // the reference has the colour of decrease, the next group the colour of increase
const FOUND = "◆";
const MOST_ROWS = 40; // populations in the figure of fold changes
const LINE = 12; // pixels of a fold change below the name of its population, on a phone
const kinds = populations.names.length;
const compared = data.test === null ? null : data.columns[0].values;
const countOf = (i, k) => counts[i * kinds + k];
const limitsOf = (i, k) => [0, 1].map((end) => limits[2 * (i * kinds + k) + end]);
const marked = (k) => (populations.found[k] ? `${FOUND} ` : "");
const times = (effect) => `${digits(2 ** effect, 3)}-fold`;
const state = {
  population: differences ? differences.order[0] : 0,
  colours: 0,
  order: populations.order,
  level: 0,
  x: witness ? witness.pair[0] : 0,
  y: witness && witness.pair.length > 1 ? witness.pair[1] : null,
};

/** Set the height of a figure. */
function resized(id, pixels) {
  if (byId(id)) byId(id).style.height = `${Math.round(pixels)}px`;
}

/** Ticks of fold changes, on an axis of logarithms to base 2. */
function foldTicks(reach) {
  const step = Math.max(1, Math.ceil(reach / (phone.matches ? 2 : 4)));
  const most = Math.floor(reach / step) * step;
  const values = Array.from({ length: (2 * most) / step + 1 }, (_, k) => k * step - most);
  return { tickvals: values, ticktext: values.map((value) => (value < 0 ? `1/${digits(2 ** -value)}` : digits(2 ** value))) };
}

const chosenRows = () => differences.order.slice(0, MOST_ROWS);
const rowHeight = () => (phone.matches ? 28 + LINE * (levels.length - 1) : 28 * (levels.length > 3 ? 1.4 : 1));

function foldLabel(k, g) {
  const { effects, intervals, shares, p, q } = differences;
  return [
    `<b>${shown(populations.names[k])}</b>`,
    `${percent(shares[k][0])} in ${shown(levels[0])}, ${percent(shares[k][g + 1])} in ${shown(levels[g + 1])}`,
    `${times(effects[g][k])}, ${intervals[g][k].map((end) => digits(2 ** end, 3)).join(" to ")}`,
    `p = ${digits(p[k], 2)}, q = ${digits(q[k], 2)}`,
  ].join("<br>");
}

function forestFigure() {
  const { reach, effects, intervals } = differences;
  const rows = chosenRows();
  const others = levels.slice(1);
  const offset = (g) => {
    if (phone.matches) return (5 + LINE * (g - (others.length - 1) / 2)) / rowHeight(); // below the name
    return others.length === 1 ? 0 : 0.5 * (g / (others.length - 1) - 0.5);
  };
  const traces = others.flatMap((level, g) => {
    const { symbol, color } = others.length === 1 ? { symbol: "circle", color: colour("ink") } : look(g + 1, GROUP_HUES);
    const hue = (k) => (populations.found[k] || others.length > 1 ? color : colour("quiet"));
    return [
      { x: rows.flatMap((k) => [...intervals[g][k], null]), y: rows.flatMap((_, row) => [row + offset(g), row + offset(g), null]), mode: "lines", line: { color: others.length === 1 ? colour("quiet") : color, width: 1.6 }, hoverinfo: "skip", showlegend: false },
      {
        name: shown(short(level)), showlegend: others.length > 1, mode: "markers", customdata: rows, x: rows.map((k) => effects[g][k]), y: rows.map((_, row) => row + offset(g)),
        text: rows.map((k) => foldLabel(k, g)), hoverinfo: "text",
        marker: { size: 11, opacity: 1, symbol: rows.map((k) => (populations.found[k] ? symbol : `${symbol}-open`)), color: rows.map(hue), line: { width: 2, color: rows.map((k) => (populations.found[k] ? colour("card") : hue(k))) } },
      },
    ];
  });
  const row = rows.indexOf(state.population);
  const name = (k) => `${populations.found[k] ? "<b>" : ""}${marked(k)}${shown(short(populations.names[k], phone.matches ? 40 : 30))}${populations.found[k] ? "</b>" : ""}`;
  resized("forest", rows.length * rowHeight() + (others.length > 1 ? 120 : 80));
  return {
    traces,
    hovermode: "closest",
    shapes: [
      ...(row < 0 ? [] : [{ type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: row - 0.5, y1: row + 0.5, fillcolor: colour("shade"), opacity: 0.5, line: { width: 0 } }]),
      { type: "line", layer: "below", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: { color: colour("quiet"), width: 1, dash: "dash" } },
    ],
    annotations: phone.matches ? rows.map((k, at) => ({ xref: "paper", x: 0, y: at, xanchor: "left", yshift: rowHeight() / 2 - 9, text: name(k), showarrow: false, font: { size: 11, color: colour("ink") }, captureevents: false })) : [],
    xaxis: axis(`fold change against ${levels[0]}`, { range: [-reach, reach], ...foldTicks(reach) }),
    yaxis: axis("", { range: [rows.length - 0.5, -0.5], showgrid: false, ...(phone.matches ? { showticklabels: false } : { tickvals: rows.map((_, at) => at), ticktext: rows.map(name), tickfont: { size: 11 } }) }),
    margin: { l: 12, r: 12, t: 12, b: 44 },
  };
}

/** Ticks of an axis of proportions: 1, 2 and 5 in each decade, fewer on a long axis, more on a short one. */
function shareTicks(low, high) {
  const ratio = high / low;
  const firsts = ratio > 160 ? [1] : ratio > 5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const first of firsts) values.push(Number(`${first}e${power}`));
  }
  return { tickvals: values, ticktext: values.map((value) => percent(value)) };
}

function sampleLabel(i) {
  const lines = data.columns.map(({ title, values }) => (values[i] === null ? "" : `${shown(title)} ${shown(values[i])}`));
  return [`<b>${shown(names[i])}</b>`, controls[i] ? "control" : "", ...lines, `${digits(sizes[i], 9)} cells`].filter(Boolean).join("<br>");
}

function dotsFigure() {
  const k = state.population;
  const blocks = differences.blocks;
  const isPaired = blocks.some((block) => block >= 0);
  const share = (i) => (countOf(i, k) || 0.5) / sizes[i]; // without cells, at half a cell
  const column = (i) => (compared[i] === null ? levels.length : levels.indexOf(compared[i]));
  const across = (i) => column(i) + (isPaired ? 0.16 : 0.4) * (((i * 0.618034) % 1) - 0.5);
  const label = (i) => `${sampleLabel(i)}<br><b>${countOf(i, k) ? percent(countOf(i, k) / sizes[i]) : "no cell"}</b> (${limitsOf(i, k).map(percent).join(" to ")})`;
  const all = names.map((_, i) => i);
  const titles = [...levels.map((level) => shown(short(level, phone.matches ? 14 : 18))), ...(compared.includes(null) ? [shown(data.rest)] : [])];
  const lines = [...new Set(blocks.filter((block) => block >= 0))].flatMap((block) => {
    const mine = all.filter((i) => blocks[i] === block).sort((a, b) => column(a) - column(b));
    return mine.length > 1 ? [...mine, null] : [];
  });
  const traces = [
    { mode: "lines", hoverinfo: "skip", showlegend: false, x: lines.map((i) => (i === null ? null : across(i))), y: lines.map((i) => (i === null ? null : share(i))), line: { color: colour("quiet"), width: 0.8 }, opacity: 0.6 },
    ...titles.map((title, g) => {
      const mine = all.filter((i) => column(i) === g);
      const { symbol, color } = look(g < levels.length ? g : null, GROUP_HUES);
      return {
        name: title, mode: "markers", showlegend: false, customdata: mine, x: mine.map(across), y: mine.map(share), text: mine.map(label), hoverinfo: "text",
        marker: { size: 10, color, symbol: mine.map((i) => (countOf(i, k) || g >= levels.length ? symbol : `${symbol}-open`)), line: { width: g < levels.length ? 1 : 2, color: g < levels.length ? colour("card") : color } },
      };
    }),
  ];
  const means = differences.shares[k];
  const ends = [...all.map(share), ...means.filter((mean) => mean > 0)];
  const [low, high] = [Math.min(...ends) / 1.3, Math.max(...ends) * 1.3];
  resized("dots", Math.min(620, Math.max(360, chosenRows().length * rowHeight() + 28)));
  return {
    traces,
    hovermode: "closest",
    shapes: means.map((mean, g) => ({ type: "line", x0: g - 0.3, x1: g + 0.3, y0: mean, y1: mean, line: { color: colour("ink"), width: 2 } })).filter(({ y0 }) => y0 > 0),
    xaxis: axis("", { tickvals: titles.map((_, g) => g), ticktext: titles, range: [-0.6, titles.length - 0.4], showgrid: false, tickangle: titles.length > 4 ? -30 : 0 }),
    yaxis: axis("proportion of the sample's cells", { type: "log", range: [Math.log10(low), Math.log10(high)], ...shareTicks(low, high) }),
    margin: { l: 12, r: 12, t: 12, b: 36 },
  };
}

function mapFigure() {
  const column = data.columns[state.colours];
  const groups = column ? column.values : names.map(() => "");
  const own = column && column.title === data.test;
  const told = names.map((_, i) => sampleLabel(i));
  return {
    ...mapOf({ places, groups, told, kinds: own ? levels : kindsOf(groups), rest: own ? data.rest : `no ${column ? column.title : "group"}`, open: own ? [] : controls, hues: GROUP_HUES }),
    ...(column ? {} : { showlegend: false }),
  };
}

const medians = unpacked(populations.medians);
const scaled = unpacked(populations.scaled);

function heatFigure() {
  const { markers, defining, shares } = populations;
  const width = markers.length;
  const rows = [...state.order];
  const at = (j) => (j < defining ? j : j + 0.6); // markers of class state are separate
  const label = (k, j) => `<b>${shown(populations.names[k])}</b><br>${shown(markers[j])} ${digits(medians[k * width + j], 4)}<br>${percent(shares[k])} of the cells`;
  const part = (columns) => ({
    type: "heatmap", x: columns.map(at), y: rows.map((_, row) => row), z: rows.map((k) => columns.map((j) => scaled[k * width + j])), text: rows.map((k) => columns.map((j) => label(k, j))), hoverinfo: "text",
    zmin: 0, zmax: 1, colorscale: sequential(), xgap: 1, ygap: 1, showscale: false,
  });
  const all = markers.map((_, j) => j);
  const parts = [all.slice(0, defining), all.slice(defining)].filter((columns) => columns.length);
  const bars = {
    type: "bar", orientation: "h", xaxis: "x2", y: rows.map((_, row) => row), x: rows.map((k) => shares[k]), marker: { color: colour("s2") }, width: 0.7, text: rows.map((k) => percent(shares[k])), textposition: "outside", cliponaxis: false,
    textfont: { size: 10, color: colour("quiet") }, hoverinfo: "skip", showlegend: false,
  };
  const name = (k) => `${populations.found[k] ? "<b>" : ""}${marked(k)}${shown(short(populations.names[k], phone.matches ? 22 : 32))}${populations.found[k] ? "</b>" : ""}`;
  resized("heat", rows.length * 24 + 160);
  byId("heat").style.minWidth = `${Math.min(2400, 260 + width * 20)}px`;
  const title = (text, columns) => ({ xref: "x", x: (at(columns[0]) + at(columns.at(-1))) / 2, yref: "paper", y: 1, yanchor: "bottom", text, showarrow: false, font: { size: 11, color: colour("quiet") } });
  return {
    traces: [...parts.map(part), bars],
    annotations: parts.length > 1 ? [title("type", parts[0]), title("state", parts[1])] : [],
    xaxis: axis("", { tickvals: all.map(at), ticktext: markers.map((marker) => shown(short(marker, 14))), tickangle: -60, tickfont: { size: 11 }, showgrid: false, domain: [0, 0.86], range: [-0.6, at(width - 1) + 0.6] }),
    xaxis2: axis("", { domain: [0.87, 1], showticklabels: false, showgrid: false, range: [0, 1.9 * Math.max(...shares)], fixedrange: true }),
    yaxis: axis("", { tickvals: rows.map((_, row) => row), ticktext: rows.map(name), tickfont: { size: 11 }, range: [rows.length - 0.5, -0.5], showgrid: false }),
    margin: { l: 8, r: 8, t: parts.length > 1 ? 26 : 10, b: 8 },
  };
}

const atoms = witness && { places: unpacked(witness.places), masses: unpacked(witness.masses), folds: unpacked(witness.folds), found: new Set(witness.found) };

function atomLabel(a, fold) {
  const size = atoms.masses.length;
  const lines = [state.x, state.y].filter((k) => k !== null).map((k) => `${shown(inLabel(witness.markers[k]))} ${digits(atoms.places[k * size + a], 4)}`);
  return [`<b>${times(fold)}</b>${atoms.found.has(a) ? ", significant" : ""}`, `in ${shown(populations.names[witness.owners[a]])}`, `${percent(atoms.masses[a])} of the cells`, ...lines].join("<br>");
}

function whereFigure() {
  const size = atoms.masses.length;
  const fold = (a) => atoms.folds[state.level * size + a];
  const order = Array.from({ length: size }, (_, a) => a).sort((a, b) => atoms.found.has(a) - atoms.found.has(b) || atoms.masses[b] - atoms.masses[a]);
  const largest = Math.max(...atoms.masses);
  const { most } = witness;
  const y = (a) => (state.y === null ? fold(a) : atoms.places[state.y * size + a]);
  scaleBetween("most", digits(2 ** -most, 3), `${digits(2 ** most, 3)}-fold`);
  return {
    traces: [{
      mode: "markers", showlegend: false, customdata: order, x: order.map((a) => atoms.places[state.x * size + a]), y: order.map(y), text: order.map((a) => atomLabel(a, fold(a))), hoverinfo: "text",
      marker: {
        color: order.map(fold), cmin: -most, cmax: most, colorscale: diverging(), opacity: 0.9,
        size: order.map((a) => Math.max(atoms.found.has(a) ? 7 : 4, (phone.matches ? 22 : 30) * Math.sqrt(atoms.masses[a] / largest))),
        line: { width: order.map((a) => (atoms.found.has(a) ? 1.7 : 0.5)), color: order.map((a) => colour(atoms.found.has(a) ? "ink" : "quiet")) },
      },
    }],
    hovermode: "closest",
    xaxis: axis(witness.markers[state.x], { showgrid: false, nticks: 7 }),
    yaxis: state.y === null ? axis("fold change", { ...foldTicks(1.2 * Math.max(...atoms.folds.map(Math.abs))), zeroline: true, zerolinecolor: colour("line") }) : axis(witness.markers[state.y], { showgrid: false, nticks: 7 }),
    margin: { l: 56, r: 12, t: 12, b: 44 },
  };
}

/** A selection box that changes the state, if the page has it. */
function chooses(id, change, drawn) {
  const box = byId(id);
  if (box) box.addEventListener("change", () => { change(box.value); draw(drawn); });
}

if (differences) {
  figure("forest", forestFigure);
  figure("dots", dotsFigure);
}
figure("map", mapFigure);
figure("heat", heatFigure);
if (witness) figure("where", whereFigure);
chooses("population", (value) => { state.population = Number(value); }, ["forest", "dots"]);
chooses("colours", (value) => { state.colours = Number(value); }, ["map"]);
chooses("order", (value) => { state.order = value === "size" ? populations.names.map((_, k) => k) : populations.order; }, ["heat"]);
chooses("level", (value) => { state.level = Number(value); }, ["where"]);
if (witness) chooseTwo(state, () => draw(["where"]));
phone.addEventListener("change", () => draw());
setTheme(root.dataset.theme);
nameDots("map", names, places, (count) => sayNameless("nameless", count));
if (differences) {
  byId("forest").on("plotly_click", ({ points }) => {
    state.population = points[0].customdata;
    byId("population").value = String(state.population);
    draw(["forest", "dots"]);
  });
}
