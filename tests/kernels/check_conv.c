/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv.h against f64 sums over the definition. */
#include "kernelcheck.h"
#include "kernels/conv.h"

/* Of axes with these lengths, kernels, strides, dilations and pads (the same at both ends). */
struct axes {
    int64_t in[3], kernel[3], stride[3], dilation[3], pad[3];
};
static struct sdx_conv_shape shape_3d(int64_t batch, int64_t groups, int64_t icg, int64_t ocg,
                                      struct axes a)
{
    struct sdx_conv_shape s = {
        .batch = batch, .groups = groups, .ic = groups * icg, .oc = groups * ocg};
    for (int i = 0; i < 3; i++) {
        const int64_t span = (a.kernel[i] - 1) * a.dilation[i] + 1, room = a.in[i] + 2 * a.pad[i];
        s.in[i] = a.in[i];
        s.kernel[i] = a.kernel[i];
        s.stride[i] = a.stride[i];
        s.dilation[i] = a.dilation[i];
        s.pad_begin[i] = a.pad[i];
        s.out[i] = room < span ? 0 : (room - span) / a.stride[i] + 1;
    }
    return s;
}
static struct sdx_conv_shape shape_2d(int64_t batch, int64_t groups, int64_t icg, int64_t ocg,
                                      int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t stride,
                                      int64_t dilation, int64_t pad)
{
    return shape_3d(
        batch, groups, icg, ocg,
        (struct axes){
            {1, h, w}, {1, kh, kw}, {1, stride, stride}, {1, dilation, dilation}, {0, pad, pad}});
}

