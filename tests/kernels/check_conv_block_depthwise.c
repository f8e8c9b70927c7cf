/* SPDX-License-Identifier: Apache-2.0
 * Checks of conv_block_depthwise.h against f64 sums over the definition; the lanes beyond the
 * channels hold large values. */
#include "kernelcheck.h"
#include "kernels/conv_block_depthwise.h"

static struct sdx_conv_shape shape_of(int64_t batch, int64_t channels, int64_t h, int64_t w,
                                      int64_t kh, int64_t kw, int64_t stride, int64_t dilation,
                                      int64_t pad)
{
    struct sdx_conv_shape s = {.batch = batch,
                               .groups = channels,
                               .ic = channels,
                               .oc = channels,
                               .in = {1, h, w},
                               .out = {1},
                               .kernel = {1, kh, kw},
                               .stride = {1, stride, stride},
                               .dilation = {1, dilation, dilation},
                               .pad_begin = {0, pad, pad}};
    for (int i = 1; i < 3; i++) {
        if (s.kernel[i] == 1) s.pad_begin[i] = 0;
        const int64_t room = s.in[i] + 2 * s.pad_begin[i] - (s.kernel[i] - 1) * dilation - 1;
        s.out[i] = room < 0 ? 0 : room / stride + 1;
    }
    return s;
}
/* `times` outputs of each channel. */
static struct sdx_conv_shape multiplied(struct sdx_conv_shape s, int64_t times)
{
    s.oc = s.ic * times;
    return s;
}
/* The same in three dimensions: `depth` planes under a kernel that is `kd` deep. */
static struct sdx_conv_shape deep(struct sdx_conv_shape s, int64_t depth, int64_t kd,
                                  int64_t stride, int64_t pad)
{
    s.in[0] = depth;
    s.kernel[0] = kd;
    s.stride[0] = stride;
    s.pad_begin[0] = pad;
    s.out[0] = (depth + 2 * pad - kd) / stride + 1;
    return s;
}
static int64_t pixels_of(const int64_t dims[3])
{
    return dims[0] * dims[1] * dims[2];
}

struct operands {
    int64_t lanes, size_x, size_y; /* floats of an image, blocked */
    float *x, *w, *y, *residual, *bias, *packed;
    void *scratch;
    struct sdx_epilogue epilogue;
};
static struct operands make(const struct sdx_conv_shape *s)
{
    struct operands o;
    memset(&o, 0, sizeof o);
    o.lanes = sdx_kernel_tables()->block.lanes;
    o.size_x = (s->ic + o.lanes - 1) / o.lanes * o.lanes * pixels_of(s->in);
    o.size_y = (s->oc + o.lanes - 1) / o.lanes * o.lanes * pixels_of(s->out);
    const int64_t size_w = s->oc * pixels_of(s->kernel);
    o.x = blocked_tensor(s->batch, s->ic, pixels_of(s->in), o.lanes);
    o.residual = blocked_tensor(s->batch, s->oc, pixels_of(s->out), o.lanes);
    o.w = guarded((size_t)size_w * 4, 4);
    o.bias = guarded((size_t)s->oc * 4, 4);
    o.y = guarded((size_t)(s->batch * o.size_y) * 4, 4);
    o.packed = guarded(sdx_depthwise_block_packed_size(s), 0);
    o.scratch = guarded(sdx_depthwise_block_scratch(s), 0);
    for (int64_t i = 0; i < size_w; i++)
        o.w[i] = random_float(-1, 1);
    for (int64_t i = 0; i < s->oc; i++)
        o.bias[i] = random_float(-1, 1);
    sdx_depthwise_block_pack(s, o.w, o.packed, NULL);
    return o;
}
static void run(const struct sdx_conv_shape *s, const struct operands *o, const float *x, float *y,
                const struct sdx_epilogue *epilogue)
{
    for (int64_t part = sdx_depthwise_block_parts(s); part-- > 0;)
        sdx_depthwise_block_part(s, x, o->packed, y, epilogue, part, o->scratch);
}

