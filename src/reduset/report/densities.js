// Densities of weighted atoms on grids: sums of Gaussian bumps along each column.

const columnCount = data.columns.length;
const stepSizes = data.steps.sizes;
const atomCount = stepSizes[stepSizes.length - 1];
const places = unpacked(data.atoms); // by columns, from the middle of each grid
const allWeights = unpacked(data.steps.weights); // of all steps, one after the other
const fullMarginals = unpacked(data.marginals);
const fullJoint = unpacked(data.joint);

const columnOf = (k) => places.subarray(k * atomCount, (k + 1) * atomCount);

/** The weights of the atoms at a step: as many as the step has. */
function weightsAt(step) {
  let start = 0;
  for (let k = 0; k < step; k += 1) start += stepSizes[k];
  return allWeights.subarray(start, start + stepSizes[step]);
}

/** Places of a grid, as they are told to people. */
function gridOf([low, high, count], middle) {
  return Float64Array.from({ length: count }, (_, i) => middle + low + ((high - low) * i) / (count - 1));
}

/** The bump of each atom at each place of a grid: an array of atoms a place. */
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

/** The bumps of a column on the grid for pairs, computed once for all atoms. */
function pairBumps(k) {
  if (!kept.has(k)) kept.set(k, bumps(columnOf(k), data.pairAxes[k]));
  return kept.get(k);
}

/** p(t) = Σ w N(t; x, h²) along column k. */
function marginalAt(k, step) {
  const weights = weightsAt(step);
  const atoms = columnOf(k);
  const [low, high, count, width] = data.axes[k];
  const gap = (high - low) / (count - 1);
  const peak = 1 / (Math.sqrt(2 * Math.PI) * width);
  const reach = Math.sqrt(80) * width;
  const out = new Float64Array(count);
  for (let a = 0; a < weights.length; a += 1) {
    const first = Math.max(0, Math.ceil((atoms[a] - reach - low) / gap));
    const last = Math.min(count - 1, Math.floor((atoms[a] + reach - low) / gap));
    for (let i = first; i <= last; i += 1) {
      const t = (low + gap * i - atoms[a]) / width;
      out[i] += weights[a] * peak * Math.exp(-0.5 * t * t);
    }
  }
  return out;
}

/** p(s, t) = Σ w N(s; x, h²) N(t; y, h²): rows along the second column of the pair, as a picture has them. */
function jointAt(pair, step) {
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

/** The same of all rows, from the file. */
function fullJointOf(pair) {
  const count = data.pairAxes[0][2];
  const start = pair * count * count;
  return Array.from({ length: count }, (_, up) => Float64Array.from({ length: count }, (_, across) => fullJoint[start + across * count + up]));
}

const fullMarginalOf = (k) => fullMarginals.subarray(k * data.axes[k][2], (k + 1) * data.axes[k][2]);
