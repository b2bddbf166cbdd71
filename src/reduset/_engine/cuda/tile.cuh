// A tile of TILE points in shared memory, with weights and squared lengths; its type and columns are REAL and D.

struct __align__(16) Tile {
  REAL points[TILE * D];
  REAL weights[TILE];
  REAL squares[TILE];
};

__device__ int load(Tile& tile, const REAL* points, const REAL* weights, long long first, long long stop) {
  const int some = (int)min((long long)TILE, stop - first);
  __syncthreads();
  for (int j = threadIdx.x; j < some * D; j += blockDim.x) tile.points[j] = points[first * D + j];
  __syncthreads();
  for (int i = threadIdx.x; i < some; i += blockDim.x) {
    tile.weights[i] = weights[first + i];
    REAL square = 0;
    for (int j = 0; j < D; j++) square += tile.points[i * D + j] * tile.points[i * D + j];
    tile.squares[i] = square;
  }
  __syncthreads();
  return some;
}
