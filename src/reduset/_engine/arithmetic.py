"""Elementary functions that LLVM can vectorise: exp, log, and sine with cosine.

The C library's versions are called once a number and stop a loop from being vectorised; these are plain polynomials after
an argument reduction, written for float32 and float64. Relative error: 1e-7 and 4e-16 or better.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# Reassociation lets sums run in vector lanes. Finite numbers are assumed: input is checked before it comes here.
FAST = {"reassoc", "contract", "arcp", "nsz"}


@intrinsic
def _as_float32(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _as_float64(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _as_int32(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def _as_int64(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def exp_minus(x):
    """exp(-x) for x ≥ 0, exactly 0 where it would underflow."""
    return math.exp(-x)


@overload(exp_minus, inline="always")
def _exp_minus(x):
    if x == types.float32:

        def single(x):
            y = -min(x, np.float32(87.0))
            n = np.floor(y * np.float32(1.4426950408889634) + np.float32(0.5))
            r = y - n * np.float32(0.693359375)  # ln 2 in two parts: the first has few bits, so n * it is exact
            r = r + n * np.float32(2.12194440e-4)
            p = np.float32(1.9875691500e-4)
            p = p * r + np.float32(1.3981999507e-3)
            p = p * r + np.float32(8.3334519073e-3)
            p = p * r + np.float32(4.1665795894e-2)
            p = p * r + np.float32(1.6666665459e-1)
            p = p * r + np.float32(5.0000001201e-1)
            p = p * r * r + r + np.float32(1.0)
            value = p * _as_float32((np.int32(n) + np.int32(127)) << np.int32(23))
            return value if x < np.float32(87.0) else np.float32(0.0)

        return single

    def double(x):
        y = -min(x, 708.0)
        n = np.floor(y * 1.4426950408889634 + 0.5)
        r = y - n * 6.93145751953125e-1
        r = r - n * 1.42860682030941723212e-6
        # near-minimax on |r| ≤ ½ ln 2: error 3e-18
        p = 2.5110049204818658e-08
        p = p * r + 2.763265472252779e-07
        p = p * r + 2.755724088722987e-06
        p = p * r + 2.4801485441561313e-05
        p = p * r + 0.00019841269890076403
        p = p * r + 0.0013888888952352863
        p = p * r + 0.008333333333319589
        p = p * r + 0.04166666666648795
        p = p * r + 0.1666666666666668
        p = p * r + 0.5000000000000019
        p = p * r + 1.0
        p = p * r + 1.0
        value = p * _as_float64((np.int64(n) + np.int64(1023)) << np.int64(52))
        return value if x < 708.0 else 0.0

    return double


def log_of(x):
    """log(x) for finite x ≥ 1."""
    return math.log(x)


@overload(log_of, inline="always")
def _log_of(x):
    # x = 2^k·m with m in [√½, √2); log m = 2·atanh(s), s = (m - 1)/(m + 1), |s| < 0.172.
    if x == types.float32:

        def single(x):
            k = (_as_int32(x) - np.int32(0x3F3504F3)) >> np.int32(23)
            m = _as_float32(_as_int32(x) - (k << np.int32(23)))
            s = (m - np.float32(1.0)) / (m + np.float32(1.0))
            z = s * s
            p = np.float32(2.0 / 9.0)
            p = p * z + np.float32(2.0 / 7.0)
            p = p * z + np.float32(2.0 / 5.0)
            p = p * z + np.float32(2.0 / 3.0)
            p = p * z + np.float32(2.0)
            return np.float32(k) * np.float32(0.6931471805599453) + s * p

        return single

    def double(x):
        k = (_as_int64(x) - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
        m = _as_float64(_as_int64(x) - (k << np.int64(52)))
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 2.0 / 21.0
        p = p * z + 2.0 / 19.0
        p = p * z + 2.0 / 17.0
        p = p * z + 2.0 / 15.0
        p = p * z + 2.0 / 13.0
        p = p * z + 2.0 / 11.0
        p = p * z + 2.0 / 9.0
        p = p * z + 2.0 / 7.0
        p = p * z + 2.0 / 5.0
        p = p * z + 2.0 / 3.0
        p = p * z + 2.0
        return np.float64(k) * 0.6931471805599453 + s * p

    return double


@njit(inline="always")
def turn(t: float) -> tuple[float, float]:
    """(cos, sin) of 2πt, t counted in turns, so that the reduction is one exact subtraction."""
    t = t - np.floor(t + 0.5)
    x = math.pi * t  # in [-π/2, π/2]; the angle is 2x, reached by doubling at the end
    z = x * x
    s = -1.0 / 121645100408832000.0
    s = s * z + 1.0 / 355687428096000.0
    s = s * z - 1.0 / 1307674368000.0
    s = s * z + 1.0 / 6227020800.0
    s = s * z - 1.0 / 39916800.0
    s = s * z + 1.0 / 362880.0
    s = s * z - 1.0 / 5040.0
    s = s * z + 1.0 / 120.0
    s = s * z - 1.0 / 6.0
    s = s * z * x + x
    c = 1.0 / 2432902008176640000.0
    c = c * z - 1.0 / 6402373705728000.0
    c = c * z + 1.0 / 20922789888000.0
    c = c * z - 1.0 / 87178291200.0
    c = c * z + 1.0 / 479001600.0
    c = c * z - 1.0 / 3628800.0
    c = c * z + 1.0 / 40320.0
    c = c * z - 1.0 / 720.0
    c = c * z + 1.0 / 24.0
    c = c * z - 0.5
    c = c * z + 1.0
    return 1.0 - 2.0 * s * s, 2.0 * s * c
