/* SPDX-License-Identifier: Apache-2.0
 * Checks of pool_block.h against the definition. */
#include "kernelcheck.h"
#include "kernels/pool_block.h"

static struct sdx_pool_block shape_of(const int64_t size[3], const int64_t kernel[3],
                                      int64_t stride, int64_t dilation, int64_t pad, bool ceil)
{
    struct sdx_pool_block p = {0};
    for (int i = 0; i < 3; i++) {
        p.in[i] = size[i];
        p.kernel[i] = kernel[i];
        p.stride[i] = p.dilation[i] = 1;
        if (size[i] > 1 || kernel[i] > 1) {
            p.stride[i] = stride;
            p.dilation[i] = dilation;
            p.pad_begin[i] = pad;
            p.pad_end[i] = pad / 2;
        }
        const int64_t room =
            p.in[i] + p.pad_begin[i] + p.pad_end[i] - (p.kernel[i] - 1) * p.dilation[i] - 1;
        p.out[i] = room < 0 ? 0 : (room + (ceil ? p.stride[i] - 1 : 0)) / p.stride[i] + 1;
    }
    return p;
}

struct found {
    double max, sum, pixels, places;
};
static struct found window(const struct sdx_pool_block *p, const float *x, int64_t lanes,
                           const int64_t o[3])
{
    struct found f = {.max = -INFINITY};
    const int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
    for (int64_t t = 0; t < taps; t++) {
        const int64_t k[3] = {t / (p->kernel[1] * p->kernel[2]), t / p->kernel[2] % p->kernel[1],
                              t % p->kernel[2]};
        int64_t at = 0;
        bool inside = true, place = true;
        for (int i = 0; i < 3; i++) {
            const int64_t y = o[i] * p->stride[i] + k[i] * p->dilation[i] - p->pad_begin[i];
            place = place && y < p->in[i] + p->pad_end[i];
            inside = inside && y >= 0 && y < p->in[i];
            at = at * p->in[i] + y;
        }
        f.places += place;
        if (!inside) continue;
        const double v = x[at * lanes];
        f.max = v != v || f.max != f.max ? NAN : fmax(v, f.max);
        f.sum += v;
        f.pixels++;
    }
    return f;
}
static bool near(float a, double b, double bound)
{
    return (a != a && b != b) || a == b || fabs(a - b) <= bound;
}
static void check_shape(struct sdx_pool_block p, bool with_nan)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes, rows = p.out[0] * p.out[1];
    const int64_t pixels = p.in[0] * p.in[1] * p.in[2];
    float *x = blocked_tensor(1, lanes, pixels, lanes), *y[3];
    if (with_nan) x[random_int(0, pixels - 1) * lanes] = NAN;
    for (int i = 0; i < 3; i++)
        y[i] = guarded((size_t)(rows * p.out[2] * lanes) * 4, 4);
    sdx_pool_block_max(&p, x, y[0], rows / 2, rows);
    sdx_pool_block_max(&p, x, y[0], 0, rows / 2);
    sdx_pool_block_average(&p, false, x, y[1], 0, rows);
    sdx_pool_block_average(&p, true, x, y[2], 0, rows);
    const double bound = 1e-6 * (double)(p.kernel[0] * p.kernel[1] * p.kernel[2]);
    for (int64_t at = 0; at < rows * p.out[2] * lanes; at++) {
        const int64_t pixel = at / lanes, row = pixel / p.out[2];
        const int64_t o[3] = {row / p.out[1], row % p.out[1], pixel % p.out[2]};
        const struct found f = window(&p, x + at % lanes, lanes, o);
        if (!expect(near(y[0][at], f.max, 0) && near(y[1][at], f.sum / fmax(1, f.pixels), bound) &&
                        near(y[2][at], f.sum / fmax(1, f.places), bound),
                    "%lldx%lldx%lld kernel %lldx%lldx%lld stride %lld: at %lld,%lld,%lld %g %g %g, "
                    "expected %g, %g / %g or %g",
                    (long long)p.in[0], (long long)p.in[1], (long long)p.in[2],
                    (long long)p.kernel[0], (long long)p.kernel[1], (long long)p.kernel[2],
                    (long long)p.stride[2], (long long)o[0], (long long)o[1], (long long)o[2],
                    y[0][at], y[1][at], y[2][at], f.max, f.sum, f.pixels, f.places))
            break;
    }
    guards_intact();
    guards_release();
}
static void check_mean(int64_t pixels)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    float *x = blocked_tensor(1, lanes, pixels, lanes);
    float *y = guarded((size_t)lanes * 4, 4);
    float *squares = guarded((size_t)lanes * 4, 4);
    sdx_pool_block_mean(pixels, x, y);
    sdx_pool_block_squares(pixels, x, y, squares);
    for (int64_t l = 0; l < lanes; l++) {
        double sum = 0, beside = 0;
        for (int64_t i = 0; i < pixels; i++) {
            const double apart = (double)x[i * lanes + l] - y[l];
            sum += x[i * lanes + l];
            beside += apart * apart;
        }
        expect(fabs(y[l] - sum / (double)pixels) <= 1e-6, "mean of %lld: %g, expected %g",
               (long long)pixels, y[l], sum / (double)pixels);
        expect(fabs(squares[l] - beside) <= 1e-6 * beside, "squares of %lld: %g, expected %g",
               (long long)pixels, squares[l], beside);
    }
    guards_intact();
    guards_release();
}
void check_pool_block(void)
{
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = -1; pad <= 4; pad++)
                for (int64_t size = 3; size <= 30; size += 3) {
                    const bool deep = size <= 9 && (size + kernel) % 2;
                    const int64_t sizes[3] = {deep ? size - 1 : 1, size, size + kernel % 3};
                    const int64_t kernels[3] = {deep ? 1 + stride : 1, kernel, kernel + size % 2};
                    check_shape(shape_of(sizes, kernels, stride, 1 + (size + pad + 1) % 2, pad,
                                         size % 5 == 0),
                                size % 2);
                }
    check_shape(shape_of((int64_t[]){1, 1, 50}, (int64_t[]){1, 1, 7}, 2, 1, 0, false), true);
    /* windows with no pixel */
    check_shape(shape_of((int64_t[]){1, 2, 2}, (int64_t[]){1, 2, 2}, 5, 1, 4, true), false);
    check_shape(shape_of((int64_t[]){2, 2, 3}, (int64_t[]){2, 2, 2}, 5, 1, 4, true), false);
    const int64_t counts[] = {1, 3, 49, 255, 256, 257, 12544};
    for (int i = 0; i < 7; i++)
        check_mean(counts[i]);
}