static double exact_at(const struct sdx_conv_shape *s, const struct operands *o, int64_t n,
                       int64_t c, int64_t d, int64_t h, int64_t w)
{
    const int64_t from = c / (s->oc / s->ic), lane = from % o->lanes;
    const float *x = o->x + n * o->size_x + (from - lane) * pixels_of(s->in);
    double sum = 0;
    for (int64_t k = 0; k < pixels_of(s->kernel); k++) {
        const int64_t j = k % s->kernel[2], i = k / s->kernel[2] % s->kernel[1];
        const int64_t z = k / s->kernel[2] / s->kernel[1];
        const int64_t id = d * s->stride[0] + z - s->pad_begin[0];
        const int64_t ih = h * s->stride[1] + i * s->dilation[1] - s->pad_begin[1];
        const int64_t iw = w * s->stride[2] + j * s->dilation[2] - s->pad_begin[2];
        if (id < 0 || id >= s->in[0] || ih < 0 || ih >= s->in[1] || iw < 0 || iw >= s->in[2])
            continue;
        sum += (double)x[((id * s->in[1] + ih) * s->in[2] + iw) * o->lanes + lane] *
               o->w[c * pixels_of(s->kernel) + k];
    }
    return sum;
}
static bool check_values(const struct sdx_conv_shape *s, const struct operands *o)
{
    const double bound = (double)(pixels_of(s->kernel) + 8) * 4e-7;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < s->oc; c++)
            for (int64_t i = 0; i < pixels_of(s->out); i++) {
                const int64_t d = i / s->out[2] / s->out[1];
                const int64_t h = i / s->out[2] % s->out[1], w = i % s->out[2];
                const int64_t at = n * o->size_y +
                                   (c / o->lanes * pixels_of(s->out) + i) * o->lanes + c % o->lanes;
                double sum = exact_at(s, o, n, c, d, h, w);
                if (o->epilogue.bias_row) sum += o->bias[c];
                if (o->epilogue.residual) sum += o->residual[at];
                sum = exact_activation(sum, &o->epilogue);
                if (!expect(fabs(o->y[at] - sum) <= bound,
                            "%lldx%lldx%lld to %lld kernel %lldx%lld stride %lld act %d: at "
                            "%lld,%lld,%lld %.9g, expected %.9g",
                            (long long)s->ic, (long long)s->in[1], (long long)s->in[2],
                            (long long)s->oc, (long long)s->kernel[1], (long long)s->kernel[2],
                            (long long)s->stride[2], (int)o->epilogue.act, (long long)c,
                            (long long)h, (long long)w, o->y[at], sum))
                    return false;
            }
    return true;
}
/* Against the definition; finite in all lanes; the last image alone has the same bits. */
static void check_shape(struct sdx_conv_shape s)
{
    static unsigned turn;
    if (!expect(sdx_depthwise_block_fits(&s), "shape not taken")) return;
    struct operands o = make(&s);
    const unsigned how = turn++;
    o.epilogue.act = (enum sdx_act)(how % (SDX_ACT_GELU_TANH + 1));
    o.epilogue.a = o.epilogue.act == SDX_ACT_CLIP ? -0.5f : 0.2f;
    o.epilogue.b = 0.5f;
    if (how / 11 % 2 == 0) o.epilogue.bias_row = o.bias;
    if (how / 22 % 2 == 0) o.epilogue.residual = o.residual;
    run(&s, &o, o.x, o.y, &o.epilogue);
    if (check_values(&s, &o)) {
        for (int64_t i = 0; i < s.batch * o.size_y; i++)
            if (!expect(isfinite(o.y[i]), "lane %lld is %g, act %d", (long long)i, o.y[i],
                        (int)o.epilogue.act))
                break;
        struct sdx_conv_shape last = s;
        struct sdx_epilogue e = o.epilogue;
        last.batch = 1;
        float *y = guarded((size_t)o.size_y * 4, 0);
        if (e.residual) { /* written over it */
            memcpy(y, e.residual + o.size_y * (s.batch - 1), (size_t)o.size_y * 4);
            e.residual = y;
        }
        run(&last, &o, o.x + o.size_x * (s.batch - 1), y, &e);
        expect(memcmp(y, o.y + o.size_y * (s.batch - 1), (size_t)o.size_y * 4) == 0,
               "other bits in a batch");
    }
    guards_intact();
    guards_release();
}
/* Several outputs of a channel: they may be of one block or fill some, and a block may begin within
 * those of a channel. */
