// Split numbers in single precision into two in half precision; the second is the remainder times LOW. One thread per number.

#include <cuda_fp16.h>

extern "C" __global__ void split(const float* values, long long count, __half* high, __half* low) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const __half whole = __float2half(values[k]);
  high[k] = whole;
  low[k] = __float2half((values[k] - __half2float(whole)) * LOW);
}