struct timed {
    struct sdx_pool_block shape;
    float *x, *y;
    int form;
};
static void timed_run(void *arg)
{
    struct timed *t = arg;
    if (t->form == 0) sdx_pool_block_max(&t->shape, t->x, t->y, 0, t->shape.out[1]);
    if (t->form == 1) sdx_pool_block_average(&t->shape, true, t->x, t->y, 0, t->shape.out[1]);
    if (t->form == 2) sdx_pool_block_mean(t->shape.in[1] * t->shape.in[2], t->x, t->y);
}
double bench_pool_block(void)
{
    const int64_t lanes = sdx_kernel_tables()->block.lanes;
    double total = 0, pixels = 0;
    for (int form = 0; form < 3; form++) {
        struct timed t = {
            .shape = shape_of((int64_t[]){1, 56, 56}, (int64_t[]){1, 3, 3}, 2, 1, 1, false),
            .form = form};
        t.x = blocked_tensor(1, lanes, 56 * 56, lanes);
        t.y = guarded((size_t)(56 * 56 * lanes) * 4, 0);
        const double ns = best_ns(timed_run, &t);
        fprintf(stderr, "  %s: %.1f us, %.1f GB/s read\n",
                form == 0   ? "max 3x3 s2"
                : form == 1 ? "average 3x3 s2"
                            : "mean",
                ns / 1000, 56.0 * 56 * 4 * (double)lanes / ns);
        total += ns;
        pixels += 56 * 56 * (double)lanes;
        guards_release();
    }
    return total / pixels;
}
