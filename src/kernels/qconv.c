/* SPDX-License-Identifier: Apache-2.0
 * Convolution of channels-last bytes around qdot.h: geometry, strips, parts. */
#include "kernels/qconv.h"

#include <string.h>

#include "kernels/conv_gather.h"
#include "kernels/qconv_winograd.h"
#include "kernels/tables.h"
#include "kernels/tuning.h"

enum {
    SLACK = 32,
    ROWS = 6,
    FEW_WEIGHTS = 32 << 10,
    FIRST_CACHE = 24 << 10,
    BAND_PIXELS = 32,
    IMAGE_PIXELS = 1024 /* of images that one call joins */
};

struct geometry {
    struct conv_sizes z;
    bool depthwise, in_place;
    bool slides, copies;   /* over image rows, or copies of them, and one for what lies beyond */
    int64_t run, runs;     /* of the product */
    int64_t wide;          /* columns of a strip */
    int64_t across;        /* pixels of an output row */
    int64_t pitch, plane;  /* bytes from image row to row, from one kd to the next */
    int64_t lines;         /* image rows of a strip for each kd, */
    int64_t tap_lines;     /* and from one row of the kernel to the next */
    int64_t bands;         /* of output rows: a part has one */
    int64_t joined, tall;  /* bands that one call does at most, and their rows */
    int64_t images, sheet; /* of one band, that one call does at most; bytes from one to the next */
    int64_t panels, splits; /* of a group; parts that share them */
    int64_t groups;         /* of parts: each has some of the convolution's */
};

bool sdx_qconv_is_depthwise(const struct sdx_qconv *q)
{
    return q->shape.groups > 1 && q->shape.groups == q->shape.ic && q->shape.ic == q->shape.oc;
}
/* Do the columns of a kernel row lie together? */
static bool is_dense(const struct sdx_conv_shape *s)
{
    return s->groups == 1 && (s->dilation[2] == 1 || s->kernel[2] == 1);
}
static bool is_winograd(const struct sdx_qconv *q)
{
    return q->form == SDX_QCONV_WINOGRAD;
}
static bool is_shorts(const struct sdx_qconv *q)
{
    return q->form == SDX_QCONV_SHORTS;
}
static bool is_fours(const struct sdx_qconv *q)
{
    return q->form == SDX_QCONV_FOURS;
}
static struct sdx_qdot_shape product_of(const struct sdx_qconv *q)
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t icg = s->ic / s->groups, taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    const bool dense = is_dense(s);
    return (struct sdx_qdot_shape){.n = s->oc / s->groups,
                                   .runs = dense ? s->kernel[0] * s->kernel[1] : taps,
                                   .run = dense ? s->kernel[2] * icg : icg};
}

bool sdx_qconv_sums_in_place(const struct sdx_qconv *q)
{
    const struct sdx_kernel_tables *t = sdx_kernel_tables();
    return sdx_qdot_sums_in_place() && !sdx_qconv_is_depthwise(q) && !t->qwinograd.run &&
           !t->qshorts.panels; /* whichever form the weights make it take */
}

/* Rows of a strip from one row of the kernel to the next: those between what far dilated ones see
 * are left out. And all of them. */
static int64_t tap_lines(const struct sdx_conv_shape *s, int64_t outputs)
{
    return conv_least(s->dilation[1], (outputs - 1) * s->stride[1] + 1);
}
static int64_t lines_of(const struct sdx_conv_shape *s, int64_t taps, int64_t outputs)
{
    return (s->kernel[1] - 1) * taps + (outputs - 1) * s->stride[1] + 1;
}

