// The error at every scale, with random rows and the sampling error, for compressions and sketches.

const { piece } = data;
const pieces = (count) => `${count.toLocaleString("en")} ${piece}${count === 1 ? "" : "s"}`;

/** The error at every scale, for the size with a profile nearest to the slider. */
function fineFigure(step) {
  const { bandwidths, noise, confidence, tol, steps, sizes, unit } = data.profile;
  const shown = sizes[steps[step]];
  byId("fine-told").textContent = shown.told;
  const count = shown.size.toLocaleString("en");
  const drawn = (more) => ({ x: bandwidths, mode: "lines", hovertemplate: `${more.name} %{y:.3p}<extra></extra>`, ...more });
  const known = (values) => values.some((value) => value !== null);
  const all = sizes.flatMap(({ errors, random_rows }) => [...errors, ...random_rows]).concat(noise, tol).filter((value) => value > 0);
  const [least, most] = [Math.min(...all), Math.max(...sizes.map(({ highest }) => highest))]; // over all sizes, so that axes do not change
  const floor = least / 4;
  const bare = { line: { width: 0 }, hoverinfo: "skip", hovertemplate: undefined, connectgaps: false };
  const band = (values) => values.map((value, k) => (shown.errors[k] === null ? null : Math.min(Math.max(value ?? Infinity, floor), 1e9)));
  const traces = [
    drawn({ name: "lower end", y: band(shown.low), showlegend: false, ...bare }),
    drawn({ name: `${percent(confidence)} interval`, y: band(shown.high), fill: "tonexty", fillcolor: colour("accent-pale"), legendrank: 2, showlegend: !phone.matches, ...bare }),
  ];
  if (known(noise)) traces.push(drawn({ name: "sampling error of all rows", y: noise, legendrank: 4, line: { color: colour("quiet"), dash: "dashdot", width: 1 } }));
  if (known(shown.random_rows)) traces.push(drawn({ name: `${count} random rows`, y: shown.random_rows, legendrank: 3, line: { color: colour("quiet"), dash: "dot", width: 2 } }));
  traces.push(drawn({ name: pieces(shown.size), y: shown.errors, legendrank: 1, line: { color: colour("accent"), width: 3 } }));
  if (shown.finest !== null) {
    traces.push({
      name: `at most ${percent(tol)} from bandwidth ${digits(shown.finest, 3)} on`, x: [bandwidths[0], shown.finest, shown.finest], y: [tol, tol, floor], mode: "lines",
      line: { color: colour("ink"), dash: "dash", width: 1.5 }, hoverinfo: "skip", cliponaxis: false, legendrank: 5,
    });
  }
  if (shown.own !== null && shown.own[1] > 0) {
    traces.push({ name: "at the bandwidth of the kernel", x: [shown.own[0]], y: [shown.own[1]], mode: "markers", marker: { size: 9, color: colour("accent") }, hoverinfo: "skip", legendrank: 6, showlegend: !phone.matches });
  }
  const ticks = errorTicks([least, most]);
  // the smallest bandwidths are omitted if all errors are above the figure, or if rows do not overlap, so that the sampling error is 100 %
  const last = bandwidths.findLastIndex((_, k) => sizes.some(({ errors }) => errors[k] !== null && errors[k] <= 2 * most) && !(noise[k] > 0.99));
  const narrowest = Math.min(bandwidths.at(last > 0 ? last : -1), ...sizes.map(({ finest, own }) => Math.min(finest ?? Infinity, own ? own[0] : Infinity)));
  return {
    traces,
    xaxis: axis(`bandwidth (${unit})`, { type: "log", range: [Math.log10(narrowest), Math.log10(bandwidths[0])], ...scaleTicks(bandwidths), hoverformat: ".3~g" }),
    yaxis: axis("error", { type: "log", range: [Math.log10(least / 1.5), Math.log10(1.3 * most)], ...ticks }),
    margin: { l: 56, r: phone.matches ? 16 : 34, t: 12, b: 44 },
    hovermode: "x unified",
    legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", ...(phone.matches ? { font: { size: 11 } } : {}) },
  };
}

/** Ticks at ones, twos and fives. */
function scaleTicks(values) {
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const marks = high - low > 4 || phone.matches ? [1] : [1, 2, 5];
  const ticks = Array.from({ length: high - low + 1 }, (_, k) => low + k).flatMap((power) => marks.map((digit) => digit * 10 ** power));
  return { tickvals: ticks, ticktext: ticks.map((tick) => digits(tick, 1)) };
}

/** Ticks at up to six powers of ten, and at twos and fives on a short axis. */
function errorTicks(values) {
  const decades = values.filter((value) => value > 0).map(Math.log10);
  if (Math.max(...decades) - Math.min(...decades) < 1.5) {
    const marks = Math.max(...decades) - Math.min(...decades) < 0.7 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] : [1, 2, 5];
    const ticks = [-1, 0, 1, 2].flatMap((k) => marks.map((digit) => digit * 10 ** (Math.floor(Math.min(...decades)) + k)));
    return { tickvals: ticks, ticktext: ticks.map(percent) };
  }
  const [low, high] = [Math.floor(Math.min(...decades)), Math.ceil(Math.max(...decades))];
  const every = Math.ceil((high - low) / 6);
  const powers = Array.from({ length: high - low + 1 }, (_, k) => high - k).filter((_, k) => k % every === 0);
  return { tickvals: powers.map((power) => 10 ** power), ticktext: powers.map((power) => percent(10 ** power).replace("1\u00a0×\u00a0", "")) };
}
