/* SPDX-License-Identifier: Apache-2.0
 * DFT, STFT, the window functions and MelWeightMatrix. Transforms: ops/fft.h. */
#include <math.h>

#include "ops/fft.h"
#include "ops/op.h"
#include "tensor/convert.h"

#define NAME(node) SDX_STR_ARG((node)->op_type)

static const double pi = 3.14159265358979323846;

static double load(int dtype, const void *values, int64_t i)
{
    return dtype == SDX_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void store(int dtype, void *values, int64_t i, double v)
{
    if (dtype == SDX_F32)
        ((float *)values)[i] = (float)v;
    else
        ((double *)values)[i] = v;
}

static enum sdx_status check_type(struct sdx_prepare *px)
{
    int dtype = px->in[0]->dtype;
    if (dtype == SDX_F32 || dtype == SDX_F64) return SDX_OK;
    return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED, "%.*s: element type %s", NAME(px->node),
                    sdx_dtype_short_name(dtype));
}

/* The integer in a one-element input. 1: known, 0: left out, -1: not known. */
static int scalar_of(struct sdx_infer *ix, int i, int64_t *v)
{
    if (!sdx_infer_has(ix, i)) return 0;
    const struct sdx_tensor *t = sdx_infer_value(ix, i);
    if (!t || t->count < 1) return -1;
    *v = sdx_load_i64(t->dtype, t->data, 0);
    return 1;
}

static int64_t parts_of(const struct sdx_fft *f, int64_t lanes, int64_t lines)
{
    const int64_t groups = (lines + lanes - 1) / lanes;
    const int64_t parts = sdx_prepare_parts((double)lines * (double)f->n * 20, 1 << 16, 64);
    return parts < groups ? parts : groups;
}

/* ---- DFT ---- */

struct dft {
    struct sdx_fft f;
    int64_t inner, in_length, out_length, in_parts, out_parts, lines, lanes;
    bool inverse, onesided;
};