static void check_multiplied(void)
{
    static const int64_t times[] = {2, 3, 4, 5, 8, 12, 16, 32};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const int64_t t = times[i];
        for (int64_t kernel = 1; kernel <= 7; kernel += 1 + (kernel > 2))
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int64_t size = 1; size <= 16; size += 5) {
                    const int64_t pad = (kernel + size) % 5 - 1;
                    check_shape(multiplied(shape_of(1 + size % 3, 2 + 5 * (size % 4), size + 2,
                                                    size, kernel, kernel, stride, 1, pad),
                                           t));
                }
        check_shape(multiplied(shape_of(2, 17, 9, 97, 3, 3, 1 + (int64_t)i % 2, 1, 1), t));
        check_shape(multiplied(shape_of(1, 9, 17, 97, 7, 7, 2, 1, 3), t));
        check_shape(multiplied(shape_of(1, 9, 11, 99, 5, 5, 1, 1, 0), t)); /* no column beside */
        check_shape(multiplied(shape_of(1, 6, 20, 15, 3, 3, 1, 2, 2), t));
        check_shape(multiplied(shape_of(1, 6, 20, 30, 5, 5, 2, 4, 8), t));
        check_shape(multiplied(shape_of(2, 7, 1, 70, 1, 9, 1, 1, 4), t));
        check_shape(multiplied(shape_of(2, 7, 1, 200, 1, 3, 2, 1, 1), t));
        check_shape(multiplied(shape_of(1, 3, 40, 3, 11, 1, 1, 1, 5), t));
        check_shape(
            multiplied(shape_of(1, 3, 3, 4, 7, 7, 1, 1, 9), t)); /* lines beside the image */
    }
    const struct sdx_conv_shape one = multiplied(shape_of(1, 1, 9, 9, 3, 3, 1, 1, 1), 16);
    expect(!sdx_depthwise_block_fits(&one), "one group of one channel is taken");
    const struct sdx_conv_shape far = multiplied(shape_of(1, 8, 1, 99999, 1, 3, 1, 1, 1), 2);
    expect(!sdx_depthwise_block_fits(&far), "a line longer than its copy may be is taken");
}
void check_depthwise_block(void)
{
    check_multiplied();
    for (int64_t kernel = 1; kernel <= 7; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 3; pad++)
                for (int64_t size = 1; size <= 25; size += 3)
                    check_shape(shape_of(1 + size % 3, 3 + 5 * (size % 4), size + kernel % 3, size,
                                         kernel, kernel, stride, 1, pad));
    for (int64_t kernel = 3; kernel <= 7; kernel += 2)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t width = 95; width < 100; width++)
                check_shape(shape_of(1, 20, 9, width, kernel, kernel, stride, 1, kernel / 2));
    check_shape(shape_of(2, 24, 14, 15, 3, 3, 1, 2, 2));
    check_shape(shape_of(1, 9, 20, 70, 5, 5, 1, 6, 12));
    check_shape(shape_of(1, 9, 20, 130, 3, 3, 2, 9, 9));
    check_shape(shape_of(2, 7, 1, 70, 1, 9, 1, 1, 4));
    check_shape(shape_of(1, 20, 1, 200, 1, 31, 1, 1, 15));
    check_shape(shape_of(1, 13, 40, 3, 11, 1, 1, 1, 5));
    check_shape(shape_of(1, 960, 7, 7, 3, 3, 1, 1, 1));
    check_shape(shape_of(1, 5, 112, 112, 3, 3, 2, 1, 1));
    check_shape(shape_of(1, 5, 3, 4, 7, 7, 1, 1, 9)); /* lines beside the image */
    for (int64_t kernel = 1; kernel <= 5; kernel += 2)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t pad = 0; pad < kernel; pad++)
                for (int64_t depth = kernel; depth <= 9; depth += 2)
                    check_shape(deep(shape_of(1 + depth % 2, 3 + 7 * (depth % 4), 6, 5 + depth, 3,
                                              3, stride, 1, 1),
                                     depth, kernel, stride, pad));
    check_shape(deep(multiplied(shape_of(2, 9, 8, 11, 3, 3, 1, 1, 1), 4), 6, 3, 1, 1));
    check_shape(deep(shape_of(1, 20, 9, 97, 5, 5, 1, 1, 2), 3, 5, 1, 2));
    const struct sdx_conv_shape blind = deep(shape_of(1, 8, 9, 9, 3, 3, 1, 1, 1), 4, 3, 1, 3);
    expect(!sdx_depthwise_block_fits(&blind), "planes that see none of the input are taken");
}

