# SPDX-License-Identifier: Apache-2.0
"""Situations at the edge for operators that look through windows or walk along time: convolution,
pooling, resizing, sampling, boxes, norms, recurrent ones. What other runtimes' own tests try."""
import numpy as np
from draws import Families
from single_nodes import Case

edges = Families()
LOOSE = "loose"


def f32(r, shape, scale=1.0):
    return np.asarray(r.rng.standard_normal(shape) * scale).astype(np.float32)


def geometry(r, count, most=4):
    """kernel, strides, dilations, pads that may exceed the kernel, and sizes that fit."""
    kernel = [r.int(1, most) for _ in range(count)]
    strides = [r.int(1, 4) for _ in range(count)]
    dilations = [r.pick(1, 1, 2, 3) for _ in range(count)]
    pads = [r.pick(0, 0, 1, 2, 5) for _ in range(2 * count)]
    size = []
    for i, (k, d) in enumerate(zip(kernel, dilations)):
        reach = (k - 1) * d + 1
        size.append(max(1, reach - pads[i] - pads[count + i] + r.int(0, 7)))
    return kernel, strides, dilations, pads, size


def padding(r, kernel, pads):
    """Attributes of one way to pad."""
    mode = r.pick("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    return {"auto_pad": mode} if mode != "NOTSET" else {"pads": pads} if any(pads) else {}


@edges("conv", 3)
def _(r):
    count, groups = r.int(1, 3), r.pick(1, 1, 2, 4)
    kernel, strides, dilations, pads, size = geometry(r, count)
    each_in, each_out = r.int(1, 9), r.int(1, 9)
    if r.chance(0.2):
        each_in, groups = 1, r.int(2, 20)
    x = f32(r, (r.pick(0, 1, 2, 3), groups * each_in, *size))
    w = f32(r, (groups * each_out, each_in, *kernel))
    attributes = {"group": groups, "kernel_shape": kernel if r.chance(0.5) else None}
    attributes.update(padding(r, kernel, pads))
    if r.chance(0.8):
        attributes.update(strides=strides, dilations=dilations)
    return Case("Conv", [x, w] + ([f32(r, (groups * each_out,))] if r.chance(0.5) else []), attributes,
                opset=r.pick(11, 22), constant=r.pick((), (1,), (1, 2)), tolerance=LOOSE)


@edges("conv", 2)
def _(r):
    count, groups = r.int(1, 3), r.pick(1, 1, 2, 3)
    kernel, strides, dilations, pads, size = geometry(r, count)
    each_in, each_out = r.int(1, 5), r.int(1, 5)
    size = [r.int(1, 5) for _ in size]
    x = f32(r, (r.pick(1, 1, 2, 0), groups * each_in, *size))
    w = f32(r, (groups * each_in, each_out, *kernel))
    attributes = {"group": groups, "strides": strides, "dilations": dilations,
                  "kernel_shape": kernel if r.chance(0.5) else None}
    extra = [r.int(0, max(s, d) - 1) if r.chance(0.5) else 0 for s, d in zip(strides, dilations)]
    how = r.int(0, 3)
    if how == 0:
        attributes.update(pads=pads, output_padding=extra)
    elif how == 1:
        attributes["output_shape"] = [s * d + r.int(0, 2) for s, d in zip(strides, size)]
        attributes["auto_pad"] = r.pick(None, "SAME_UPPER", "SAME_LOWER")
        attributes["output_padding"] = r.pick(None, extra)
    elif how == 2:
        attributes["auto_pad"] = r.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        attributes["output_padding"] = r.pick(None, extra)
    return Case("ConvTranspose", [x, w] + ([f32(r, (groups * each_out,))] if r.chance(0.5) else []),
                attributes, opset=r.pick(1, 11, 22), constant=r.pick((), (1,)), tolerance=LOOSE)


@edges("conv")
def _(r):
    op = r.pick("ConvInteger", "QLinearConv")
    kernel, strides, dilations, pads, size = geometry(r, 2, 3)
    groups, each_in, each_out = r.pick(1, 1, 2), r.int(1, 6), r.int(1, 6)
    x_type, w_type = r.pick((np.uint8, np.uint8), (np.uint8, np.int8)) if op == "ConvInteger" else \
        r.pick((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    x = r.array(x_type, (r.int(1, 2), groups * each_in, *size))
    w = r.array(w_type, (groups * each_out, each_in, *kernel))
    if x_type != w_type:
        w = w // 2  # onnxruntime's pairs of products overflow 16 bits
    m = groups * each_out
    attributes = {"group": groups, "strides": strides, "dilations": dilations, **padding(r, kernel, pads)}
    xz = r.array(x_type, ())
    wz = np.zeros((), w_type) if w_type == np.int8 else r.array(w_type, ())
    if op == "ConvInteger":
        return Case(op, [x, w, xz if r.chance(0.7) else None, wz if r.chance(0.7) else None], attributes,
                    opset=10, constant=r.pick((), (1,), (1, 3)))
    scales = (2.0 ** r.rng.integers(-7, -3, (m,) if r.chance(0.5) else ())).astype(np.float32)
    wz = np.full(scales.shape, wz, w_type)
    bias = r.rng.integers(-999, 999, m).astype(np.int32) if r.chance(0.5) else None
    one = [np.array(v, np.float32) for v in (0.5, r.pick(0.25, 1.0, 4.0))]
    inputs = [x, one[0], xz, w, scales, wz, one[1], r.array(x_type, ()), bias]
    if any(p >= kernel[i % 2] for i, p in enumerate(pads)):
        return None  # onnxruntime gives 0, not the zero point, where the window is in the padding
    return Case(op, inputs, attributes, opset=10, constant=range(3, 6) if r.chance(0.5) else range(1, 9),
                tolerance="step")


@edges("pool", 3)
def _(r):
    op, count = r.pick("MaxPool", "AveragePool", "LpPool"), r.int(1, 3)
    kernel, strides, dilations, pads, size = geometry(r, count)
    pads = [min(p, kernel[i % count] - 1) for i, p in enumerate(pads)]
    size = [max(s, (k - 1) * d + 1) for s, k, d in zip(size, kernel, dilations)]
    opset = r.pick(*{"MaxPool": (1, 8, 10, 11, 12, 22), "AveragePool": (1, 7, 10, 11, 19, 22),
                     "LpPool": (2, 11, 18, 22)}[op])
    dtype = r.dtype("float", "float", "double", *(("int8", "uint8") if op == "MaxPool" and opset >= 12 else ()))
    x = r.array(dtype, (r.pick(0, 1, 2), r.int(1, 20), *size), edges=False)
    attributes = {"kernel_shape": kernel, **padding(r, kernel, pads)}
    if r.chance(0.8):
        attributes["strides"] = strides
    if opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op] and r.chance(0.5):
        attributes["dilations"] = dilations
    if opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]:
        attributes["ceil_mode"] = r.int(0, 1)
    outputs = 1
    if "SAME" in attributes.get("auto_pad", "") and (
            "dilations" in attributes or any(a > b for a, b in zip(strides, kernel))):
        return None  # onnxruntime takes the kernel's length without its dilation, and pads with less than 0
    if op == "AveragePool" and opset >= 7:
        attributes["count_include_pad"] = r.int(0, 1)
    elif op == "LpPool":
        attributes["p"] = r.int(1, 3)
    elif opset >= 8 and r.chance(0.4):
        outputs, attributes["storage_order"] = 2, r.int(0, 1)
    return Case(op, [x], attributes, outputs=outputs, opset=opset, tolerance=LOOSE)


@edges("pool")
def _(r):
    op = r.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "MaxUnpool")
    shape = (r.pick(0, 1, 3), r.int(1, 20), *[r.int(1, 6) for _ in range(r.int(1, 3))])
    if op != "MaxUnpool":
        attributes = {"p": r.int(1, 3)} if op == "GlobalLpPool" else {}
        return Case(op, [f32(r, shape)], attributes, opset=r.pick(2 if "Lp" in op else 1, 22), tolerance=LOOSE)
    n, c, h, w = 1, r.int(1, 2), r.int(1, 3), r.int(1, 3)
    k, s = r.pick(2, 3), 2
    full = [(h - 1) * s + k, (w - 1) * s + k]
    index = np.stack([r.rng.permutation(full[0] * full[1])[:h * w] + i * full[0] * full[1]
                      for i in range(n * c)]).reshape(n, c, h, w)
    inputs = [f32(r, (n, c, h, w)), index.astype(np.int64)]
    return Case(op, inputs, {"kernel_shape": [k, k], "strides": [s, s]}, opset=r.pick(9, 11, 22))