/* Small images fill no chunk of pixels, and each would read all weights anew. */
static int64_t images_together(const struct sdx_conv_shape *s, const struct geometry *g,
                               int64_t bytes)
{
    if (g->depthwise || g->bands > 1 || s->out[0] != 1) return 1;
    const int64_t fit = bytes / conv_most(1, g->sheet);
    return conv_most(1, conv_least(fit, IMAGE_PIXELS / conv_most(1, g->z.pixels)));
}
static struct geometry geometry_of(const struct sdx_qconv *q)
{
    const struct sdx_conv_shape *s = &q->shape;
    const struct sdx_kernel_tuning *t = sdx_kernel_tuning();
    const struct sdx_qdot_shape p = product_of(q);
    struct geometry g = {.z = conv_sizes(s), .run = p.run, .runs = p.runs};
    g.across = conv_most(1, s->out[2]);
    g.depthwise = sdx_qconv_is_depthwise(q);
    const bool masks = is_fours(q) || sdx_kernel_tables()->qdw.masks;
    g.slides = g.depthwise && qdw_slides(s);
    g.copies = q->x_signed || (g.depthwise && !masks && s->ic % SDX_QDOT_COLS);
    g.in_place = !g.slides && conv_is_unpadded(s) && !g.copies && !is_shorts(q) &&
                 (g.depthwise || g.run >= 4);
    g.wide = g.in_place || g.slides ? s->in[2] : conv_window(s, 2, s->out[2]);
    g.pitch = g.wide * s->ic;
    /* bands whose image rows stay in the second cache */
    const int64_t most = conv_most(1, s->out[1]), bytes = t->a_bytes / (is_shorts(q) ? 2 : 1);
    const int64_t fit = bytes / conv_most(1, g.pitch * s->kernel[0]); /* of dilated rows */
    const int64_t rows =
        conv_most(fit - conv_window(s, 1, 1), fit / s->kernel[1] - 1) / s->stride[1];
    g.bands = conv_divide_up(most, conv_least(conv_most(rows + 1, 1), most));
    g.panels = sdx_qdot_panels(&p);
    const int64_t work = g.z.k * s->oc * s->out[2] * most / t->part_macs;
    const int64_t wanted = conv_least(t->conv_parts, conv_most(1, work));
    const int64_t outer = conv_most(1, s->batch * s->out[0]);
    /* Rows before channels: a thread's pixels are then its own from step to step, while channels of
     * one pixel share lines of the cache. */
    const int64_t least = g.depthwise ? s->out[2] : BAND_PIXELS;
    const int64_t bands = conv_least(most, g.z.pixels / conv_most(1, s->out[0] * least));
    const int64_t fewest = g.bands;
    if (outer * g.bands < wanted)
        g.bands = conv_most(g.bands, conv_least(bands, conv_divide_up(wanted, outer)));
    g.joined = g.bands / fewest;
    g.tall = conv_divide_up(g.joined * most, g.bands);
    g.tap_lines = g.in_place || g.slides ? s->dilation[1] : tap_lines(s, g.tall);
    g.lines = lines_of(s, g.tap_lines, g.tall);
    g.plane = g.in_place ? s->dilation[0] * s->in[1] * g.pitch : g.lines * g.pitch;
    g.sheet = g.in_place ? s->ic * g.z.pixels_in : s->kernel[0] * g.plane;
    g.images = images_together(s, &g, bytes);
    g.splits = g.groups = 1;
    if (!g.depthwise && outer * g.bands > 0) {
        const int64_t each = conv_divide_up(wanted, outer * g.bands);
        g.groups = conv_least(s->groups, each);
        g.splits = conv_least(conv_divide_up(g.panels * SDX_QDOT_COLS, sdx_qdot_width()),
                              conv_divide_up(each, g.groups));
    }
    return g;
}

/* ---- packing ---- */

static size_t round_64(size_t n)
{
    return (n + 63) / 64 * 64;
}
/* Taps of a depthwise kernel as they are packed, and where tap t stands among them. */
static int64_t places_of(const struct sdx_qconv *q)
{
    const bool square = qdw_is_square(&q->shape);
    const int64_t taps = conv_sizes(&q->shape).taps;
    if (is_fours(q))
        return square ? SDX_QDW_FOURS_SLID : conv_divide_up(taps, SDX_QDW_FOURS) * SDX_QDW_FOURS;
    return square ? SDX_QDW_SLID : taps;
}
static int64_t place_of_tap(const struct sdx_qconv *q, int64_t t)
{
    if (!qdw_is_square(&q->shape)) return t;
    return is_fours(q) ? qdw_slid_tap_of_four(t) : qdw_slid_tap(t);
}
/* Weights of a block of a depthwise kernel; of all blocks in bytes. */
static int64_t block_weights(const struct sdx_qconv *q)
{
    if (is_fours(q)) return places_of(q) * SDX_QDW_FOURS_WIDE;
    return (places_of(q) + 1) / 2 * 2 * SDX_QDW_WIDE;
}
static size_t depthwise_bytes(const struct sdx_qconv *q)
{
    const int64_t wide = is_fours(q) ? SDX_QDW_FOURS_WIDE : SDX_QDW_WIDE;
    return (size_t)(conv_divide_up(q->shape.oc, wide) * block_weights(q)) *
           (is_fours(q) ? sizeof(int8_t) : sizeof(int16_t));
}
/* A weight of a depthwise kernel, less its zero point. */
static int32_t depthwise_weight(const struct sdx_qconv *q, const uint8_t *weights, int64_t c,
                                int64_t at)
{
    return (q->w_signed ? (int8_t)weights[at] : weights[at]) - (q->zero_w ? q->zero_w[c] : 0);
}
static bool are_bytes(const struct sdx_qconv *q, const void *weights)
{
    const int64_t taps = conv_sizes(&q->shape).taps;
    for (int64_t i = 0; i < q->shape.oc * taps; i++) {
        const int32_t w = depthwise_weight(q, weights, i / taps, i);
        if (w < INT8_MIN || w > INT8_MAX) return false;
    }
    return true;
}

/* Do so many pairs of weights not fit that sorting and pairing them anew helps little? Trained
 * weights have 0 to 5 % of such pairs, uniform ones 25 %: some channels are enough to tell. */
enum { CHANNELS_ASKED = 16 };
static bool are_unsafe(const struct sdx_qconv *q, const void *weights)
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2], ic = s->ic;
    int64_t unsafe = 0, pairs = 0;
    const int64_t stride = 1 + s->oc / CHANNELS_ASKED;
    for (int64_t c = 0; c < s->oc; c += stride)
        for (int64_t i = 0; i + 1 < ic; i += 2)
            for (int64_t t = 0; t < taps; t++, pairs++) {
                const int64_t at = (c * ic + i) * taps + t;
                const int sum =
                    sdx_qconv_weight(q, weights, at) + sdx_qconv_weight(q, weights, at + taps);
                unsafe += sum > 128 || sum < -128;
            }
    return unsafe * 7 > pairs;
}
/* Are there so few products, or so few together, that the tiles of shorts, which are wider where
 * rows are rearranged for the others, make up for twice as many? */