/* One output before the epilogue, and the sum of magnitudes. */
static double exact_at(const struct sdx_conv_shape *s, const float *x, const float *w, int64_t n,
                       int64_t c, int64_t od, int64_t oh, int64_t ow, double *size)
{
    const int64_t icg = s->ic / s->groups, g = c / (s->oc / s->groups);
    double sum = 0;
    *size = 0;
    for (int64_t i = 0; i < icg; i++)
        for (int64_t d = 0; d < s->kernel[0]; d++)
            for (int64_t h = 0; h < s->kernel[1]; h++)
                for (int64_t v = 0; v < s->kernel[2]; v++) {
                    const int64_t id = od * s->stride[0] + d * s->dilation[0] - s->pad_begin[0];
                    const int64_t ih = oh * s->stride[1] + h * s->dilation[1] - s->pad_begin[1];
                    const int64_t iw = ow * s->stride[2] + v * s->dilation[2] - s->pad_begin[2];
                    if (id < 0 || id >= s->in[0] || ih < 0 || ih >= s->in[1] || iw < 0 ||
                        iw >= s->in[2])
                        continue;
                    const int64_t at =
                        (((n * s->ic + g * icg + i) * s->in[0] + id) * s->in[1] + ih) * s->in[2] +
                        iw;
                    const int64_t tap =
                        (((c * icg + i) * s->kernel[0] + d) * s->kernel[1] + h) * s->kernel[2] + v;
                    const double t = (double)x[at] * w[tap];
                    sum += t;
                    *size += fabs(t);
                }
    return sum;
}
struct operands {
    int64_t size_x, size_w, size_y;
    float *x, *w, *y, *residual, *bias, *packed;
    void *scratch;
    struct sdx_epilogue epilogue;
};
static struct operands make(const struct sdx_conv_shape *s)
{
    struct operands o;
    memset(&o, 0, sizeof o);
    o.size_x = s->batch * s->ic * s->in[0] * s->in[1] * s->in[2];
    o.size_w = s->oc * (s->ic / s->groups) * s->kernel[0] * s->kernel[1] * s->kernel[2];
    o.size_y = s->batch * s->oc * s->out[0] * s->out[1] * s->out[2];
    o.x = guarded((size_t)o.size_x * 4, 4);
    o.w = guarded((size_t)o.size_w * 4, 4);
    o.y = guarded((size_t)o.size_y * 4, 4);
    o.residual = guarded((size_t)o.size_y * 4, 0);
    o.bias = guarded((size_t)s->oc * 4, 0);
    o.packed = guarded(sdx_conv_f32_packed_size(s), 0);
    o.scratch = guarded(sdx_conv_f32_scratch(s), 0);
    for (int64_t i = 0; i < o.size_x; i++)
        o.x[i] = random_float(-1, 1);
    for (int64_t i = 0; i < o.size_w; i++)
        o.w[i] = random_float(-1, 1);
    for (int64_t i = 0; i < o.size_y; i++)
        o.residual[i] = random_float(-1, 1);
    for (int64_t i = 0; i < s->oc; i++)
        o.bias[i] = random_float(-1, 1);
    sdx_conv_f32_pack(s, o.w, o.packed);
    return o;
}
static void check_shape(struct sdx_conv_shape s)
{
    struct operands o = make(&s);
    const unsigned how = random_bits();
    if (how & 1) o.epilogue.bias_row = o.bias;
    if (how & 2) o.epilogue.residual = o.residual;
    if (how & 4) o.epilogue.act = SDX_ACT_RELU;
    if ((how & 12) == 12) o.epilogue.act = SDX_ACT_SILU;
    for (int64_t part = sdx_conv_f32_parts(&s); part-- > 0;)
        sdx_conv_f32_part(&s, o.x, o.packed, o.y, &o.epilogue, part, o.scratch);
    int64_t at = 0;
    for (int64_t n = 0; n < s.batch; n++)
        for (int64_t c = 0; c < s.oc; c++)
            for (int64_t d = 0; d < s.out[0]; d++)
                for (int64_t h = 0; h < s.out[1]; h++)
                    for (int64_t w = 0; w < s.out[2]; w++, at++) {
                        double size, sum = exact_at(&s, o.x, o.w, n, c, d, h, w, &size);
                        if (o.epilogue.bias_row) sum += o.bias[c];
                        if (o.epilogue.residual) sum += o.residual[at];
                        if (o.epilogue.act == SDX_ACT_RELU) sum = fmax(sum, 0);
                        if (o.epilogue.act == SDX_ACT_SILU) sum = sum / (1 + exp(-sum));
                        const double k = (double)o.size_w / (double)s.oc;
                        if (!expect(fabs(o.y[at] - sum) <= (2 * k * size + 8) * 6e-8,
                                    "%lldx%lldx%lldx%lld kernel %lldx%lld stride %lld groups %lld: "
                                    "at %lld,%lld,%lld %.9g, expected %.9g",
                                    (long long)s.batch, (long long)s.ic, (long long)s.in[1],
                                    (long long)s.in[2], (long long)s.kernel[1],
                                    (long long)s.kernel[2], (long long)s.stride[2],
                                    (long long)s.groups, (long long)c, (long long)h, (long long)w,
                                    o.y[at], sum)) {
                            guards_release();
                            return;
                        }
                    }
    guards_intact();
    guards_release();
}
void check_conv_f32(void)
{
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 2; pad++)
                for (int64_t size = 1; size <= 13; size += 4) {
                    check_shape(
                        shape_2d(1, 1, 3, 7, size, size + 2, kernel, kernel, stride, 1, pad));
                    check_shape(shape_2d(2, 2, 2, 9, size + 1, size, 1, kernel, stride, 2, pad));
                }
    check_shape(shape_2d(1, 1, 16, 24, 28, 28, 3, 3, 1, 1, 1));
    check_shape(shape_2d(1, 1, 200, 13, 9, 9, 3, 3, 1, 1, 1)); /* several blocks of K */
    check_shape(shape_2d(1, 1, 96, 200, 7, 7, 1, 1, 1, 1, 0)); /* channels split */
    check_shape(shape_2d(3, 1, 48, 20, 1, 1, 1, 1, 1, 1, 0));  /* one pixel */
    check_shape(shape_2d(2, 1, 3, 5, 4, 4, 4, 4, 1, 1, 0));
    check_shape(shape_2d(1, 1, 3, 8, 40, 61, 7, 7, 2, 1, 3));
    for (int64_t few = 1; few <= 8; few++) { /* pixels as lanes */
        check_shape(shape_2d(2, 1, 5, few, 23, 17 + 9 * few, 3, 5, 1, 1, 1));
        check_shape(shape_2d(1, 3, 2, few, 12, 31, 5, 2, 2, 2, 3));
        check_shape(shape_2d(1, 1, 400, few, 14, 15, 3, 3, 1, 1, 1)); /* channels in chunks */
        struct sdx_conv_shape line = shape_2d(1, 1, 2, few, 1, 20000 / few, 1, 31, 2, 1, 0);
        line.pad_begin[2] = 7; /* in strips */
        check_shape(line);
        struct sdx_conv_shape sides = shape_2d(1, 1, 3, few, 20, 40, 3, 4, 1, 1, 0);
        sides.stride[2] = 3;
        sides.dilation[1] = 2;
        sides.out[1] = 16;
        sides.out[2] = 13;
        check_shape(sides);
    }
    const struct axes uneven = {{5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 1, 1}, {1, 0, 1}};
    check_shape(shape_3d(2, 1, 3, 5, uneven)); /* few outputs, pixels as lanes */
    check_shape(shape_3d(2, 1, 3, 12, uneven));
    const struct axes wide = {{7, 12, 31}, {3, 3, 3}, {2, 1, 1}, {2, 1, 1}, {1, 1, 1}};
    const struct axes small = {{3, 14, 15}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
    for (int64_t few = 1; few <= 8; few += 3) {
        check_shape(shape_3d(2, 2, 3, few, wide));
        check_shape(shape_3d(1, 1, 200, few, small)); /* planes in chunks */
    }
}
void check_conv_f32_depthwise(void)
{
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 3; pad++)
                for (int64_t size = 1; size <= 29; size += 4)
                    check_shape(shape_2d(1 + size % 2, 3, 1, 1 + size / 9, size + kernel % 3, size,
                                         kernel, kernel, stride, 1, pad));
    check_shape(shape_2d(1, 2, 1, 1, 112, 112, 3, 3, 1, 1, 1));
    check_shape(shape_2d(1, 2, 1, 1, 113, 112, 3, 3, 2, 1, 1));
    check_shape(shape_2d(1, 2, 1, 1, 56, 300, 5, 5, 2, 1, 2));
    check_shape(shape_2d(1, 2, 1, 2, 14, 14, 3, 3, 1, 2, 2));
    check_shape(shape_2d(1, 4, 1, 1, 1, 70, 1, 9, 1, 1, 4));
    for (int64_t channels = 2; channels <= 12000; channels = 3 * channels + 1) /* of one pixel */
        check_shape(shape_2d(3, channels, 1, 1, 1, 1, 1, 1, 1 + channels % 2, 1, 0));
    struct sdx_conv_shape beside = shape_2d(1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 0);
    beside.pad_begin[2] = 1;
    check_shape(beside);
    const struct axes deep = {{5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
    check_shape(shape_3d(1, 4, 1, 1, deep));
}

struct timed {
    struct sdx_conv_shape shape;
    struct operands o;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    const int64_t parts = sdx_conv_f32_parts(&t->shape);
    for (int64_t part = 0; part < parts; part++)
        sdx_conv_f32_part(&t->shape, t->o.x, t->o.packed, t->o.y, &t->o.epilogue, part,
                          t->o.scratch);
}
static double bench_shapes(const struct sdx_conv_shape *shapes, int count)
{
    double total = 0, macs = 0;
    for (int i = 0; i < count; i++) {
        struct timed t = {.shape = shapes[i], .o = make(&shapes[i])};
        t.o.epilogue.bias_row = t.o.bias;
        t.o.epilogue.act = SDX_ACT_RELU;
        const double ns = best_ns(timed_run, &t), work = sdx_conv_macs(&t.shape);
        fprintf(stderr,
                "  %lldx%lldx%lld kernel %lldx%lld to %lld stride %lld: %.1f us, %.1f GFLOP/s\n",
                (long long)t.shape.ic, (long long)t.shape.in[1], (long long)t.shape.in[2],
                (long long)t.shape.kernel[1], (long long)t.shape.kernel[2], (long long)t.shape.oc,
                (long long)t.shape.stride[1], ns / 1000, 2 * work / ns);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / macs;
}
double bench_conv_f32(void)
{
    const struct sdx_conv_shape shapes[] = {shape_2d(1, 1, 3, 32, 224, 224, 3, 3, 2, 1, 1),
                                            shape_2d(1, 1, 64, 64, 56, 56, 3, 3, 1, 1, 1),
                                            shape_2d(1, 1, 16, 16, 160, 160, 3, 3, 1, 1, 1),
                                            shape_2d(1, 1, 128, 128, 28, 28, 3, 3, 1, 1, 1),
                                            shape_2d(1, 1, 256, 256, 14, 14, 3, 3, 1, 1, 1),
                                            shape_2d(1, 1, 16, 96, 112, 112, 1, 1, 1, 1, 0),
                                            shape_2d(1, 1, 144, 24, 56, 56, 1, 1, 1, 1, 0),
                                            shape_2d(1, 1, 576, 96, 14, 14, 1, 1, 1, 1, 0),
                                            shape_2d(1, 1, 160, 960, 7, 7, 1, 1, 1, 1, 0),
                                            shape_2d(1, 1, 512, 512, 7, 7, 3, 3, 1, 1, 1)};
    return bench_shapes(shapes, (int)(sizeof shapes / sizeof shapes[0]));
}
double bench_conv_f32_depthwise(void)
{
    const struct sdx_conv_shape shapes[] = {shape_2d(1, 32, 1, 1, 112, 112, 3, 3, 1, 1, 1),
                                            shape_2d(1, 144, 1, 1, 56, 56, 3, 3, 1, 1, 1),
                                            shape_2d(1, 384, 1, 1, 14, 14, 3, 3, 1, 1, 1),
                                            shape_2d(1, 960, 1, 1, 7, 7, 3, 3, 1, 1, 1),
                                            shape_2d(1, 96, 1, 1, 112, 112, 3, 3, 2, 1, 1),
                                            shape_2d(1, 576, 1, 1, 14, 14, 3, 3, 2, 1, 1),
                                            shape_2d(1, 240, 1, 1, 28, 28, 5, 5, 1, 1, 2),
                                            shape_2d(1, 1152, 1, 1, 7, 7, 5, 5, 1, 1, 2)};
    return bench_shapes(shapes, (int)(sizeof shapes / sizeof shapes[0]));
}