@edges("resize", 4)
def _(r):
    opset = r.pick(10, 11, 13, 18, 19)
    mode = r.pick("nearest", "linear", "cubic") if opset > 10 else r.pick("nearest", "linear")
    count = 2 if mode == "cubic" else r.int(1, 3) if mode == "linear" else r.int(1, 3)
    shape = (1, r.int(1, 2), *[r.int(1, 6) for _ in range(count)])
    if count == 1 and mode == "linear":
        shape = (r.int(1, 4), r.int(1, 5)) if r.chance(0.5) else shape
    x = f32(r, shape)
    if mode == "nearest" and opset > 10 and r.chance(0.3):
        x = r.array(r.dtype("uint8", "int32", "int8"), shape, edges=False)
    if opset == 10:
        scales = [1.0, 1.0] + [r.pick(0.5, 0.6, 1.0, 1.3, 2.0, 3.0) for _ in shape[2:]] if len(shape) > 2 else \
            [r.pick(0.5, 1.0, 2.0) for _ in shape]
        if any(int(d * s) < 1 or int(d * s) == d and s != 1 for d, s in zip(shape, scales)):
            return None  # onnxruntime copies what keeps its length
        return Case("Resize", [x, np.array(scales, np.float32)], {"mode": mode}, opset=10,
                    constant=r.pick((), (1,)), tolerance=LOOSE)
    transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
    if opset < 13:
        transforms.append("tf_half_pixel_for_nn")
    if opset >= 19:
        transforms.append("half_pixel_symmetric")
    transform = r.pick(*transforms)
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = r.pick(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes.update(cubic_coeff_a=r.pick(None, -0.5), exclude_outside=r.pick(None, 0, 1))
    if opset >= 18 and mode != "nearest" and transform != "tf_crop_and_resize" and r.chance(0.4):
        attributes["antialias"] = 1
    if mode == "cubic" and transform == "tf_crop_and_resize":
        return None  # onnxruntime does not extrapolate along both axes
    crops = transform == "tf_crop_and_resize"
    at = list(range(len(shape)))
    if opset >= 18 and r.chance(0.4) and len(shape) > 2:
        at = list(range(2, len(shape)))
        attributes["axes"] = [a - len(shape) if r.chance(0.3) else a for a in at]
    roi = None
    if transform == "tf_crop_and_resize":
        low, high = r.rng.uniform(-0.2, 0.4, len(at)), r.rng.uniform(0.6, 1.2, len(at))
        if at[0] == 0 and len(shape) > 2:
            low[:2], high[:2] = 0, 1
        roi = np.concatenate([low, high]).astype(np.float32)
        attributes["extrapolation_value"] = r.pick(None, 7.0)
    empty = np.zeros(0, np.float32)
    lead = len(shape) > 2 and at[0] == 0
    if r.chance(0.5):
        scales = [1.0 if lead and a < 2 else r.pick(0.4, 0.5, 0.6, 1.0, 1.3, 1.5, 2.0, 2.5, 3.0) for a in at]
        exact = [np.float32(shape[a]) * np.float32(s) for a, s in zip(at, scales)]
        if transform == "pytorch_half_pixel" and any(1 < v < 2 for v in exact):
            return None
        if any(v < 1 or int(v) == shape[a] and v % 1 for a, v in zip(at, exact)) or \
                mode == "nearest" and any(s in (0.4, 0.6, 1.3) for s in scales):
            return None  # onnxruntime copies what keeps its length; where a half is, is a matter of f32 or f64
        if transform in ("align_corners", "tf_crop_and_resize", "pytorch_half_pixel") and any(v % 1 for v in exact):
            return None  # onnxruntime calculates with the length rounded, the standard's cases with the exact
        inputs = [x, empty if roi is None and r.chance(0.5) else roi, np.array(scales, np.float32)]
    else:
        sizes = [shape[a] if lead and a < 2 else r.int(1, 12) for a in at]
        if opset >= 18 and len(at) < len(shape):
            # onnxruntime mixes up axes counted from behind here.
            attributes.update(axes=at, keep_aspect_ratio_policy=r.pick(None, "not_larger", "not_smaller"))
            if attributes["keep_aspect_ratio_policy"] and transform == "align_corners":
                return None  # as with scales
        inputs = [x, roi, None, np.array(sizes, np.int64)]
        if crops:
            attributes.pop("keep_aspect_ratio_policy", None)
    if crops and any(n == shape[a] and not (lead and a < 2) for n, a in
                     zip(sizes if inputs[-1].dtype == np.int64 else [int(v) for v in exact], at)):
        return None  # onnxruntime copies what keeps its length
    if opset == 11:  # roi and scales are required there
        inputs[1] = empty if inputs[1] is None else inputs[1]
        inputs[2] = empty if inputs[2] is None else inputs[2]
    return Case("Resize", inputs, attributes, opset=opset, constant=r.pick((1, 2, 3), ()), tolerance=LOOSE)


@edges("resize")
def _(r):
    mode, count = r.pick("nearest", "linear"), r.int(1, 2)
    shape = (1, r.int(1, 3), *[r.int(1, 5) for _ in range(count)])
    if mode == "linear" and count == 1:
        shape = (r.int(1, 5), r.int(1, 5))
    scales = [1.0 if len(shape) > 2 and i < 2 else r.pick(1.0, 1.5, 2.0, 3.0) for i in range(len(shape))]
    if r.chance(0.5):
        return Case("Upsample", [f32(r, shape)], {"scales": scales, "mode": mode}, opset=7, tolerance=LOOSE)
    return Case("Upsample", [f32(r, shape), np.array(scales, np.float32)], {"mode": mode}, opset=9,
                constant=(1,), tolerance=LOOSE)


@edges("grid")
def _(r):
    opset = r.pick(16, 20, 22)
    names = {"linear": "bilinear", "cubic": "bicubic"} if opset == 16 else {}
    count = 2 if opset == 16 else r.int(2, 3)
    mode = r.pick("linear", "nearest", "cubic") if count == 2 else r.pick("linear", "nearest")
    x = f32(r, (r.pick(0, 1, 2), r.int(1, 3), *[r.int(1, 5) for _ in range(count)]))
    grid = r.rng.uniform(-2.3, 2.3, (x.shape[0], *[r.int(1, 5) for _ in range(count)], count))
    return Case("GridSample", [x, grid.astype(np.float32)], {
        "mode": names.get(mode, mode), "padding_mode": r.pick("zeros", "border", "reflection"),
        "align_corners": r.int(0, 1)}, opset=opset, tolerance=LOOSE)


@edges("boxes", 2)
def _(r):
    op = r.pick("RoiAlign", "MaxRoiPool", "NonMaxSuppression", "NonMaxSuppression")
    if op == "RoiAlign":
        n, rois, opset = r.int(1, 3), r.pick(0, 1, 3, 6), r.pick(10, 16, 22)
        x = f32(r, (n, r.int(1, 3), r.int(2, 8), r.int(2, 8)))
        low = r.rng.uniform(-3, 5, (rois, 2))
        boxes = np.concatenate([low, low + r.rng.uniform(-0.5, 6, (rois, 2))], 1).astype(np.float32)
        return Case(op, [x, boxes, r.rng.integers(0, n, rois)], {
            "mode": r.pick(None, "avg"), "output_height": r.pick(None, 2, 3), "output_width": r.pick(None, 1, 4),
            "sampling_ratio": r.pick(None, 0, 1, 2, 3), "spatial_scale": r.pick(None, 0.5, 0.25),
            "coordinate_transformation_mode": r.pick(None, "half_pixel", "output_half_pixel")
            if opset >= 16 else None}, opset=opset, tolerance=LOOSE)
    if op == "MaxRoiPool":
        n, rois = r.int(1, 2), r.int(1, 4)
        x = f32(r, (n, r.int(1, 3), r.int(3, 8), r.int(3, 8)))
        low = r.rng.integers(0, 4, (rois, 2))
        boxes = np.concatenate([r.rng.integers(0, n, (rois, 1)), low, low + r.rng.integers(0, 6, (rois, 2))], 1)
        return Case(op, [x, boxes.astype(np.float32)], {
            "pooled_shape": [r.int(1, 3), r.int(1, 3)], "spatial_scale": r.pick(None, 0.5, 1.0)}, opset=r.pick(1, 22))
    batches, classes, count = r.int(1, 2), r.int(1, 3), r.pick(0, 1, 6, 20)
    low = r.rng.integers(0, 6, (batches, count, 2)) / 2
    boxes = np.concatenate([low, low + r.rng.integers(-2, 5, (batches, count, 2))], 2).astype(np.float32)
    scores = (r.rng.integers(0, 6, (batches, classes, count)) / 4).astype(np.float32)
    inputs = [boxes, scores, np.array([r.pick(0, 1, 3, 100)]), np.array([r.pick(0.0, 0.3, 0.5, 1.0)], np.float32),
              np.array([r.pick(0.0, 0.25, 0.6)], np.float32)]
    inputs = [np.asarray(v).reshape(()) if i > 1 and r.chance(0.3) else v for i, v in enumerate(inputs)]
    inputs = inputs[:r.int(2, 5)] if r.chance(0.3) else inputs
    return Case(op, inputs, {"center_point_box": r.pick(None, 0, 1)}, opset=r.pick(10, 11))


@edges("norms", 2)
def _(r):
    op = r.pick("LayerNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization",
                "LpNormalization", "MeanVarianceNormalization", "LRN", "RMSNormalization")
    c, opset = r.pick(1, 2, 4, 6), None
    x = f32(r, (r.pick(1, 2, 0), c, *[r.int(1, 5) for _ in range(r.int(1, 3))]))
    scale, bias = f32(r, (c,)), f32(r, (c,))
    attributes, inputs, outputs = {}, [x, scale, bias], 1
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = r.axis(x.ndim) if r.chance(0.8) else None
        tail = x.shape[(-1 if axis is None else axis) % x.ndim:]
        inputs, attributes = [x, f32(r, tail)], {"axis": axis, "epsilon": r.pick(None, 1e-2)}
        opset = 17 if op == "LayerNormalization" else 23
        if op == "LayerNormalization":
            inputs += [f32(r, tail)] if r.chance(0.5) else []
            outputs = r.pick(1, 1, 2, 3)
    elif op == "InstanceNormalization":
        attributes, opset = {"epsilon": r.pick(None, 1e-2)}, r.pick(6, 22)
    elif op == "GroupNormalization":
        groups, opset = r.pick(*[g for g in (1, 2, 3) if c % g == 0]), r.pick(18, 21)
        attributes = {"num_groups": groups}
        if opset == 18:
            inputs = [x, f32(r, (groups,)), f32(r, (groups,))]
    elif op == "BatchNormalization":
        opset, attributes = r.pick(7, 9, 14, 15), {"epsilon": r.pick(None, 1e-2)}
        inputs += [f32(r, (c,)), np.abs(f32(r, (c,))) + np.float32(0.1)]
    elif op == "LpNormalization":
        inputs, attributes, opset = [x], {"axis": r.axis(x.ndim), "p": r.pick(None, 1, 2)}, r.pick(1, 22)
    elif op == "MeanVarianceNormalization":
        x = f32(r, (r.int(1, 3), c, r.int(1, 4), r.int(1, 4)))
        inputs, attributes, opset = [x], {"axes": r.pick(None, [0, 2, 3], [2, 3], [1, 2, 3])}, r.pick(9, 13)
        if x.shape[2] * x.shape[3] == 1:
            return None  # onnxruntime divides 0 by 0; the function's body adds an epsilon
    else:
        x = f32(r, (r.int(1, 2), r.int(1, 9), r.int(1, 3), r.int(1, 3)))
        inputs, opset = [x], r.pick(1, 13)  # onnxruntime has odd sizes only
        attributes = {"size": r.pick(1, 3, 5), "alpha": r.pick(None, 0.02), "beta": r.pick(None, 0.6),
                      "bias": r.pick(None, 2.0)}
    return Case(op, inputs, attributes, opset=opset, outputs=outputs, tolerance=LOOSE)


ACTIVATIONS = ["Sigmoid", "Tanh", "Relu", "Softsign", "Tanh", "HardSigmoid", "LeakyRelu", "Elu", "ThresholdedRelu",
               "ScaledTanh", "Affine"]


@edges("recurrent", 4)
def _(r):
    op, direction = r.pick("LSTM", "GRU", "RNN"), r.pick("forward", "reverse", "bidirectional")
    gates, dirs = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    t, n, i, h = r.int(1, 5), r.int(1, 4), r.int(1, 6), r.int(1, 9)
    attributes = {"hidden_size": h, "direction": direction if direction != "forward" or r.chance(0.5) else None}
    inputs = [f32(r, (t, n, i)), f32(r, (dirs, gates * h, i), 0.5), f32(r, (dirs, gates * h, h), 0.5),
              f32(r, (dirs, 2 * gates * h), 0.5) if r.chance(0.6) else None,
              r.rng.integers(0 if r.chance(0.3) else 1, t + 1, n).astype(np.int32) if r.chance(0.4) else None,
              f32(r, (dirs, n, h)) if r.chance(0.4) else None]
    if op == "LSTM":
        inputs += [f32(r, (dirs, n, h)) if r.chance(0.4) else None,
                   f32(r, (dirs, 3 * h), 0.5) if r.chance(0.3) else None]
        attributes["input_forget"] = r.pick(None, None, 1)
    if op == "GRU":
        attributes["linear_before_reset"] = r.pick(None, 0, 1)
    if r.chance(0.3):
        attributes["clip"] = r.pick(0.5, 1.5, 9.0)
    if r.chance(0.4):
        each = {"LSTM": 3, "GRU": 2, "RNN": 1}[op] * dirs
        # Softplus overflows in onnxruntime; ThresholdedRelu and the last two have no common defaults.
        attributes["activations"] = [r.pick(*ACTIVATIONS) for _ in range(each)]
        own = [a for a in attributes["activations"] if a in ACTIVATIONS[5:]]
        if own and (set(own) & set(ACTIVATIONS[8:]) or r.chance(0.5)):
            attributes["activation_alpha"] = [0.3 + 0.1 * k for k in range(len(own))]
            attributes["activation_beta"] = [0.6] * len([a for a in own if a in ("HardSigmoid", *ACTIVATIONS[9:])])
            if not attributes["activation_beta"]:
                del attributes["activation_beta"]
    while inputs[-1] is None:
        inputs.pop()
    outputs = 3 if op == "LSTM" else 2
    unmade = r.pick((), (), (0,), (1,) if op == "LSTM" else (), (0, 1) if op == "LSTM" else ())
    return Case(op, inputs, attributes, outputs=outputs, unmade=unmade, opset=r.pick(7, 14, 22),
                constant=r.pick((), (1, 2, 3)), tolerance=LOOSE)


@edges("signal")
def _(r):
    op = r.pick("DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow")
    if op.endswith("Window"):
        return Case(op, [np.array(r.int(2, 20), r.pick(np.int32, np.int64))],
                    {"periodic": r.pick(None, 0, 1), "output_datatype": r.pick(None, 1, 11)}, opset=17, tolerance=LOOSE)
    if op == "MelWeightMatrix":
        rate = r.pick(8192, 16000)
        inputs = [np.array(r.int(2, 12)), np.array(r.pick(16, 64, 257)), np.array(rate),
                  np.array(0.0, np.float32), np.array(rate / 2, np.float32)]
        return Case(op, inputs, opset=17, tolerance=LOOSE)
    if op == "STFT":
        length, n = r.int(16, 40), r.pick(4, 8, 16)
        x = f32(r, (r.int(1, 2), length, r.pick(1, 2)))
        one = r.int(0, 1) if x.shape[2] == 1 else 0
        frame = r.pick(None, np.array(n))
        window = f32(r, (n,)) if frame is None or r.chance(0.5) else None
        return Case(op, [x, np.array(r.int(1, 6)), window, frame], {"onesided": one}, opset=17, tolerance=LOOSE)
    x = f32(r, (r.int(1, 2), r.int(1, 9), r.int(1, 9), r.pick(1, 2)))
    axis, inverse = r.int(1, 2), r.int(0, 1)
    one = 0 if inverse or x.shape[3] == 2 else r.int(0, 1)
    size = np.array(r.int(1, 12)) if r.chance(0.4) else None
    if r.chance(0.5):
        return Case(op, [x, size], {"axis": axis, "inverse": inverse, "onesided": one}, opset=17, tolerance=LOOSE)
    return Case(op, [x, size, np.array(r.pick(axis, axis - 4))], {"inverse": inverse, "onesided": one}, opset=20,
                tolerance=LOOSE)


@edges("image")
def _(r):
    op = r.pick("AffineGrid", "Col2Im", "DepthToSpace", "SpaceToDepth", "CenterCropPad", "DeformConv")
    if op == "AffineGrid":
        count, n = r.int(2, 3), r.int(1, 3)
        # An axis of one position: onnxruntime puts it at 1, the standard's reference at -1.
        return Case(op, [f32(r, (n, count, count + 1)),
                         np.array([n, 2, *[r.int(2, 5) for _ in range(count)]], np.int64)],
                    {"align_corners": r.int(0, 1)}, opset=20, tolerance=LOOSE)
    if op == "Col2Im":
        count = r.int(1, 3)
        kernel, strides, _, pads, _ = geometry(r, count, 3)
        dilations = [1] * count  # onnxruntime adds wrongly with others, or where the two sides differ
        pads = pads[:count] * 2
        size = [r.int((k - 1) * d + 1, 8) for k, d in zip(kernel, dilations)]
        blocks = [(s + pads[i] + pads[i + count] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
                  for i, s in enumerate(size)]
        x = f32(r, (r.int(1, 2), r.int(1, 3) * int(np.prod(kernel)), int(np.prod(blocks))))
        return Case(op, [x, np.array(size, np.int64), np.array(kernel, np.int64)],
                    {"strides": strides, "dilations": dilations, "pads": pads}, opset=18, tolerance=LOOSE)
    b, (n, c, h, w) = r.int(1, 3), (r.int(1, 3) for _ in range(4))
    if op == "DepthToSpace":
        return Case(op, [f32(r, (n, c * b * b, h, w))], {
            "blocksize": b, "mode": r.pick(None, "DCR", "CRD")}, opset=r.pick(11, 13))
    if op == "SpaceToDepth":
        return Case(op, [f32(r, (n, c, h * b, w * b))], {"blocksize": b}, opset=r.pick(1, 13))
    if op == "DeformConv":
        groups, offsets = r.int(1, 2), r.int(1, 2)
        kernel, strides, dilations, pads, size = geometry(r, 2, 3)
        cin, m = groups * offsets * r.int(1, 2), groups * r.int(1, 2)
        out = [(size[i] + pads[i] + pads[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
               for i in range(2)]
        taps = offsets * kernel[0] * kernel[1]
        inputs = [f32(r, (n, cin, *size)), f32(r, (m, cin // groups, *kernel)), f32(r, (n, 2 * taps, *out)),
                  f32(r, (m,)) if r.chance(0.5) else None, f32(r, (n, taps, *out)) if r.chance(0.5) else None]
        return Case(op, inputs, {"group": groups, "offset_group": offsets, "strides": strides, "pads": pads,
                                 "dilations": dilations}, opset=r.pick(19, 22), tolerance=LOOSE)
    shape = r.shape(1, 4, empty=0)
    axes = [a % len(shape) for a in range(len(shape)) if r.chance(0.6)]
    if not axes:
        return Case(op, [f32(r, shape), np.array([r.int(1, 9) for _ in shape], np.int64)], opset=18)
    return Case(op, [f32(r, shape), np.array([r.int(1, 9) for _ in axes], np.int64)], {"axes": axes}, opset=18)