struct timed {
    struct sdx_conv_shape shape;
    struct operands o;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    run(&t->shape, &t->o, t->o.x, t->o.y, &t->o.epilogue);
}
double bench_depthwise_block(void)
{
    const struct sdx_conv_shape shapes[] = {shape_of(1, 32, 112, 112, 3, 3, 1, 1, 1),
                                            shape_of(1, 144, 56, 56, 3, 3, 1, 1, 1),
                                            shape_of(1, 16, 56, 56, 3, 3, 1, 1, 1),
                                            shape_of(1, 192, 28, 28, 3, 3, 1, 1, 1),
                                            shape_of(1, 384, 14, 14, 3, 3, 1, 1, 1),
                                            shape_of(1, 960, 7, 7, 3, 3, 1, 1, 1),
                                            shape_of(1, 96, 112, 112, 3, 3, 2, 1, 1),
                                            shape_of(1, 576, 14, 14, 3, 3, 2, 1, 1),
                                            shape_of(1, 144, 56, 56, 5, 5, 2, 1, 2),
                                            shape_of(1, 240, 28, 28, 5, 5, 1, 1, 2),
                                            shape_of(1, 672, 14, 14, 5, 5, 1, 1, 2),
                                            shape_of(1, 1152, 7, 7, 5, 5, 1, 1, 2),
                                            shape_of(1, 96, 56, 56, 7, 7, 1, 1, 3),
                                            shape_of(1, 384, 14, 14, 7, 7, 1, 1, 3),
                                            shape_of(1, 64, 28, 28, 3, 3, 1, 2, 2),
                                            shape_of(1, 64, 40, 40, 9, 9, 1, 1, 4),
                                            multiplied(shape_of(1, 48, 64, 64, 7, 7, 2, 1, 3), 2),
                                            shape_of(1, 96, 64, 64, 7, 7, 2, 1, 3),
                                            multiplied(shape_of(1, 192, 16, 16, 7, 7, 2, 1, 3), 2),
                                            shape_of(1, 384, 16, 16, 7, 7, 2, 1, 3),
                                            multiplied(shape_of(1, 32, 56, 56, 3, 3, 1, 1, 1), 4),
                                            shape_of(1, 128, 56, 56, 3, 3, 1, 1, 1),
                                            multiplied(shape_of(1, 32, 56, 56, 3, 3, 2, 1, 1), 4),
                                            shape_of(1, 128, 56, 56, 3, 3, 2, 1, 1),
                                            multiplied(shape_of(1, 32, 28, 28, 5, 5, 1, 1, 2), 8),
                                            shape_of(1, 256, 28, 28, 5, 5, 1, 1, 2),
                                            multiplied(shape_of(1, 32, 1, 4000, 1, 9, 1, 1, 4), 2),
                                            shape_of(1, 64, 1, 4000, 1, 9, 1, 1, 4)};
    double total = 0, macs = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct timed t = {.shape = shapes[i], .o = make(&shapes[i])};
        t.o.epilogue.bias_row = t.o.bias;
        t.o.epilogue.act = SDX_ACT_RELU;
        const double ns = best_ns(timed_run, &t), work = sdx_conv_macs(&t.shape);
        fprintf(stderr, "  %lldx%lldx%lld to %lld kernel %lld stride %lld: %.1f us, %.1f GFLOP/s\n",
                (long long)t.shape.ic, (long long)t.shape.in[1], (long long)t.shape.in[2],
                (long long)t.shape.oc, (long long)t.shape.kernel[2], (long long)t.shape.stride[1],
                ns / 1000, 2 * work / ns);
        total += ns;
        macs += work;
        guards_release();
    }
    return total / macs;
}
