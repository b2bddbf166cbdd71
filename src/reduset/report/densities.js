// Densities of weighted atoms or components on grids: sums of Gaussian kernels along each column, with the covariance of each component.

const columnCount = data.columns.length;
const stepSizes = data.steps.sizes;
const atomCount = stepSizes[stepSizes.length - 1];
const places = unpacked(data.atoms); // by columns, from the middle of each grid
const allWeights = unpacked(data.steps.weights); // of all steps, one after the other
const fullMarginals = unpacked(data.marginals);
const fullJoint = unpacked(data.joint);

const laws = data.laws && { ...data.laws, variances: unpacked(data.laws.variances), crossed: unpacked(data.laws.crossed) };

/** The variance of a component along a column and its covariance over a pair, without the kernel of the figure and in its units. */
const varianceOf = (k, a) => (laws ? laws.variances[k * atomCount + a] : 0);
const crossedOf = (pair, a) => laws.crossed[pair * atomCount + a];

const columnOf = (k) => places.subarray(k * atomCount, (k + 1) * atomCount);

/** The weights of the atoms at a step. */
function weightsAt(step) {
  let start = 0;
  for (let k = 0; k < step; k += 1) start += stepSizes[k];
  return allWeights.subarray(start, start + stepSizes[step]);
}

/** Points of a grid, in the units of the column. */
function gridOf([low, high, count], middle) {
  return Float64Array.from({ length: count }, (_, i) => middle + low + ((high - low) * i) / (count - 1));
}

/** The kernel of each atom at each point of a grid: an array of atoms for each point. */
function bumps(atoms, [low, high, count, width]) {
  const peak = 1 / (Math.sqrt(2 * Math.PI) * width);
  return Array.from({ length: count }, (_, i) => {
    const place = low + ((high - low) * i) / (count - 1);
    return Float64Array.from(atoms, (atom) => {
      const t = (place - atom) / width;
      return t * t > 80 ? 0 : peak * Math.exp(-0.5 * t * t);
    });
  });
}

const kept = new Map();

/** The kernels of a column on the grid for pairs, computed once for all atoms. */
function pairBumps(k) {
  if (!kept.has(k)) kept.set(k, bumps(columnOf(k), data.pairAxes[k]));
  return kept.get(k);
}

/** p(t) = Σ w N(t; x, h²) along column k; for components, N(t; x, h² + S). */
function marginalAt(k, step) {
  const weights = weightsAt(step);
  const atoms = columnOf(k);
  const [low, high, count, width] = data.axes[k];
  const gap = (high - low) / (count - 1);
  const out = new Float64Array(count);
  for (let a = 0; a < weights.length; a += 1) {
    const own = width * Math.sqrt(1 + varianceOf(k, a));
    const peak = 1 / (Math.sqrt(2 * Math.PI) * own);
    const reach = Math.sqrt(80) * own;
    const first = Math.max(0, Math.ceil((atoms[a] - reach - low) / gap));
    const last = Math.min(count - 1, Math.floor((atoms[a] + reach - low) / gap));
    for (let i = first; i <= last; i += 1) {
      const t = (low + gap * i - atoms[a]) / own;
      out[i] += weights[a] * peak * Math.exp(-0.5 * t * t);
    }
  }
  return out;
}

/** p(s, t) = Σ w N(s; x, h²) N(t; y, h²): rows are along the second column of the pair, as in an image. */
function jointAt(pair, step) {
  if (laws) return lawsAt(pair, step);
  const [k, j] = data.pairs[pair];
  const [across, up] = [pairBumps(k), pairBumps(j)];
  const weights = weightsAt(step);
  return up.map((row) => {
    const weighted = weights.map((weight, a) => weight * row[a]);
    return Float64Array.from(across, (column) => {
      let sum = 0;
      for (let a = 0; a < weighted.length; a += 1) sum += weighted[a] * column[a];
      return sum;
    });
  });
}

/** The same for components. Their densities are not products over the columns. */
function lawsAt(pair, step) {
  const [k, j] = data.pairs[pair];
  const [[left, right, across, wide], [bottom, top, up, high]] = [data.pairAxes[k], data.pairAxes[j]];
  const [stepAcross, stepUp] = [(right - left) / (across - 1), (top - bottom) / (up - 1)];
  const [finer, shorter] = [data.axes[k][3] / wide, data.axes[j][3] / high]; // in units of the coarser grid of pairs
  const out = Array.from({ length: up }, () => new Float64Array(across));
  weightsAt(step).forEach((weight, a) => {
    const [x, y] = [columnOf(k)[a], columnOf(j)[a]];
    const [xx, yy, xy] = [1 + varianceOf(k, a) * finer * finer, 1 + varianceOf(j, a) * shorter * shorter, crossedOf(pair, a) * finer * shorter];
    const determinant = xx * yy - xy * xy;
    const peak = weight / (2 * Math.PI * wide * high * Math.sqrt(determinant));
    const [reachAcross, reachUp] = [Math.sqrt(80 * xx) * wide, Math.sqrt(80 * yy) * high];
    const within = (low, at, reach, gap, count) => [Math.max(0, Math.ceil((at - reach - low) / gap)), Math.min(count - 1, Math.floor((at + reach - low) / gap))];
    const [firstUp, lastUp] = within(bottom, y, reachUp, stepUp, up);
    const [firstAcross, lastAcross] = within(left, x, reachAcross, stepAcross, across);
    for (let r = firstUp; r <= lastUp; r += 1) {
      const t = (bottom + stepUp * r - y) / high;
      for (let c = firstAcross; c <= lastAcross; c += 1) {
        const s = (left + stepAcross * c - x) / wide;
        out[r][c] += peak * Math.exp((-0.5 * (yy * s * s - 2 * xy * s * t + xx * t * t)) / determinant);
      }
    }
  });
  return out;
}

/** The standard deviation of a component along a column, including the kernel. */
const deviationOf = (k, a) => data.axes[k][3] * Math.sqrt(varianceOf(k, a) + laws.bump[k]);

/** The outline of a component over a pair of columns: one standard deviation, including the kernel, relative to the middles. */
function outline(pair, a, count = 48) {
  const [k, j] = data.pairs[pair];
  const [wide, high] = [data.axes[k][3], data.axes[j][3]];
  const [xx, yy, xy] = [varianceOf(k, a) + laws.bump[k], varianceOf(j, a) + laws.bump[j], crossedOf(pair, a) + laws.bumpCrossed[pair]];
  const [first, slope] = [Math.sqrt(xx), xy / Math.sqrt(xx)]; // the Cholesky factor
  const rest = Math.sqrt(Math.max(yy - slope * slope, 0));
  const turns = Array.from({ length: count + 1 }, (_, i) => (2 * Math.PI * i) / count);
  return {
    x: turns.map((turn) => columnOf(k)[a] + wide * first * Math.cos(turn)),
    y: turns.map((turn) => columnOf(j)[a] + high * (slope * Math.cos(turn) + rest * Math.sin(turn))),
  };
}

/** The density of all rows, from the file. */
function fullJointOf(pair) {
  const count = data.pairAxes[0][2];
  const start = pair * count * count;
  return Array.from({ length: count }, (_, up) => Float64Array.from({ length: count }, (_, across) => fullJoint[start + across * count + up]));
}

const fullMarginalOf = (k) => fullMarginals.subarray(k * data.axes[k][2], (k + 1) * data.axes[k][2]);
