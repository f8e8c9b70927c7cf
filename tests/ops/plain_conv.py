# SPDX-License-Identifier: Apache-2.0
"""Windows drawn at random, the standard's padding, and convolutions by their definition."""
import numpy as np


def window(r, count, dilated=True):
    kernel = [r.int(1, 3) for _ in range(count)]
    strides = [r.int(1, 3) for _ in range(count)]
    dilations = [r.int(1, 2) if dilated else 1 for _ in range(count)]
    pads = [r.int(0, kernel[i % count] - 1) for i in range(2 * count)]
    return kernel, strides, dilations, pads


def auto_pads(mode, size, kernel, strides, dilations):
    """pads of SAME_UPPER, SAME_LOWER and VALID, by the standard's formula."""
    begin, end = [], []
    for d, k, s, dil in zip(size, kernel, strides, dilations):
        reach = (k - 1) * dil + 1
        total = max((-(-d // s) - 1) * s + reach - d, 0) if mode != "VALID" else 0
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return begin + end


def conv_plain(x, w, b, strides, dilations, pads, groups):
    """Convolution by its definition, in f64."""
    count = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(pads[i], pads[count + i]) for i in range(count)])
    kernel = w.shape[2:]
    size = [(x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(count)]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    each_in, each_out = w.shape[1], w.shape[0] // groups
    for at in np.ndindex(*kernel):
        part = x[(slice(None), slice(None)) + tuple(
            slice(at[i] * dilations[i], at[i] * dilations[i] + (size[i] - 1) * strides[i] + 1, strides[i])
            for i in range(count))]
        for g in range(groups):
            y[:, g * each_out:(g + 1) * each_out] += np.einsum(
                "nc...,oc->no...", part[:, g * each_in:(g + 1) * each_in],
                w[(slice(g * each_out, (g + 1) * each_out), slice(None)) + at].astype(np.float64))
    return y if b is None else y + b.astype(np.float64).reshape([1, -1] + [1] * count)


def transposed_plain(x, w, reach, strides, dilations, groups):
    """Transposed convolution as the scatter of its definition, in f64, all `reach` positions of each axis."""
    each_in, each_out, size, kernel = x.shape[1] // groups, w.shape[1], x.shape[2:], w.shape[2:]
    y = np.zeros((x.shape[0], groups * each_out, *reach))
    for at in np.ndindex(*kernel):
        where = tuple(slice(k * dil, k * dil + (n - 1) * s + 1, s)
                      for k, dil, n, s in zip(at, dilations, size, strides))
        for g in range(groups):
            y[(slice(None), slice(g * each_out, (g + 1) * each_out)) + where] += np.einsum(
                "nc...,co->no...", x[:, g * each_in:(g + 1) * each_in].astype(np.float64),
                w[(slice(g * each_in, (g + 1) * each_in), slice(None)) + at].astype(np.float64))
    return y