static enum sdx_status infer_dft(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    bool inverse = sdx_ir_attr_int(ix->node, "inverse", 0) != 0;
    bool onesided = sdx_ir_attr_int(ix->node, "onesided", 0) != 0;
    int64_t axis = ix->opset >= 20 ? -2 : sdx_ir_attr_int(ix->node, "axis", 1), length = -1;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    if (rank < 2)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DFT: input has rank %d, expected at least 2", rank);
    if (ix->opset >= 20 && scalar_of(ix, 2, &axis) < 0) { /* which axis changes is not known */
        int64_t *any = sdx_infer_new_dims(ix, 0, rank);
        if (!any) return ix->cx->error.status;
        const bool keeps = !onesided && !sdx_infer_has(ix, 1);
        for (int d = 0; d < rank; d++)
            any[d] = keeps ? dims[d] : -1;
        any[rank - 1] = onesided && inverse ? 1 : 2;
        return SDX_OK;
    }
    int known = scalar_of(ix, 1, &length), at;
    if (known < 0) return SDX_OK;
    SDX_TRY(sdx_infer_axis(ix, axis, rank, &at));
    if (at == rank - 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DFT: axis is the one of real and imaginary parts");
    if (dims[rank - 1] > 2 || dims[rank - 1] == 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DFT: last axis has length %lld, expected 1 or 2",
                        (long long)dims[rank - 1]);
    if (!known)
        length = inverse && onesided && dims[at] >= 0 ? 2 * (dims[at] - 1)
                 : inverse && onesided                ? -1
                                                      : dims[at];
    if ((known || dims[at] >= 0) && length < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "DFT: length is %lld, expected at least 1",
                        (long long)length);
    int64_t *out = sdx_infer_new_dims(ix, 0, rank);
    if (!out) return SDX_FAIL_MEMORY(ix->cx);
    memcpy(out, dims, (size_t)rank * sizeof *out);
    out[at] = length;
    if (onesided && !inverse) out[at] = length < 0 ? -1 : length / 2 + 1;
    out[rank - 1] = onesided && inverse ? 1 : 2;
    return SDX_OK;
}

/* As the operators' reference: transforms are made in double, inverse ones in the type of the
 * values. Where the true result is 0, what rounding leaves of it shows the difference. */
static int type_of_arithmetic(const struct sdx_tensor *x, bool inverse)
{
    return inverse ? x->dtype : SDX_F64;
}

/* What a real signal cannot have is ignored; the other half of its values is the conjugate. */
static void complete(const struct dft *p, void *lines)
{
    const int64_t n = p->f.n, lanes = p->lanes;
    const int dtype = p->f.dtype;
    for (int64_t l = 0; l < lanes; l++) {
        store(dtype, lines, lanes + l, 0);
        if (n % 2 == 0) store(dtype, lines, (n + 1) * lanes + l, 0);
    }
    for (int64_t i = 1; i < n - i; i++)
        for (int64_t l = 0; l < lanes; l++) {
            const int64_t from = 2 * i * lanes + l, to = 2 * (n - i) * lanes + l;
            store(dtype, lines, to, load(dtype, lines, from));
            store(dtype, lines, to + lanes, -load(dtype, lines, from + lanes));
        }
}

static enum sdx_status run_dft(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct dft *p = step->params;
    struct sdx_tensor *in = step->in[0], *out = step->out[0];
    struct sdx_fft_values from = {
        .dtype = in->dtype, .x = in->data, .step = p->inner, .parts = p->in_parts};
    struct sdx_fft_values to = {
        .dtype = out->dtype, .x = out->data, .step = p->inner, .parts = p->out_parts};
    int64_t count = p->in_length < p->f.n ? p->in_length : p->f.n; /* cut, or filled with zeros */
    if (p->inverse && p->onesided && count > p->f.n / 2 + 1) count = p->f.n / 2 + 1;
    double scale = p->inverse ? 1 / (double)p->f.n : 1;
    if (p->f.dtype == SDX_F32) scale = (float)scale;
    const int64_t begin = sdx_part_begin(p->lines, step->parts, part, p->lanes);
    const int64_t end = sdx_part_begin(p->lines, step->parts, part + 1, p->lanes);
    for (int64_t i = begin; i < end && !sdx_exec_cancelled(x); i += p->lanes) {
        from.lines = to.lines = end - i < p->lanes ? end - i : p->lanes;
        for (int64_t l = 0; l < from.lines; l++) {
            const int64_t outer = (i + l) / p->inner * p->inner, rest = (i + l) % p->inner;
            from.first[l] = outer * p->in_length + rest;
            to.first[l] = outer * p->out_length + rest;
        }
        sdx_fft_read(&p->f, p->lanes, &from, count, x->scratch);
        if (p->inverse && p->onesided) complete(p, x->scratch);
        sdx_fft_run(&p->f, p->lanes, x->scratch, p->inverse);
        sdx_fft_write(&p->f, p->lanes, &to, p->out_length, scale, x->scratch);
    }
    return SDX_OK;
}

static enum sdx_status prepare_dft(struct sdx_prepare *px)
{
    struct dft *p = SDX_PREPARE_NEW(px, struct dft);
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    int64_t axis = px->opset >= 20 ? -2 : sdx_ir_attr_int(px->node, "axis", 1);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(check_type(px));
    if (px->opset >= 20 && sdx_prepare_has(px, 2)) {
        const struct sdx_tensor *t = sdx_prepare_value(px, 2);
        if (!t) return SDX_FAIL(px->cx, SDX_INTERNAL, "DFT: axis is not known");
        axis = sdx_load_i64(t->dtype, t->data, 0);
    }
    if (axis < 0) axis += x->rank;
    p->inverse = sdx_ir_attr_int(px->node, "inverse", 0) != 0;
    p->onesided = sdx_ir_attr_int(px->node, "onesided", 0) != 0;
    p->in_length = x->dims[axis];
    p->out_length = y->dims[axis];
    p->in_parts = x->dims[x->rank - 1];
    p->out_parts = y->dims[y->rank - 1];
    p->inner = p->lines = 1;
    for (int i = 0; i < x->rank - 1; i++) {
        if (i != axis) p->lines *= x->dims[i];
        if (i > axis) p->inner *= x->dims[i];
    }
    int64_t n = p->out_length;
    if (p->onesided && !p->inverse) {
        n = p->in_length;
        if (sdx_prepare_has(px, 1)) {
            const struct sdx_tensor *t = sdx_prepare_value(px, 1);
            if (!t) return SDX_FAIL(px->cx, SDX_INTERNAL, "DFT: length is not known");
            n = sdx_load_i64(t->dtype, t->data, 0);
        }
    }
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_fft_init(px, n, type_of_arithmetic(x, p->inverse), &p->f));
    p->lanes = sdx_fft_lanes(&p->f, p->lines);
    return sdx_prepare_step(px, "dft", run_dft, p, parts_of(&p->f, p->lanes, p->lines),
                            sdx_fft_size(&p->f, p->lanes));
}

