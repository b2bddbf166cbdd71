"""Elementary functions that LLVM can vectorise: exp, log, and sine with cosine.

The C library computes one number per call, which prevents vectorisation. These functions are polynomials after an argument
reduction, for float32 and float64. Relative error: 1e-7 and 4e-16 or better.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# Reassociation allows sums in vector lanes. Finite numbers are assumed, because all input is validated first.
FAST = {"reassoc", "contract", "arcp", "nsz"}


# Coefficients, highest power first.
EXP_SINGLE = tuple(
    map(np.float32, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1))
)
EXP_DOUBLE = (  # near-minimax on |r| ≤ ½ ln 2: error 3e-18
    2.5110049204818658e-08,
    2.763265472252779e-07,
    2.755724088722987e-06,
    2.4801485441561313e-05,
    0.00019841269890076403,
    0.0013888888952352863,
    0.008333333333319589,
    0.04166666666648795,
    0.1666666666666668,
    0.5000000000000019,
    1.0,
    1.0,
)
ATANH_SINGLE = tuple(np.float32(2.0 / odd) for odd in range(9, 0, -2))  # of s², for 2·atanh(s)/s
ATANH_DOUBLE = tuple(2.0 / odd for odd in range(21, 0, -2))
SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(9, 0, -1))  # of x²; the first power is added separately
COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(10, -1, -1))


@intrinsic
def _polynomial(typingctx: Any, coefficients: Any, x: Any) -> Any:
    """Evaluate the polynomial at x by Horner's rule, unrolled."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.extract_value(args[0], 0)
        for k in range(1, len(signature.args[0])):
            value = builder.fadd(builder.fmul(value, args[1]), builder.extract_value(args[0], k))
        return value

    return x(coefficients, x), codegen


def _bits_as(source: Any, target: Any, kind: Any) -> Any:
    """A function that reinterprets the bits of one type as another type."""

    @intrinsic
    def read(typingctx: Any, bits: Any) -> Any:
        return target(source), lambda context, builder, signature, args: builder.bitcast(args[0], kind)

    return read


_as_float32 = _bits_as(types.int32, types.float32, ir.FloatType())
_as_float64 = _bits_as(types.int64, types.float64, ir.DoubleType())
_as_int32 = _bits_as(types.float32, types.int32, ir.IntType(32))
_as_int64 = _bits_as(types.float64, types.int64, ir.IntType(64))


def exp_minus(x):
    """exp(-x) for x ≥ 0, exactly 0 where it would underflow."""
    return math.exp(-x)


@overload(exp_minus, inline="always")
def _exp_minus(x):
    if x == types.float32:

        def single(x):
            y = -min(x, np.float32(87.0))
            n = np.floor(y * np.float32(1.4426950408889634) + np.float32(0.5))
            r = y - n * np.float32(0.693359375)  # ln 2 in two parts; the first has few bits, so that its product with n is exact
            r = r + n * np.float32(2.12194440e-4)
            p = _polynomial(EXP_SINGLE, r) * r * r + r + np.float32(1.0)
            value = p * _as_float32((np.int32(n) + np.int32(127)) << np.int32(23))
            return value if x < np.float32(87.0) else np.float32(0.0)

        return single

    def double(x):
        y = -min(x, 708.0)
        n = np.floor(y * 1.4426950408889634 + 0.5)
        r = y - n * 6.93145751953125e-1
        r = r - n * 1.42860682030941723212e-6
        value = _polynomial(EXP_DOUBLE, r) * _as_float64((np.int64(n) + np.int64(1023)) << np.int64(52))
        return value if x < 708.0 else 0.0

    return double


def log_of(x):
    """log(x) for finite x ≥ 1."""
    return math.log(x)


@overload(log_of, inline="always")
def _log_of(x):
    # x = 2^k·m with m in [√½, √2), and log m = 2·atanh(s) with s = (m - 1)/(m + 1), |s| < 0.172.
    if x == types.float32:

        def single(x):
            k = (_as_int32(x) - np.int32(0x3F3504F3)) >> np.int32(23)
            m = _as_float32(_as_int32(x) - (k << np.int32(23)))
            s = (m - np.float32(1.0)) / (m + np.float32(1.0))
            return np.float32(k) * np.float32(0.6931471805599453) + s * _polynomial(ATANH_SINGLE, s * s)

        return single

    def double(x):
        k = (_as_int64(x) - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
        m = _as_float64(_as_int64(x) - (k << np.int64(52)))
        s = (m - 1.0) / (m + 1.0)
        return np.float64(k) * 0.6931471805599453 + s * _polynomial(ATANH_DOUBLE, s * s)

    return double


@njit(inline="always")
def turn(t: float) -> tuple[float, float]:
    """(cos, sin) of 2πt. With t in turns, the argument reduction is one exact subtraction."""
    t = t - np.floor(t + 0.5)
    x = math.pi * t  # in [-π/2, π/2]; the angle is 2x, computed by doubling at the end
    z = x * x
    s = _polynomial(SINE, z) * z * x + x
    c = _polynomial(COSINE, z)
    return 1.0 - 2.0 * s * s, 2.0 * s * c
