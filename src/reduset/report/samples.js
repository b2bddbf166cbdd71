// Samples as dots: groups in colours and shapes, a map, and names next to the dots if there is space.

const SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "x"];
const HUES = ["accent", "g2", "g3", "g4", "g5", "g6"];
const WAYS = [0, 180, -90, 90, -45, 45, -135, 135, -22, 22, 158, -158, -68, 68, 112, -112]; // directions in degrees around a dot, the best first
const AWAY = [9, 15, 23, 33, 45]; // pixels from a dot to its name
const NEAR = 10; // up to this distance, no line connects the dot and its name
const LETTERS = 20; // letters of a name next to its dot

/** All kinds, with numbers in numerical order. */
const kindsOf = (values) => [...new Set(values.filter((each) => each !== null))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

/** The colour and shape of the k-th kind, or of no kind for null. */
function look(k, hues = HUES) {
  return k === null ? { symbol: "circle-open", color: colour("quiet") } : { symbol: SHAPES[k % SHAPES.length], color: colour(hues[k % hues.length]) };
}

/** The next of 1, 2, 5, 10, … above a length. */
function roundStep(length) {
  const power = 10 ** Math.floor(Math.log10(length));
  return power * [1, 2, 5, 10].find((first) => first * power >= length);
}

/** A map. `groups` has one for each sample or null, `told` the labels, and `open` which dots are hollow. */
function mapOf({ places, groups, kinds, rest, told, open = [], hues = HUES }) {
  const traces = [...kinds, null].map((kind, k) => {
    const mine = groups.map((_, i) => i).filter((i) => groups[i] === kind);
    const { symbol, color } = look(kind === null ? null : k, hues);
    return {
      name: kind === null ? shown(rest) : shown(short(kind)), mode: "markers", customdata: mine,
      x: mine.map((i) => places[2 * i]), y: mine.map((i) => places[2 * i + 1]), text: mine.map((i) => told[i]), hoverinfo: "text",
      marker: { size: phone.matches ? 11 : 13, symbol: mine.map((i) => (open[i] && kind !== null ? `${symbol}-open` : symbol)), color, line: { width: kind === null || mine.some((i) => open[i]) ? 2 : 1, color: kind === null ? color : colour("card") } },
    };
  }).filter((trace) => trace.x.length);
  const ends = (offset) => {
    const values = Array.from({ length: groups.length }, (_, i) => places[2 * i + offset]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [low, high]] = [ends(0), ends(1)];
  const room = 0.08 * Math.max(right - left, high - low) || 1;
  const grid = roundStep(room);
  byId("grid").textContent = `Grid lines are ${digits(grid, 2)} apart, in units of the distance.`;
  return {
    traces,
    showlegend: kinds.length > 0 && !(phone.matches && kinds.length > 8),
    hovermode: "closest",
    xaxis: axis("", { showticklabels: false, zeroline: false, dtick: grid, range: [left - room, right + room] }),
    yaxis: axis("", { showticklabels: false, scaleanchor: "x", zeroline: false, dtick: grid, range: [low - room, high + room] }),
    margin: { l: 12, r: 12, t: 12, b: 12 },
  };
}

const overlap = (a, b) => Math.abs(a.x - b.x) < (a.w + b.w) / 2 && Math.abs(a.y - b.y) < (a.h + b.h) / 2;

/** The position of each name, {dot, text, dx, dy, away} from its dot in pixels, or none without space. The most crowded dots are first. */
function placed(dots, wide, high, letter) {
  const taken = dots.map(({ x, y }) => ({ x, y, w: 15, h: 15 }));
  const crowd = (dot) => dots.filter(({ x, y }) => Math.hypot(x - dot.x, y - dot.y) < 60).length;
  const found = [];
  for (const dot of [...dots].map((each) => ({ ...each, crowd: crowd(each) })).sort((a, b) => b.crowd - a.crowd)) {
    const [w, h] = [dot.width + 4, letter + 3];
    const box = AWAY.flatMap((away) => WAYS.map((degrees) => {
      const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
      return { away, x: dot.x + cos * (away + w / 2), y: dot.y + sin * (away + h / 2), w, h };
    })).find((each) => each.x - w / 2 >= 0 && each.x + w / 2 <= wide && each.y - h / 2 >= 0 && each.y + h / 2 <= high && !taken.some((other) => overlap(each, other)));
    if (!box) continue;
    taken.push(box);
    found.push({ dot, dx: box.x - dot.x, dy: box.y - dot.y, away: box.away });
  }
  return found;
}

const pen = document.createElement("canvas").getContext("2d"); // for measuring texts

/** Names of samples next to their dots, updated after zooming or resizing. `left(count)` receives the number of names without space. */
function nameDots(id, names, places, left) {
  const plot = byId(id);
  let last = null;
  const put = () => {
    const { xaxis, yaxis, font } = plot._fullLayout;
    const key = (named) => [...xaxis.range, ...yaxis.range, xaxis._length, yaxis._length, colour("ink"), named].join();
    if (key(Boolean(plot.layout.annotations)) === last) return;
    last = key(true);
    const size = phone.matches || names.length > 60 ? 9 : 11;
    pen.font = `${size}px ${font.family}`;
    const dots = names.map((name, i) => ({ i, text: short(name, LETTERS), x: xaxis.d2p(places[2 * i]), y: yaxis.d2p(places[2 * i + 1]) }))
      .filter(({ x, y }) => x >= 0 && y >= 0 && x <= xaxis._length && y <= yaxis._length)
      .map((dot) => ({ ...dot, width: pen.measureText(dot.text).width }));
    const found = placed(dots, xaxis._length, yaxis._length, size);
    const annotations = found.map(({ dot, dx, dy, away }) => ({
      x: places[2 * dot.i], y: places[2 * dot.i + 1], text: shown(dot.text), font: { size, color: colour("ink") }, captureevents: false, borderpad: 0,
      xanchor: "center", yanchor: "middle",
      ...(away > NEAR ? { showarrow: true, arrowhead: 0, arrowwidth: 0.8, arrowcolor: colour("quiet"), ax: dx, ay: dy, standoff: 7 } : { showarrow: false, xshift: dx, yshift: -dy }),
    }));
    left(dots.length - found.length);
    Plotly.relayout(plot, { annotations });
  };
  plot.on("plotly_afterplot", put);
  put();
}

/** A sentence on names without space. */
const sayNameless = (id, count) => {
  byId(id).textContent = count === 0 ? "" : `${count} ${count === 1 ? "name is" : "names are"} not shown for lack of space: ${touch ? "touch a dot for its name" : "hover over a dot for its name, or drag a rectangle to zoom in"}.`;
};