/* ---- STFT ---- */

struct stft {
    struct sdx_fft f;
    int64_t length, step, frames, bins, in_parts, lines, lanes;
};

/* Length of a frame from the inputs. 1: known, -1: not known. */
static int frame_length_of(struct sdx_infer *ix, int64_t *length)
{
    int known = scalar_of(ix, 3, length);
    if (known) return known;
    if (sdx_infer_has(ix, 2))
        *length = sdx_infer_rank(ix, 2) == 1 ? sdx_infer_dims(ix, 2)[0] : -1;
    else
        *length = sdx_infer_dims(ix, 0)[1];
    return *length < 0 ? -1 : 1;
}

static enum sdx_status infer_stft(struct sdx_infer *ix)
{
    int rank = sdx_infer_rank(ix, 0);
    const int64_t *dims = sdx_infer_dims(ix, 0);
    int64_t step = 0, length = 0;
    sdx_infer_set_dtype(ix, 0, sdx_infer_dtype(ix, 0));
    if (rank < 0) return SDX_OK;
    if (rank != 2 && rank != 3)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "STFT: signal has rank %d, expected 3", rank);
    int known_step = scalar_of(ix, 1, &step), known_length = frame_length_of(ix, &length);
    if (known_step > 0 && step < 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "STFT: frame_step is %lld, expected at least 1",
                        (long long)step);
    if (known_length > 0 && (length < 1 || (dims[1] >= 0 && length > dims[1])))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "STFT: frame length is %lld, expected 1 to the signal's length %lld",
                        (long long)length, (long long)dims[1]);
    bool onesided = sdx_ir_attr_int(ix->node, "onesided", 1) != 0;
    int64_t out[4] = {dims[0], -1, -1, 2};
    if (known_length > 0) out[2] = onesided ? length / 2 + 1 : length;
    if (known_length > 0 && known_step > 0 && dims[1] >= 0) out[1] = (dims[1] - length) / step + 1;
    return known_step > 0 && known_length > 0 ? sdx_infer_set_dims(ix, 0, 4, out) : SDX_OK;
}

static enum sdx_status run_stft(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct stft *p = step->params;
    const struct sdx_tensor *in = step->in[0], *out = step->out[0];
    const struct sdx_tensor *window = step->count_in > 2 ? step->in[2] : NULL;
    struct sdx_fft_values from = {.dtype = in->dtype,
                                  .x = in->data,
                                  .window = window ? window->data : NULL,
                                  .step = 1,
                                  .parts = p->in_parts};
    struct sdx_fft_values to = {.dtype = out->dtype, .x = out->data, .step = 1, .parts = 2};
    const int64_t begin = sdx_part_begin(p->lines, step->parts, part, p->lanes);
    const int64_t end = sdx_part_begin(p->lines, step->parts, part + 1, p->lanes);
    for (int64_t i = begin; i < end && !sdx_exec_cancelled(x); i += p->lanes) {
        from.lines = to.lines = end - i < p->lanes ? end - i : p->lanes;
        for (int64_t l = 0; l < from.lines; l++) {
            from.first[l] = (i + l) / p->frames * p->length + (i + l) % p->frames * p->step;
            to.first[l] = (i + l) * p->bins;
        }
        sdx_fft_read(&p->f, p->lanes, &from, p->f.n, x->scratch);
        sdx_fft_run(&p->f, p->lanes, x->scratch, false);
        sdx_fft_write(&p->f, p->lanes, &to, p->bins, 1, x->scratch);
    }
    return SDX_OK;
}