enum { FEW_PRODUCTS = 96, SHORT_RUN = 32 };
static bool are_few(const struct sdx_qdot_shape *p)
{
    return (p->runs * p->run <= FEW_PRODUCTS || p->run < SHORT_RUN) && p->n > SDX_QDOT_COLS;
}
/* Fours of taps are faster by a third, but for channels that they hold in vain. */
static bool fills_fours(int64_t channels)
{
    const int64_t fours = conv_divide_up(channels, SDX_QDW_FOURS_WIDE) * SDX_QDW_FOURS_WIDE;
    const int64_t pairs = conv_divide_up(channels, SDX_QDW_WIDE) * SDX_QDW_WIDE;
    return 3 * fours < 4 * pairs;
}
void sdx_qconv_choose(struct sdx_qconv *q, const void *weights)
{
    const struct sdx_kernel_tables *t = sdx_kernel_tables();
    const struct sdx_qdot_shape p = product_of(q);
    q->form = SDX_QCONV_BYTES;
    if (sdx_qconv_is_depthwise(q)) {
        if (t->qdw.row_of_fours && fills_fours(q->shape.oc) && are_bytes(q, weights))
            q->form = SDX_QCONV_FOURS;
    } else if (sdx_qwinograd_serves(q, weights))
        q->form = SDX_QCONV_WINOGRAD;
    else if (t->qshorts.panels && q->shape.groups == 1 && !q->quickly &&
             ((t->qdot.rearranges && are_few(&p)) || are_unsafe(q, weights)))
        q->form = SDX_QCONV_SHORTS;
}

/* A run of shorts that are taken in pairs: what follows an odd one is multiplied by 0. */
static int64_t even(int64_t run)
{
    return run + run % 2;
}
size_t sdx_qconv_packed_size(const struct sdx_qconv *q)
{
    if (is_winograd(q)) return sdx_qwinograd_packed_size(q);
    const struct geometry g = geometry_of(q);
    const struct sdx_qdot_shape p = product_of(q);
    if (is_shorts(q)) /* sums of the columns, weights */
        return (size_t)(sdx_qdot_panels(&p) * SDX_QDOT_COLS) *
               (sizeof(int32_t) + (size_t)(p.runs * even(p.run)) * sizeof(int16_t));
    if (g.depthwise) /* sums of the channels, weights */
        return (size_t)sdx_qconv_width(q) * sizeof(int32_t) + depthwise_bytes(q);
    return (size_t)q->shape.groups * round_64(sdx_qdot_packed_size(&p));
}

static void pack_depthwise(const struct sdx_qconv *q, const void *weights, void *packed)
{
    const int64_t taps = conv_sizes(&q->shape).taps, size = block_weights(q);
    int32_t *sums = packed;
    void *to = sums + sdx_qconv_width(q);
    memset(packed, 0, sdx_qconv_packed_size(q));
    for (int64_t c = 0; c < q->shape.oc; c++) {
        for (int64_t t = 0; t < taps; t++) {
            const int32_t w = depthwise_weight(q, weights, c, c * taps + t);
            const int64_t at = place_of_tap(q, t);
            if (is_fours(q)) {
                const int64_t four = qdw_place_of_four(c % SDX_QDW_FOURS_WIDE);
                ((int8_t *)to)[c / SDX_QDW_FOURS_WIDE * size +
                               (at / SDX_QDW_FOURS * SDX_QDW_FOURS_WIDE + four) * SDX_QDW_FOURS +
                               at % SDX_QDW_FOURS] = (int8_t)w;
            } else
                ((int16_t *)to)[c / SDX_QDW_WIDE * size + at / 2 * 2 * SDX_QDW_WIDE +
                                qdw_place(c % SDX_QDW_WIDE, at % 2)] = (int16_t)w;
            sums[c] += w;
        }
    }
}
/* K in the order of the runs: taps of a run with their channels. */
static void pack_shorts(const struct sdx_qconv *q, const void *weights, void *packed)
{
    const struct sdx_qdot_shape p = product_of(q);
    const int64_t k = p.runs * p.run, size = p.runs * even(p.run), ic = q->shape.ic, taps = k / ic;
    int32_t *sums = packed;
    int16_t *to = (int16_t *)(sums + sdx_qdot_panels(&p) * SDX_QDOT_COLS);
    memset(packed, 0, sdx_qconv_packed_size(q));
    for (int64_t c = 0; c < p.n; c++)
        for (int64_t i = 0; i < k; i++) {
            const int64_t from = (c * ic + i % ic) * taps + i / ic;
            const int8_t w = sdx_qconv_weight(q, weights, from);
            const int64_t at = i / p.run * even(p.run) + i % p.run;
            to[c / SDX_QDOT_COLS * size * SDX_QDOT_COLS +
               (at / 2 * SDX_QDOT_COLS + c % SDX_QDOT_COLS) * 2 + at % 2] = w;
            sums[c] += w;
        }
}
size_t sdx_qconv_pack(const struct sdx_qconv *q, const void *weights, void *packed)
{
    const struct sdx_conv_shape *s = &q->shape;
    const struct sdx_qdot_shape p = product_of(q);
    const int64_t icg = s->ic / s->groups, taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    if (q->form != SDX_QCONV_BYTES || sdx_qconv_is_depthwise(q)) {
        (is_winograd(q) ? sdx_qwinograd_pack
         : is_shorts(q) ? pack_shorts
                        : pack_depthwise)(q, weights, packed);
        return sdx_qconv_packed_size(q);
    }
    size_t used = 0;
    for (int64_t g = 0; g < s->groups; g++) {
        const struct sdx_qdot_weights w = {.w = (const uint8_t *)weights + g * p.n * icg * taps,
                                           .is_signed = q->w_signed,
                                           .quickly = q->quickly,
                                           .inner = icg,
                                           .step_run = is_dense(s) ? s->kernel[2] : 1,
                                           .step_outer = 1,
                                           .step_inner = taps,
                                           .step_n = icg * taps};
        used = sdx_qdot_pack_one(&p, &w, packed, round_64(sdx_qdot_packed_size(&p)), g, s->groups);
    }
    return used;
}

