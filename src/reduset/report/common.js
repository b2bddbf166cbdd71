// Parts of all reports: the data of the page, colours from its style, and figures that are redrawn when the theme changes.

const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

/** Numbers from base64: {kind, base64}. */
function unpacked({ kind, base64 }) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new { f4: Float32Array, f8: Float64Array, u2: Uint16Array, i4: Int32Array }[kind](bytes.buffer);
}

/** A text for plotly, escaped so that tags and templates, %{…}, are shown and not interpreted. */
const shown = (text) =>
  String(text).replace(/[&<>%\n]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "%": "&#37;", "\n": " " })[letter]);

const cut = new Map(); // full names by their shortened names

/** A long name without its middle, since names with the same start often have different ends. */
function short(text, most = 22) {
  if (text.length <= most) return text;
  const last = Math.floor((most - 1) / 2);
  const found = `${text.slice(0, most - 1 - last)}…${text.slice(text.length - last)}`;
  cut.set(found, (cut.get(found) || new Set()).add(text));
  return found;
}

/** A name in a label on hover, shortened only if it is wider than the screen. */
const inLabel = (text) => short(text, phone.matches ? 36 : 90);

/** Shortened titles of axes, ticks and legends show the full name on hover. Dots have labels instead. */
function titleTexts(plot) {
  for (const text of plot.querySelectorAll(".xtick text, .ytick text, .g-xtitle text, .g-ytitle text, .legendtext")) {
    const place = text.closest(".traces") ?? text; // in a legend, the text is below the element that is clicked
    for (const old of place.querySelectorAll(":scope > title")) old.remove();
    const full = [...cut].filter(([found]) => text.textContent.includes(found)).flatMap(([, names]) => [...names]);
    text.classList.toggle("cut", full.length > 0);
    if (!full.length) continue;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = full.join("\n");
    place.append(title);
  }
}
const formats = new Map(); // created once, since creation is slow
function digits(value, count = 4) {
  if (value === null) return "—";
  if (!formats.has(count)) formats.set(count, new Intl.NumberFormat("en", { maximumSignificantDigits: count }));
  return formats.get(count).format(value);
}
const ROUNDING = 1e-12; // relative errors below this are rounding errors
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The format of `words.percent`: 1.23 %, 1,690 %, 2.5 × 10⁻⁷ %. */
function percent(share) {
  if (share === null) return "—";
  const value = Number((100 * share).toPrecision(3));
  if (value === 0 || Math.abs(value) >= 1e-4) return `${value.toLocaleString("en", { maximumSignificantDigits: 3 })}\u00a0%`;
  const [mantissa, power] = value.toExponential().split("e");
  return `${mantissa}\u00a0×\u00a010${power.replace("-", "⁻").replace(/\d/g, (digit) => RAISED[digit])}\u00a0%`;
}

/** A colour of the style sheet. */
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

/** Sequential and diverging scales. Both vary in lightness, so that they do not depend on colour vision. */
const sequential = () => [[0, colour("paper")], [0.12, colour("s1")], [0.4, colour("s2")], [0.75, colour("s3")], [1, colour("s4")]];
const diverging = () => [[0, colour("less")], [0.25, colour("less-pale")], [0.5, colour("paper")], [0.75, colour("more-pale")], [1, colour("more")]];

/** A scale of colours between two texts, as the text of an element. */
function scaleBetween(id, low, high, kind = "") {
  const scale = document.createElement("i");
  scale.className = `scale ${kind}`.trim();
  byId(id).replaceChildren(`${low} `, scale, ` ${high}`);
}

const phone = matchMedia("(max-width: 640px)");
const touch = matchMedia("(pointer: coarse)").matches; // on touch screens, a drag scrolls the page

function axis(title, more = {}) {
  return {
    ...(title ? { title: { text: shown(short(title, 40)), font: { size: 12 }, standoff: 8 } } : {}),
    gridcolor: colour("line"),
    linecolor: colour("line"),
    zeroline: false,
    exponentformat: "power",
    minexponent: 6,
    separatethousands: true,
    automargin: true,
    fixedrange: touch,
    ...more,
  };
}

function layout(more = {}) {
  return {
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("quiet") },
    margin: { l: 48, r: 12, t: 12, b: 40 },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink"), size: 12 }, align: "left" },
    dragmode: touch ? false : "zoom",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("quiet"), activecolor: colour("ink") }, // the default is half of the paper's colour, grey
    ...more,
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", ...more.legend, font: { color: colour("ink"), ...more.legend?.font } },
  };
}

const config = { displaylogo: false, showTips: false, responsive: true, displayModeBar: touch ? false : "hover", modeBarButtons: [["toImage", "resetScale2d"]] };
const figures = new Map();

/** A figure. `build` returns its traces and layout from the state of the page. */
function figure(id, build) {
  if (!byId(id)) return;
  figures.set(id, build);
}

function draw(ids = [...figures.keys()]) {
  for (const id of ids) {
    const build = figures.get(id);
    if (!build) continue;
    const { traces, ...rest } = build();
    const plot = byId(id);
    const isNew = !plot.on;
    Plotly.react(plot, traces, layout(rest), config);
    if (isNew) plot.on("plotly_afterplot", () => titleTexts(plot));
    titleTexts(plot);
  }
}

/** Figures of columns by number. Folded figures are drawn when they are unfolded. */
function columnFigures(name, count, build) {
  const more = byId("more");
  const atOnce = count - (more ? more.querySelectorAll(".plot").length : 0);
  for (let k = 0; k < atOnce; k += 1) figure(`${name}-${k}`, () => build(k));
  if (!more) return;
  more.addEventListener("toggle", () => {
    for (let k = atOnce; k < count; k += 1) {
      if (more.open) figure(`${name}-${k}`, () => build(k));
      else figures.delete(`${name}-${k}`);
    }
    draw();
  });
}

const inView = (id) => {
  const { top, bottom } = byId(id).getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};
let later = null;

/** Draw the visible figures now, and the others after the last input. */
function drawSoon(ids) {
  clearTimeout(later);
  byId("main").setAttribute("aria-busy", "true");
  const now = ids.filter(inView);
  draw(now);
  later = setTimeout(() => {
    draw(ids.filter((id) => !now.includes(id)));
    byId("main").removeAttribute("aria-busy");
  }, 160);
}

/** A selection box shows the full name of its selection on hover. */
for (const box of document.querySelectorAll("select")) {
  const title = () => { box.title = box.selectedOptions[0]?.title ?? ""; };
  box.addEventListener("change", title);
  title();
}

function setTheme(name) {
  root.dataset.theme = name;
  const button = byId("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `${button.textContent} colours`);
  draw();
}

byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));

/** Printed pages have light colours, and include folded parts. */
let onScreen = null;
addEventListener("beforeprint", () => {
  onScreen = { theme: root.dataset.theme, folded: [...document.querySelectorAll("details:not([open]):not(#more)")] };
  for (const each of onScreen.folded) each.open = true;
  if (onScreen.theme === "dark") setTheme("light");
});
addEventListener("afterprint", () => {
  for (const each of onScreen.folded) each.open = false;
  if (onScreen.theme === "dark") setTheme("dark");
});