static enum sdx_status prepare_stft(struct sdx_prepare *px)
{
    struct stft *p = SDX_PREPARE_NEW(px, struct stft);
    const struct sdx_tensor *x = px->in[0], *y = px->out[0];
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(check_type(px));
    const struct sdx_tensor *step = sdx_prepare_value(px, 1), *length = NULL;
    if (sdx_prepare_has(px, 3)) length = sdx_prepare_value(px, 3);
    if (!step || (sdx_prepare_has(px, 3) && !length))
        return SDX_FAIL(px->cx, SDX_INTERNAL, "STFT: frame lengths are not known");
    const struct sdx_tensor *window = sdx_prepare_has(px, 2) ? px->in[2] : NULL;
    int64_t n = length   ? sdx_load_i64(length->dtype, length->data, 0)
                : window ? window->count
                         : x->dims[1];
    if (window && window->count != n)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "STFT: window has %lld values, expected %lld",
                        (long long)window->count, (long long)n);
    p->length = x->dims[1];
    p->in_parts = x->rank == 3 ? x->dims[2] : 1;
    if (p->in_parts != 1 && p->in_parts != 2)
        return SDX_FAIL(px->cx, SDX_BAD_MODEL, "STFT: last axis has length %lld, expected 1 or 2",
                        (long long)p->in_parts);
    p->step = sdx_load_i64(step->dtype, step->data, 0);
    p->frames = y->dims[1];
    p->bins = y->dims[2];
    if (y->count == 0) return SDX_OK;
    SDX_TRY(sdx_fft_init(px, n, SDX_F64, &p->f));
    p->lines = y->dims[0] * p->frames;
    p->lanes = sdx_fft_lanes(&p->f, p->lines);
    return sdx_prepare_step(px, "stft", run_stft, p, parts_of(&p->f, p->lanes, p->lines),
                            sdx_fft_size(&p->f, p->lanes));
}

/* ---- windows and mel weights ---- */

static enum sdx_status output_type(struct sdx_infer *ix)
{
    int64_t dtype = sdx_ir_attr_int(ix->node, "output_datatype", SDX_F32);
    if (dtype < 0 || dtype > 255 || !sdx_dtype_is_valid((int)dtype) || dtype == SDX_STRING)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: output_datatype is %lld", NAME(ix->node),
                        (long long)dtype);
    sdx_infer_set_dtype(ix, 0, (int)dtype);
    return SDX_OK;
}

static enum sdx_status infer_window(struct sdx_infer *ix)
{
    int64_t size = 0;
    SDX_TRY(output_type(ix));
    int known = scalar_of(ix, 0, &size);
    if (known > 0 && size < 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "%.*s: size is %lld, expected at least 0",
                        NAME(ix->node), (long long)size);
    return known > 0 ? sdx_infer_set_dims(ix, 0, 1, &size) : SDX_OK;
}

/* a0 - a1 cos(t) + a2 cos(2 t), t = 2 pi i / length. */
struct window {
    double a0, a1, a2;
    bool periodic;
};

static enum sdx_status run_window(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)x;
    (void)part;
    const struct window *p = step->params;
    const struct sdx_tensor *y = step->out[0];
    int64_t length = p->periodic ? y->count : y->count - 1;
    for (int64_t i = 0; i < y->count; i++) {
        double t = length ? 2 * pi * (double)i / (double)length : 0;
        sdx_store_f64(y->dtype, y->data, i, p->a2 * cos(2 * t) - p->a1 * cos(t) + p->a0);
    }
    return SDX_OK;
}

static enum sdx_status prepare_window(struct sdx_prepare *px, double a0, double a1, double a2)
{
    struct window *p = SDX_PREPARE_NEW(px, struct window);
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    *p = (struct window){a0, a1, a2, sdx_ir_attr_int(px->node, "periodic", 1) != 0};
    return sdx_prepare_step(px, "window", run_window, p, 1, 0);
}