bool sdx_qconv_check(const struct sdx_qconv *q, const void *packed)
{
    const struct sdx_qdot_shape p = product_of(q);
    if (q->form != SDX_QCONV_BYTES || sdx_qconv_is_depthwise(q)) return true;
    for (int64_t g = 0; g < q->shape.groups; g++)
        if (!sdx_qdot_check(&p,
                            (const char *)packed + (size_t)g * round_64(sdx_qdot_packed_size(&p))))
            return false;
    return true;
}

static int64_t group_width(const struct sdx_qconv *q)
{
    const struct sdx_qdot_shape p = product_of(q);
    return sdx_qdot_panels(&p) * SDX_QDOT_COLS;
}
int64_t sdx_qconv_width(const struct sdx_qconv *q)
{
    return sdx_qconv_is_depthwise(q) ? conv_divide_up(q->shape.oc, SDX_QDOT_COLS) * SDX_QDOT_COLS
                                     : q->shape.groups * group_width(q);
}
int64_t sdx_qconv_place_of(const struct sdx_qconv *q, int64_t c)
{
    const int64_t ocg = q->shape.oc / q->shape.groups;
    return sdx_qconv_is_depthwise(q) ? c : c / ocg * group_width(q) + c % ocg;
}
void sdx_qconv_start(const struct sdx_qconv *q, const void *packed, int32_t zero_x, int32_t *start)
{
    const struct sdx_qdot_shape p = product_of(q);
    const int32_t zero = zero_x + (q->x_signed ? 128 : 0);
    if (q->form != SDX_QCONV_BYTES || sdx_qconv_is_depthwise(q)) {
        const int32_t *sums = packed;
        for (int64_t c = 0; c < sdx_qconv_width(q); c++)
            start[c] = (int32_t) - ((uint32_t)zero * (uint32_t)sums[c]);
        return;
    }
    for (int64_t g = 0; g < q->shape.groups; g++)
        sdx_qdot_start(&p, (const char *)packed + (size_t)g * round_64(sdx_qdot_packed_size(&p)), 0,
                       sdx_qdot_panels(&p), zero, NULL, start + g * group_width(q));
}

/* The table of steps holds the taps' places (depthwise) or the steps of all groups, behind the
 * places of the runs. */
size_t sdx_qconv_steps_size(const struct sdx_qconv *q)
{
    const struct geometry g = geometry_of(q);
    const struct sdx_qdot_shape p = product_of(q);
    if (is_winograd(q) || g.slides) return 0;
    if (g.depthwise) return (size_t)places_of(q) * sizeof(int64_t);
    if (is_shorts(q)) return (size_t)g.runs * sizeof(int64_t);
    return (size_t)g.runs * sizeof(int64_t) +
           (size_t)(q->shape.groups * sdx_qdot_steps(&p)) * sizeof(struct sdx_qdot_step);
}
void sdx_qconv_steps(const struct sdx_qconv *q, const void *packed, void *steps)
{
    const struct sdx_conv_shape *s = &q->shape;
    const struct geometry g = geometry_of(q);
    const struct sdx_qdot_shape p = product_of(q);
    const bool by_tap = g.depthwise || !is_dense(s);
    if (is_winograd(q) || g.slides) return;
    int64_t *starts = steps, r = 0;
    for (int64_t i = 0; g.depthwise && i < places_of(q); i++)
        starts[i] = 0; /* nothing stands there; any tap may be read */
    for (int64_t kd = 0; kd < s->kernel[0]; kd++)
        for (int64_t kh = 0; kh < s->kernel[1]; kh++)
            for (int64_t kw = 0; kw < (by_tap ? s->kernel[2] : 1); kw++, r++)
                starts[g.depthwise ? place_of_tap(q, r) : r] =
                    kd * g.plane + kh * g.tap_lines * g.pitch + kw * s->dilation[2] * s->ic;
    struct sdx_qdot_step *to = (struct sdx_qdot_step *)(starts + r);
    for (int64_t i = 0; !g.depthwise && !is_shorts(q) && i < s->groups; i++)
        sdx_qdot_place(&p, (const char *)packed + (size_t)i * round_64(sdx_qdot_packed_size(&p)),
                       starts, to + i * sdx_qdot_steps(&p));
}

