// Rows of any floating type as doubles.

#include <cuda_fp16.h>

__device__ double number(float x) { return x; }
__device__ double number(double x) { return x; }
__device__ double number(__half x) { return __half2float(x); }