static enum sdx_status prepare_hann(struct sdx_prepare *px)
{
    return prepare_window(px, 0.5, 0.5, 0);
}

static enum sdx_status prepare_hamming(struct sdx_prepare *px)
{
    return prepare_window(px, 25.0 / 46, 21.0 / 46, 0);
}

static enum sdx_status prepare_blackman(struct sdx_prepare *px)
{
    return prepare_window(px, 0.42, 0.5, 0.08);
}

static enum sdx_status infer_mel(struct sdx_infer *ix)
{
    int64_t bins = 0, length = 0;
    SDX_TRY(output_type(ix));
    if (scalar_of(ix, 0, &bins) < 1 || scalar_of(ix, 1, &length) < 1) return SDX_OK;
    if (bins < 0 || length < 0)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "MelWeightMatrix: %lld bins for a transform of %lld values",
                        (long long)bins, (long long)length);
    const int64_t dims[] = {length / 2 + 1, bins};
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

static double hertz_to_mel(double f)
{
    return 2595 * log10(1 + f / 700);
}

static double mel_to_hertz(double m)
{
    return 700 * (pow(10, m / 2595) - 1);
}

static enum sdx_status run_mel(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *y = step->out[0];
    double v[5];
    for (int i = 0; i < 5; i++)
        v[i] = sdx_load_f64(step->in[i]->dtype, step->in[i]->data, 0);
    int64_t rows = y->dims[0], bins = y->dims[1];
    double low = hertz_to_mel(v[3]), width = (hertz_to_mel(v[4]) - low) / (double)(bins + 2);
    memset(y->data, 0, y->bytes);
    for (int64_t i = 0; i < bins; i++) {
        int64_t at[3];
        for (int k = 0; k < 3; k++) {
            double hertz = mel_to_hertz((double)(i + k) * width + low);
            double place = floor((v[1] + 1) * hertz / v[2]);
            if (!(place >= 0 && place <= (double)rows))
                return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                                "MelWeightMatrix: band of %g Hz is not in the spectrum", hertz);
            at[k] = (int64_t)place;
        }
        if (at[1] >= rows || at[2] > rows)
            return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                            "MelWeightMatrix: band %lld is not in the spectrum", (long long)i);
        int64_t rise = at[1] - at[0], fall = at[2] - at[1];
        if (rise == 0) sdx_store_f64(y->dtype, y->data, at[1] * bins + i, 1);
        for (int64_t j = at[0]; rise && j <= at[1]; j++)
            sdx_store_f64(y->dtype, y->data, j * bins + i, (double)(j - at[0]) / (double)rise);
        for (int64_t j = at[1]; fall > 0 && j < at[2]; j++)
            sdx_store_f64(y->dtype, y->data, j * bins + i, (double)(at[2] - j) / (double)fall);
    }
    return SDX_OK;
}

static enum sdx_status prepare_mel(struct sdx_prepare *px)
{
    return sdx_prepare_step(px, "mel_weights", run_mel, NULL, 1, 0);
}

static void cost_fft(const struct sdx_infer *ix, struct sdx_cost *cost)
{
    cost->flops = 1;
    for (int i = 0; i < ix->out[0].rank; i++)
        cost->flops *= (double)ix->out[0].dims[i];
    cost->flops *= 5 * log2(cost->flops + 2);
}

static const struct sdx_op ops[] = {
    {"DFT", 17, 0, infer_dft, KERNEL(prepare_dft), .cost = cost_fft, .flags = SDX_OP_VIA_F32},
    {"STFT", 17, 0, infer_stft, KERNEL(prepare_stft), .cost = cost_fft, .flags = SDX_OP_VIA_F32},
    {"HannWindow", 17, 0, infer_window, KERNEL(prepare_hann)},
    {"HammingWindow", 17, 0, infer_window, KERNEL(prepare_hamming)},
    {"BlackmanWindow", 17, 0, infer_window, KERNEL(prepare_blackman)},
    {"MelWeightMatrix", 17, 0, infer_mel, KERNEL(prepare_mel)},
};

const struct sdx_op_family sdx_ops_dft = FAMILY("", ops);