/* ---- parts ---- */

/* Pixels at a time: their bytes of A stay in the second cache; where there are few weights and
 * panels are the outer loop, they and the bytes that are stored in the first. */
static int64_t chunk_of(const struct geometry *g)
{
    const int64_t k = conv_most(1, g->z.k);
    if (k * g->z.ocg <= FEW_WEIGHTS && !sdx_qdot_rows_first()) {
        const int64_t pixels = FIRST_CACHE / (k + g->z.ocg) / ROWS * ROWS;
        if (pixels >= 4 * ROWS) return conv_least(pixels, 256 * ROWS);
    }
    const int64_t pixels = sdx_kernel_tuning()->a_bytes / k;
    const int64_t most = conv_least(conv_most(pixels, 8 * ROWS), 256 * ROWS);
    const int64_t unit = sdx_qdot_rows_first() && most >= g->across ? g->across : ROWS;
    return most / unit * unit;
}
int64_t sdx_qconv_parts(const struct sdx_qconv *q)
{
    if (is_winograd(q)) return sdx_qwinograd_parts(q);
    const struct geometry g = geometry_of(q);
    return q->shape.batch * q->shape.out[0] * g.bands * g.groups * g.splits;
}
static size_t strip_size(const struct sdx_qconv *q, const struct geometry *g)
{
    const int64_t rows = 1 + (g->copies ? conv_least(g->lines, q->shape.in[1]) : 0);
    const int64_t bytes = g->slides ? rows * g->pitch : g->images * g->sheet;
    const size_t elements = (size_t)bytes + SLACK;
    return g->in_place ? 0 : round_64(is_shorts(q) ? elements * sizeof(int16_t) : elements);
}
/* Pointers to the rows of a chunk, and their sums. */
static size_t rows_size(const struct geometry *g)
{
    return round_64((size_t)chunk_of(g) * (sizeof(uint8_t *) + sizeof(int32_t)));
}
size_t sdx_qconv_scratch(const struct sdx_qconv *q)
{
    if (is_winograd(q)) return sdx_qwinograd_scratch(q);
    const struct geometry g = geometry_of(q);
    const struct sdx_qdot_shape p = product_of(q);
    const bool is_product = !g.depthwise && !is_shorts(q);
    return strip_size(q, &g) + rows_size(&g) +
           (is_product ? sdx_qdot_scratch(&p, chunk_of(&g)) : 0);
}

/* Elements at .. of a strip: the zero point, or bytes made unsigned. */
static void set_elements(const struct sdx_qconv *q, void *strip, int64_t at, int zero, int64_t n)
{
    if (!is_shorts(q)) {
        memset((uint8_t *)strip + at, zero, (size_t)n);
        return;
    }
    enum { AT_ONCE = 64 };
    int16_t *to = (int16_t *)strip + at;
    for (int64_t i = 0; i < conv_least(n, AT_ONCE); i++)
        to[i] = (int16_t)zero;
    for (int64_t i = AT_ONCE; i < n; i += AT_ONCE)
        memcpy(to + i, to, (size_t)conv_least(AT_ONCE, n - i) * sizeof *to);
}
static void copy_elements(const struct sdx_qconv *q, void *strip, int64_t at, const uint8_t *from,
                          int64_t n)
{
    uint8_t *to = (uint8_t *)strip + at;
    if (is_shorts(q))
        sdx_kernel_tables()->qshorts.widen(from, q->x_signed ? 0x80 : 0, (int16_t *)strip + at, n);
    else if (!q->x_signed)
        memcpy(to, from, (size_t)n);
    else
        sdx_qbytes()->flip(from, 0x80, to, (size_t)n);
}
/* Image rows that output rows r0 .. of slice od see, with their padding, from element `sheet` of
 * the strip on. */
static void fill_strip(const struct sdx_qconv *q, const struct geometry *g, const uint8_t *image,
                       int zero, int64_t od, int64_t r0, int64_t rows, void *strip, int64_t sheet)
{
    const struct sdx_conv_shape *s = &q->shape;
    const int64_t row = s->in[2] * s->ic, taps = g->tap_lines;
    const int64_t lines = lines_of(s, taps, rows);
    const int64_t left = conv_least(conv_most(0, s->pad_begin[2]), g->wide);
    const int64_t c0 = conv_most(0, -s->pad_begin[2]);
    const int64_t columns = conv_most(0, conv_least(s->in[2] - c0, g->wide - left));
    for (int64_t kd = 0; kd < s->kernel[0]; kd++)
        for (int64_t i = 0; i < lines; i++) {
            const int64_t d = od * s->stride[0] - s->pad_begin[0] + kd * s->dilation[0];
            const int64_t h =
                r0 * s->stride[1] - s->pad_begin[1] + i / taps * s->dilation[1] + i % taps;
            const int64_t to = sheet + kd * g->plane + i * g->pitch;
            if (d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1] || columns == 0) {
                set_elements(q, strip, to, zero, g->pitch);
                continue;
            }
            set_elements(q, strip, to, zero, left * s->ic);
            copy_elements(q, strip, to + left * s->ic,
                          image + (d * s->in[1] + h) * row + c0 * s->ic, columns * s->ic);
            set_elements(q, strip, to + (left + columns) * s->ic, zero,
                         (g->wide - left - columns) * s->ic);
        }
}

