// Choose centres among a few thousand candidates, always the farthest, in one launch of a cooperative grid.
//
// Arithmetic follows the definition: squared differences in double precision, added in order without fusing; the first of equal
// candidates wins. Each thread keeps its candidates. A step reads the results of all blocks.

__device__ void wait_for_all(unsigned int* arrived, unsigned int target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < target) {
    }
    __threadfence();
  }
  __syncthreads();
}

__device__ void farther(double& value, int& place, double other, int other_place) {
  if (other > value || (other == value && other_place < place)) {
    value = other;
    place = other_place;
  }
}

// The farthest candidate of all threads of a block, in thread 0.
__device__ void farthest_of_block(double& value, int& place, double* values, int* places) {
  values[threadIdx.x] = value;
  places[threadIdx.x] = place;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      farther(values[threadIdx.x], places[threadIdx.x], values[threadIdx.x + half], places[threadIdx.x + half]);
    }
    __syncthreads();
  }
  value = values[0];
  place = places[0];
  __syncthreads();
}

// candidates: (d, k); found_values, found_places: (2, blocks); chosen, at: (most,); result: number chosen, largest distance left
extern "C" __global__ void choose(const double* candidates, double* gaps, int k, int d, double floor, int most,
                                  long long* chosen, double* at, double* found_values, int* found_places,
                                  unsigned int* arrived, double* result) {
  extern __shared__ double values[];
  int* places = (int*)(values + blockDim.x);
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  for (int step = 0;; step++) {
    double value = -1.0;
    int place = k;
    for (int i = first; i < k; i += stride) farther(value, place, gaps[i], i);
    farthest_of_block(value, place, values, places);
    const int turn = (step & 1) * gridDim.x;  // two buffers, since a block may read while another writes the next step
    if (threadIdx.x == 0) {
      found_values[turn + blockIdx.x] = value;
      found_places[turn + blockIdx.x] = place;
    }
    wait_for_all(arrived, (step + 1) * gridDim.x);
    value = -1.0;
    place = k;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
      farther(value, place, ((volatile double*)found_values)[turn + b], ((volatile int*)found_places)[turn + b]);
    }
    farthest_of_block(value, place, values, places);
    if (step == most || value < floor) {
      if (first == 0) {
        result[0] = step;
        result[1] = value;
      }
      return;
    }
    if (first == 0) {
      chosen[step] = place;
      at[step] = value;
    }
    for (int i = first; i < k; i += stride) {
      double total = 0.0;
      for (int j = 0; j < d; j++) {
        const double u = __dsub_rn(candidates[(long long)j * k + i], candidates[(long long)j * k + place]);
        total = __dadd_rn(total, __dmul_rn(u, u));
      }
      gaps[i] = fmin(gaps[i], total);
    }
  }
}
