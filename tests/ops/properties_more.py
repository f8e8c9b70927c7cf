# SPDX-License-Identifier: Apache-2.0
"""More families of the property test: integer convolution and products, transposed convolution to a
given shape, short Fourier transforms, n-grams, caches. Expected values by definition in NumPy, or the
reference evaluator's."""
import numpy as np
from draws import Families, exact
from plain_conv import auto_pads, conv_plain, transposed_plain, window
from single_nodes import Case

more = Families()


def powers(r, low, high, shape=()):
    return np.asarray(2.0 ** r.rng.integers(low, high, shape)).astype(np.float32)


def quantized(values, scale, zero):
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(values / scale) + int(zero), info.min, info.max).astype(zero.dtype)


@more("qconv", 2)
def _(r):
    op, groups = r.pick("ConvInteger", "QLinearConv"), r.pick(1, 1, 2, 3)
    count = r.int(1, 3)
    kernel, strides, dilations, pads = window(r, count)
    size = [r.int((k - 1) * d + 1, 8) for k, d in zip(kernel, dilations)]
    each_in, each_out = r.int(1, 4), r.int(1, 4)
    x_type, w_type = r.dtype("uint8", "int8"), r.dtype("uint8", "int8")
    m = groups * each_out
    x, w = r.array(x_type, (r.int(1, 2), groups * each_in, *size)), r.array(w_type, (m, each_in, *kernel))
    xz, wz = r.array(x_type, ()), r.array(w_type, () if r.chance(0.6) else (m,))
    mode = r.pick("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    attributes = {"group": groups, "strides": strides, "dilations": dilations}
    if mode == "NOTSET":
        attributes["pads"] = pads
    else:
        attributes["auto_pad"], pads = mode, auto_pads(mode, size, kernel, strides, dilations)

    def sums(v, k, zero=None, zeros=None):
        v = v.astype(np.int64) - (0 if zero is None else int(zero))
        k = k.astype(np.int64) - (0 if zeros is None else np.asarray(zeros).astype(np.int64).reshape(-1, *[1] * (count + 1)))
        return conv_plain(v, k, None, strides, dilations, pads, groups)
    if op == "ConvInteger":
        wz = np.asarray(wz).reshape(-1)[0] if np.ndim(wz) and groups > 1 else wz
        return Case(op, [x, w, xz if r.chance(0.7) else None, np.asarray(wz) if r.chance(0.6) else None], attributes,
                    expected=lambda *a: sums(*a).astype(np.int32), constant=r.pick((), (1,), (1, 3)))
    x_scale, y_scale, w_scale = powers(r, -3, 2), powers(r, 0, 6), powers(r, -4, 1, np.shape(wz))
    yz = r.array(r.dtype("uint8", "int8") if r.chance(0.2) else x_type, ())
    bias = r.rng.integers(-300, 300, m).astype(np.int32) if r.chance(0.5) else None

    def requantized(v, s, z, k, ks, kz, t, tz, b=None):
        y = sums(v, k, z, kz) + (0 if b is None else b.reshape(-1, *[1] * count))
        return quantized(y * float(s) * ks.astype(np.float64).reshape(-1, *[1] * count), float(t), tz)
    inputs = [x, x_scale, xz, w, w_scale, wz, y_scale, yz] + ([] if bias is None else [bias])
    return Case(op, inputs, attributes, expected=requantized, constant=r.pick((), (3, 4, 5), range(1, 9)), tolerance="step")


@more("qproduct")
def _(r):
    m, k, n = (r.int(1, 24) for _ in range(3))
    a_type, b_type = r.dtype("uint8", "int8"), r.dtype("uint8", "int8")
    lead = r.shape(0, 2, 3, empty=0)
    a, b = r.array(a_type, (*lead, m, k)), r.array(b_type, (k, n) if r.chance(0.7) else (*lead, k, n))
    az, bz, yz = r.array(a_type, ()), r.array(b_type, () if r.chance(0.6) or b.ndim > 2 else (n,)), r.array(a_type, ())
    scales = [powers(r, -3, 2), powers(r, -4, 1, np.shape(bz)), powers(r, 0, 6)]

    def product(v, vs, vz, w, ws, wz, t, tz):
        y = (v.astype(np.int64) - int(vz)) @ (w.astype(np.int64) - np.asarray(wz).astype(np.int64))
        return quantized(y * float(vs) * ws.astype(np.float64), float(t), tz)
    return Case("QLinearMatMul", [a, scales[0], az, b, scales[1], bz, scales[2], yz], expected=product,
                constant=r.pick((), (3, 4, 5)), tolerance="step")


@more("transposed", 2)
def _(r):
    """auto_pad and output_shape, by the standard's formulas; the scatter of the definition."""
    count, groups = r.int(1, 3), r.pick(1, 1, 2)
    kernel, strides, dilations, _ = window(r, count)
    size, each_in, each_out = [r.int(1, 5) for _ in range(count)], r.int(1, 4), r.int(1, 4)
    extra = [r.int(0, max(s, 1) - 1) if r.chance(0.4) else 0 for s in strides]
    reach = [s * (d - 1) + (k - 1) * dil + 1 + e
             for s, d, k, dil, e in zip(strides, size, kernel, dilations, extra)]
    mode = r.pick("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    attributes = {"group": groups, "strides": strides, "dilations": dilations,
                  "output_padding": extra if any(extra) or r.chance(0.3) else None, "auto_pad": mode}
    if mode == "VALID":
        out, begin = reach, [0] * count
    else:
        out = [r.int(1, n) for n in reach] if mode == "NOTSET" or r.chance(0.5) else [s * d for s, d in zip(strides, size)]
        if any(o > n for o, n in zip(out, reach)):
            return None  # more than there is: how it is filled is not said
        total = [n - o for n, o in zip(reach, out)]
        begin = [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total]
        if mode == "NOTSET" or out != [s * d for s, d in zip(strides, size)] or r.chance(0.2):
            attributes["output_shape"] = out
    x = r.array(np.float32, (r.int(1, 2), groups * each_in, *size), edges=False)
    w = r.array(np.float32, (groups * each_in, each_out, *kernel), edges=False)

    def cropped(v, k):
        y = transposed_plain(v, k, reach, strides, dilations, groups)
        return y[(slice(None), slice(None)) + tuple(slice(b, b + o) for b, o in zip(begin, out))].astype(np.float32)
    return Case("ConvTranspose", [x, w], attributes, expected=cropped, constant=r.pick((), (1,)), tolerance="loose")


@more("fourier")
def _(r):
    op = r.pick("STFT", "DFT", "MelWeightMatrix")
    if op == "MelWeightMatrix":
        rate = r.pick(8000, 16000, 44100)
        return Case(op, [np.array(r.int(1, 16)), np.array(r.pick(16, 64, 256, 512)), np.array(rate),
                         np.array(float(r.int(0, 200)), np.float32), np.array(float(rate // 2), np.float32)],
                    opset=17, tolerance="loose")
    dtype = r.dtype("float", "double")
    if op == "DFT":  # any axis, a length of its own, both versions
        shape = (*[r.int(1, 6) for _ in range(r.int(2, 3))], r.pick(1, 2))
        axis, inverse = r.int(0, len(shape) - 2), r.int(0, 1)
        length = r.int(1, 12) if r.chance(0.5) else None
        x = r.array(dtype, shape, edges=False)

        def transformed(v, n=None, at=None):
            z = v[..., 0] + (1j * v[..., 1] if v.shape[-1] == 2 else 0)
            y = (np.fft.ifft if inverse else np.fft.fft)(z, n=None if n is None else int(n), axis=axis)
            return np.stack([y.real, y.imag], -1).astype(dtype)
        size = None if length is None else np.array(length)
        if r.chance(0.5):
            return Case(op, [x, size], {"axis": axis, "inverse": inverse}, opset=17, expected=transformed, tolerance="loose")
        return Case(op, [x, size, np.array(axis)], {"inverse": inverse}, opset=20, expected=transformed, tolerance="loose")
    length, n, step = r.int(16, 60), r.pick(2, 3, 5, 8, 16), r.int(1, 9)
    x = r.array(dtype, (r.int(1, 3), length, 1), edges=False)
    taps = r.array(dtype, (n,), edges=False) if r.chance(0.6) else None
    one = r.int(0, 1)

    def frames(v, hop, window_of=None, size=None):
        at = range(0, length - n + 1, int(hop))
        cut = np.stack([v[:, i:i + n, 0] for i in at], 1).astype(np.float64) * (1 if window_of is None else window_of)
        y = np.fft.rfft(cut, axis=-1) if one else np.fft.fft(cut, axis=-1)
        return np.stack([y.real, y.imag], -1).astype(dtype)
    return Case(op, [x, np.array(step), taps, np.array(n) if taps is None or r.chance(0.5) else None],
                {"onesided": one}, opset=17, expected=frames, tolerance="loose")


@more("ngrams")
def _(r):
    """Every n-gram of min to max words that the pool has, with gaps up to the skip count: counted by hand."""
    words, low = [1, 2, 3, 4], r.int(1, 3)
    high = r.int(low, 3)
    grams = {n: sorted({tuple(int(v) for v in r.rng.choice(words, n)) for _ in range(r.int(0 if n < high else 1, 4))})
             for n in range(1, high + 1)}
    pool, counts, order = [], [], []
    for n in range(1, high + 1):
        counts.append(len(pool))
        for gram in grams[n]:
            pool += gram
            order.append(gram)
    index = [int(v) for v in r.rng.permutation(len(order))]
    weights = [float(r.int(1, 4)) / 2 for _ in order] if r.chance(0.5) else None
    mode, skip = r.pick("TF", "IDF", "TFIDF"), r.int(0, 3)
    x = r.rng.choice([*words, 9], r.pick((r.int(1, 12),), (r.int(1, 3), r.int(1, 12)))).astype(r.pick(np.int32, np.int64))
    texts = r.chance(0.3)

    def counted(v):
        out = np.zeros((*v.shape[:-1], len(order)), np.float32)
        for at in np.ndindex(*v.shape[:-1]):
            line = [int(w) for w in v[at]]
            for n in range(low, high + 1):
                for gap in range(1, skip + 2) if n > 1 else (1,):
                    for i in range(len(line) - (n - 1) * gap):
                        gram = tuple(line[i + k * gap] for k in range(n))
                        if gram in grams[n]:
                            out[(*at, index[order.index(gram)])] += 1
        w = np.ones(len(order), np.float32)
        for gram, place in enumerate(index):
            w[place] = weights[gram] if weights else 1
        return {"TF": out, "IDF": (out > 0) * w, "TFIDF": out * w}[mode].astype(np.float32)
    attributes = {"mode": mode, "min_gram_length": low, "max_gram_length": high, "max_skip_count": skip,
                  "ngram_counts": counts, "ngram_indexes": index, "weights": weights}
    if texts:
        return Case("TfIdfVectorizer", [x.astype(str).astype(object)], {**attributes, "pool_strings": [str(v) for v in pool]},
                    expected=lambda v: counted(v.astype(np.int64)), tolerance="float")
    return Case("TfIdfVectorizer", [x], {**attributes, "pool_int64s": pool}, expected=counted, tolerance="float")


@more("cache")
def _(r):
    b, length, mode = r.int(1, 4), r.int(2, 7), r.pick("linear", "circular")
    tail = r.shape(0, 2, 3, empty=0)
    heads = r.shape(0, 1, 3, empty=0)
    new = r.int(1, length)
    dtype = r.dtype("float", "float16", "int64", "uint8", "double")
    at = r.rng.integers(0, length - new + 1 if mode == "linear" else length, b)
    axis = 1 + len(heads)

    def scattered(past, update, where=None):
        y = past.copy()
        for i in range(b):
            first = 0 if where is None else int(where[i])
            for k in range(new):
                y[(i, *[slice(None)] * len(heads), (first + k) % length)] = update[(i, *[slice(None)] * len(heads), k)]
        return y
    inputs = [r.array(dtype, (b, *heads, length, *tail)), r.array(dtype, (b, *heads, new, *tail))]
    return exact(Case("TensorScatter", inputs + ([at] if r.chance(0.8) else []), {
        "mode": mode, "axis": r.pick(axis, axis - inputs[0].ndim)}, expected=scattered))