struct part {
    const struct sdx_qconv *q;
    struct geometry g;
    const struct sdx_qdot_store *store; /* of the whole output */
    int64_t images, r0, rows;           /* output rows of each image */
    /* What output pixel (r0, 0) sees first. Where a kernel slides: row `first` of the image's
     * slice, NULL where there is none, and a row for what lies beyond it. */
    const uint8_t *origin, *outside;
    int64_t first;
    const void *steps;
    int32_t zero;       /* of x, unsigned */
    int64_t run0, runs; /* of the product, all but those that see zeros only */
};

/* What the first pixel of output row r, of those of all images, sees first: elements behind what
 * that of row 0 does. */
static int64_t line_at(const struct part *p, int64_t r)
{
    return r / p->rows * p->g.sheet + r % p->rows * p->q->shape.stride[1] * p->g.pitch;
}

/* A store goes on at y. */
static void store_at(const struct part *p, uint8_t *y, struct sdx_qdot_store *store)
{
    store->y = y;
    store->pitch = p->q->shape.oc;
    if (store->addend) store->addend = p->store->addend + (y - (uint8_t *)p->store->y);
}

/* The image rows that row r of the part sees. */
static void set_lines(const struct part *p, int64_t r, struct sdx_qdw *j)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    for (int64_t k = 0; k < SDX_QDW_SIDE; k++) {
        const int64_t h = (p->r0 + r) * s->stride[1] - s->pad_begin[1] + k * s->dilation[1];
        const bool is_there = p->origin && h >= 0 && h < s->in[1];
        j->lines[k] = is_there ? p->origin + (h - p->first) * p->g.pitch : p->outside;
    }
}
static void run_row(const struct sdx_qconv *q, const struct sdx_qdw *j)
{
    const struct sdx_qdw_table *t = &sdx_kernel_tables()->qdw;
    (is_fours(q) ? t->row_of_fours : t->row)(j);
}
/* Every d-th output of a line of them, d times over. */
static void slide(const struct part *p, uint8_t *line, int64_t size, struct sdx_qdw j)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int64_t d = s->dilation[2];
    j.store.pitch *= d;
    for (int64_t i = 0; i < d && i < s->out[2]; i++) {
        j.column = (i - s->pad_begin[2]) * s->ic;
        j.count = conv_divide_up(s->out[2] - i, d);
        j.store.y = line + i * s->oc * size;
        run_row(p->q, &j);
    }
}
static void run_depthwise(const struct part *p, const void *packed, uint8_t *y, int64_t size)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    struct sdx_qdw j = {.count = s->out[2],
                        .channels = s->oc,
                        .weights = (const int32_t *)packed + sdx_qconv_width(p->q),
                        .count_taps = places_of(p->q),
                        .stride = p->g.slides ? (int)s->stride[2] : 0,
                        .outside = p->outside,
                        .end = p->g.pitch,
                        .apart = s->dilation[2] * s->ic,
                        .step = s->stride[2] * s->ic,
                        .taps = p->steps,
                        .store = *p->store};
    j.store.zero_w = NULL;
    for (int64_t r = 0; r < p->rows; r++) {
        uint8_t *line = y + r * s->out[2] * s->oc * size;
        store_at(p, line, &j.store);
        if (j.stride) {
            set_lines(p, r, &j);
            slide(p, line, size, j);
        } else {
            j.x = p->origin + r * s->stride[1] * p->g.pitch;
            run_row(p->q, &j);
        }
        sdx_qdot_finish(&j.store, line, (size_t)(s->out[2] * s->oc));
    }
}

static void sum_rows(const struct part *p, const uint8_t *const *rows, int64_t n, int32_t *sums)
{
    const int64_t *starts = p->steps;
    for (int64_t i = 0; i < n; i++) {
        uint32_t sum = 0;
        for (int64_t r = 0; r < p->g.runs; r++)
            sum += sdx_qbytes()->sum(rows[i] + starts[r], 0, (size_t)p->g.run);
        sums[i] = (int32_t)(sum - (uint32_t)p->g.z.k * (uint32_t)p->zero);
    }
}
/* An output row, of those of all images, and the pixel of it. */
struct pixel {
    int64_t row, column;
};
/* Where the next `count` pixels see first; `size`: bytes of an element. */
static void next_rows(const struct part *p, const uint8_t *origin, int64_t size, int64_t count,
                      struct pixel *next, const uint8_t **rows)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int64_t step = s->stride[2] * s->ic * size;
    for (int64_t i = 0; i < count;) {
        const int64_t end = conv_least(count, i + s->out[2] - next->column);
        const uint8_t *row = origin + line_at(p, next->row) * size + next->column * step;
        next->column += end - i;
        for (; i + 4 <= end; i += 4, row += 4 * step) {
            rows[i] = row;
            rows[i + 1] = row + step;
            rows[i + 2] = row + 2 * step;
            rows[i + 3] = row + 3 * step;
        }
        for (; i < end; row += step)
            rows[i++] = row;
        if (next->column < s->out[2]) continue;
        next->column = 0;
        next->row++;
    }
}
/* Rows of the strip, chunk by chunk, with its panels p0 .. p1 - 1. */
static void run_shorts(const struct part *p, const void *packed, uint8_t *y, int64_t p0, int64_t p1,
                       const uint8_t **rows)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int64_t count = p->images * p->rows * s->out[2], chunk = chunk_of(&p->g);
    const int64_t size = p->store->to == SDX_QDOT_BYTES ? 1 : 4;
    const int64_t width = p->g.panels * SDX_QDOT_COLS;
    int32_t *sums = (int32_t *)(rows + chunk);
    const int64_t *starts = p->steps, step = even(p->g.run) * SDX_QDOT_COLS;
    struct sdx_qshorts j = {.n = s->oc, .runs = p->runs, .run = even(p->g.run), .rows = rows};
    j.apart = p->g.runs * step;
    j.starts = starts + p->run0;
    j.w = (const int16_t *)((const int32_t *)packed + width) + p->run0 * step;
    j.store = *p->store;
    j.store.row_sums = sums;
    struct pixel next = {0, 0};
    for (int64_t at = 0; at < count; at += j.m) {
        j.m = conv_least(chunk, count - at);
        next_rows(p, p->origin, sizeof(int16_t), j.m, &next, rows);
        for (int64_t i = 0; p->store->zero_w && i < j.m; i++) {
            const int16_t *row = (const int16_t *)rows[i];
            uint32_t sum = 0;
            for (int64_t k = 0; k < p->g.z.k; k++)
                sum += (uint32_t)row[starts[k / p->g.run] + k % p->g.run];
            sums[i] = (int32_t)(sum - (uint32_t)p->g.z.k * (uint32_t)p->zero);
        }
        store_at(p, y + at * s->oc * size, &j.store);
        sdx_kernel_tables()->qshorts.panels(&j, p0, p1);
        sdx_qdot_finish_rows(&j.store, j.m, p0 * SDX_QDOT_COLS,
                             conv_least(s->oc, p1 * SDX_QDOT_COLS));
    }
}
static void run_product(const struct part *p, struct sdx_qdot *dot, int64_t group, uint8_t *y,
                        int64_t size, int64_t p0, int64_t p1, const uint8_t **rows)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int64_t count = p->images * p->rows * s->out[2], chunk = chunk_of(&p->g);
    int32_t *sums = (int32_t *)(rows + chunk);
    const uint8_t *origin = p->origin + group * p->g.z.icg;
    struct pixel next = {0, 0};
    if (p->runs < p->g.runs) sdx_qdot_only(dot, p->run0, p->runs);
    for (int64_t at = 0; at < count; at += dot->m) {
        dot->m = conv_least(chunk, count - at);
        next_rows(p, origin, 1, dot->m, &next, rows);
        if (dot->store.zero_w) sum_rows(p, rows, dot->m, sums);
        dot->rows = rows;
        dot->store.row_sums = sums;
        store_at(p, y + (at * s->oc + group * p->g.z.ocg) * size, &dot->store);
        sdx_qdot_run(dot, p0, p1);
    }
}

/* What one call does: images or bands of an output slice with all channels, or a band with some of
 * them. */
struct range {
    int64_t end;           /* the part behind it */
    int64_t slice, images; /* n * out[0] + od; from there on */
    int64_t band, to_band; /* of output rows */
    int64_t group, to_group;
    int64_t split, to_split;
};
/* The first of parts part .. end - 1. */
static struct range range_of(const struct geometry *g, int64_t part, int64_t end)
{
    const int64_t each = g->groups * g->splits, left = end - part;
    struct range r = {.slice = part / each / g->bands,
                      .images = 1,
                      .band = part / each % g->bands,
                      .group = part / g->splits % g->groups,
                      .split = part % g->splits};
    if (part % each == 0 && left >= each) {
        r.to_band = r.band + conv_least(conv_least(left / each, g->joined), g->bands - r.band);
        r.to_group = g->groups;
        r.to_split = g->splits;
        r.images = conv_least(left / each, g->images);
        r.end = part + r.images * (r.to_band - r.band) * each;
        return r;
    }
    r.to_band = r.band + 1;
    r.to_group = r.group + 1;
    r.to_split = conv_least(r.split + left, g->splits);
    r.end = part + r.to_split - r.split;
    return r;
}
int64_t sdx_qconv_together(const struct sdx_qconv *q)
{
    if (is_winograd(q)) return 1;
    const struct geometry g = geometry_of(q);
    return g.images * g.joined * g.groups * g.splits;
}

/* The runs whose slices, from d on, or, of one slice, whose rows, from h on, lie in the image:
 * beyond it is the zero point. */
static void choose_runs(struct part *p, int64_t d, int64_t h)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int axis = s->kernel[0] > 1 ? 0 : 1;
    const int64_t at = axis == 0 ? d : h, more = axis == 0 ? 0 : (p->rows - 1) * s->stride[1];
    const int64_t each = p->g.runs / s->kernel[axis];
    int64_t first = 0, end = s->kernel[axis];
    while (first < end && at + more + first * s->dilation[axis] < 0)
        first++;
    while (end > first && at + (end - 1) * s->dilation[axis] >= s->in[axis])
        end--;
    if (p->zero || first == end) { /* a product of nothing is not provided for */
        first = 0;
        end = s->kernel[axis];
    }
    p->run0 = first * each;
    p->runs = (end - first) * each;
}
/* For a kernel that slides: rows of the image's slice d, or copies of those that the part sees. */
static void find_rows(struct part *p, const uint8_t *image, int64_t d, uint8_t *scratch)
{
    const struct sdx_conv_shape *s = &p->q->shape;
    const int64_t pitch = p->g.pitch, top = p->r0 * s->stride[1] - s->pad_begin[1];
    const int64_t end = conv_least(s->in[1], top + conv_window(s, 1, p->rows));
    memset(scratch, p->zero, (size_t)pitch);
    p->outside = scratch;
    p->first = 0;
    p->origin = d >= 0 && d < s->in[0] ? image + d * s->in[1] * pitch : NULL;
    if (!p->origin || !p->g.copies) return;
    p->first = conv_most(0, conv_least(top, end));
    copy_elements(p->q, scratch, pitch, p->origin + p->first * pitch,
                  conv_most(0, end - p->first) * pitch);
    p->origin = scratch + pitch;
}
static void run_range(const struct sdx_qconv *q, const struct geometry *g, const void *x,
                      int32_t zero_x, const void *packed, const void *steps,
                      const struct sdx_qdot_store *store, const struct range *r, void *scratch)
{
    const struct sdx_conv_shape *s = &q->shape;
    struct part p = {.q = q, .g = *g, .store = store, .images = r->images, .steps = steps};
    const int64_t od = r->slice % s->out[0], n = r->slice / s->out[0];
    p.r0 = conv_share(s->out[1], r->band, g->bands);
    p.rows = conv_share(s->out[1], r->to_band, g->bands) - p.r0;
    p.zero = zero_x + (q->x_signed ? 128 : 0);
    if (p.rows <= 0 || s->out[2] == 0) return;
    const uint8_t *image = (const uint8_t *)x + n * s->ic * g->z.pixels_in;
    const int64_t d = od * s->stride[0] - s->pad_begin[0];
    const int64_t h = p.r0 * s->stride[1] - s->pad_begin[1];
    choose_runs(&p, d, h);
    if (g->slides) {
        find_rows(&p, image, d, scratch);
    } else if (g->in_place) {
        p.origin = image + ((d * s->in[1] + h) * s->in[2] - s->pad_begin[2]) * s->ic;
    } else {
        for (int64_t i = 0; i < r->images; i++)
            fill_strip(q, g, image + i * s->ic * g->z.pixels_in, p.zero, od, p.r0, p.rows, scratch,
                       i * g->sheet);
        p.origin = scratch;
    }
    const int64_t size = store->to == SDX_QDOT_BYTES ? 1 : 4;
    uint8_t *y =
        (uint8_t *)store->y + ((n * s->out[0] + od) * s->out[1] + p.r0) * s->out[2] * s->oc * size;
    if (g->depthwise) {
        run_depthwise(&p, packed, y, size);
        return;
    }
    const int64_t wide = sdx_qdot_width() / SDX_QDOT_COLS, pieces = conv_divide_up(g->panels, wide);
    const int64_t p0 = conv_share(pieces, r->split, g->splits) * wide;
    const int64_t p1 = conv_least(conv_share(pieces, r->to_split, g->splits) * wide, g->panels);
    void *rest_of_scratch = (char *)scratch + strip_size(q, g);
    if (is_shorts(q)) {
        run_shorts(&p, packed, y, p0, p1, rest_of_scratch);
        return;
    }
    const int64_t end = conv_share(s->groups, r->to_group, g->groups);
    for (int64_t i = conv_share(s->groups, r->group, g->groups); i < end; i++) {
        struct sdx_qdot dot = {.shape = product_of(q),
                               .store = *store,
                               .scratch = (char *)rest_of_scratch + rows_size(g)};
        const int64_t column = i * group_width(q);
        dot.packed = (const char *)packed + (size_t)i * round_64(sdx_qdot_packed_size(&dot.shape));
        dot.starts = steps;
        dot.steps =
            (const struct sdx_qdot_step *)(dot.starts + g->runs) + i * sdx_qdot_steps(&dot.shape);
        dot.store.start += column;
        if (dot.store.factor) dot.store.factor += column;
        if (dot.store.bias) dot.store.bias += column;
        if (dot.store.zero_w) dot.store.zero_w += column;
        run_product(&p, &dot, i, y, size, p0, p1, rest_of_scratch);
    }
}

void sdx_qconv_run(const struct sdx_qconv *q, const void *x, int32_t zero_x, const void *packed,
                   const void *steps, const struct sdx_qdot_store *store, int64_t part, int64_t end,
                   void *scratch)
{
    if (is_winograd(q)) {
        for (; part < end; part++)
            sdx_qwinograd_part(q, x, zero_x + (q->x_signed ? 128 : 0), packed, store, part,
                               scratch);
        return;
    }
    const struct geometry g = geometry_of(q);
    for (struct range r; part < end; part = r.end) {
        r = range_of(&g, part, end);
        run_range(q, &g, x, zero_x, packed, steps, store, &r, scratch);
    }
}
