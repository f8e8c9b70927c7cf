/* SPDX-License-Identifier: Apache-2.0
 * NonMaxSuppression: boxes by falling score, each kept unless it overlaps one kept before. */
#include "ops/suppress.h"

#include <math.h>

#include "kernels/vec.h"
#include "ops/order.h"
#include "tensor/convert.h"

enum sdx_status sdx_suppress_infer(struct sdx_infer *ix)
{
    static const int64_t dims[2] = {-1, 3};
    if ((sdx_infer_rank(ix, 0) >= 0 && sdx_infer_rank(ix, 0) != 3) ||
        (sdx_infer_rank(ix, 1) >= 0 && sdx_infer_rank(ix, 1) != 3))
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "NonMaxSuppression: boxes and scores have ranks %d and %d, expected 3",
                        sdx_infer_rank(ix, 0), sdx_infer_rank(ix, 1));
    sdx_infer_set_dtype(ix, 0, SDX_I64);
    return sdx_infer_set_dims(ix, 0, 2, dims);
}

/* Of a number and a NaN: the number. */
static float smaller(float a, float b)
{
    return a < b || isnan(b) ? a : b;
}
static float larger(float a, float b)
{
    return a > b || isnan(b) ? a : b;
}

/* y0, x0, y1, x1, area */
static void read_box(const float *b, bool center, float box[5])
{
    if (center) {
        const float w = b[2] / 2, h = b[3] / 2;
        const float corners[4] = {b[1] - h, b[0] - w, b[1] + h, b[0] + w};
        memcpy(box, corners, sizeof corners);
    } else {
        for (int i = 0; i < 2; i++) {
            box[i] = smaller(b[i], b[i + 2]);
            box[i + 2] = larger(b[i], b[i + 2]);
        }
    }
    box[4] = (box[2] - box[0]) * (box[3] - box[1]);
}

static float scalar_of(const struct sdx_step *step, int i, float fallback)
{
    if (i >= step->count_in || !step->in[i] || step->in[i]->count == 0) return fallback;
    return (float)sdx_load_f64(step->in[i]->dtype, step->in[i]->data, 0);
}

/* Kept boxes lie in strips of the x axis: two that overlap share one. */
enum { STRIPS = 256, CHUNK = 64, COPIES = 4, SCORES = 4096, MANY = 4 * CHUNK };
struct chunk {
    float box[5][CHUNK]; /* as sdx_vec.f32_overlaps reads them */
    int32_t count, next; /* next: of its strip, -1 none */
};

struct nms_state {
    int64_t limit;
    float iou, score;
    bool has_score, center;
    struct sdx_pair *order, *work; /* candidates by falling score */
    struct chunk *chunks;
    int32_t count_chunks, strips;
    int32_t first[STRIPS + 1]; /* chunks; the last strip has boxes of many */
    float x0, scale;
    int64_t *out, count;
};

/* For so many candidates. Few lie in one strip. */
static void set_strips(struct nms_state *s, const float *boxes, int64_t n)
{
    float low = INFINITY, high = -INFINITY, widths = 0, box[5];
    s->strips = 1;
    if (s->limit <= MANY || n <= MANY) return;
    for (int64_t i = 0; i < n; i++) {
        read_box(boxes + 4 * s->order[i].index, s->center, box);
        low = smaller(low, box[1]);
        high = larger(high, box[3]);
        widths += box[3] - box[1];
    }
    const float width = high - low;
    if (!(width > 0) || width > 1e30f || width < 1e-30f) return;
    const float strips = width / widths * (float)n; /* as wide as the mean box */
    s->strips = strips < STRIPS ? (int32_t)larger(strips, 1) : STRIPS;
    s->x0 = low;
    s->scale = (float)s->strips / width;
}

static int strip_of(const struct nms_state *s, float x) /* rises with x */
{
    const float at = (x - s->x0) * s->scale, last = (float)(s->strips - 1);
    return at > 0 ? (int)(at < last ? at : last) : 0;
}

static void keep_box(struct nms_state *s, int strip, const float box[5])
{
    int32_t at = s->first[strip];
    if (at < 0 || s->chunks[at].count == CHUNK) {
        s->first[strip] = s->count_chunks++;
        memset(&s->chunks[s->first[strip]], 0, sizeof *s->chunks);
        s->chunks[s->first[strip]].next = at;
        at = s->first[strip];
    }
    struct chunk *c = &s->chunks[at];
    for (int i = 0; i < 5; i++)
        c->box[i][c->count] = box[i];
    c->count++;
}

/* Keeps a box unless it overlaps one kept before. */
static bool is_kept(struct nms_state *s, const float box[5])
{
    if (!(box[4] > 0)) return true; /* overlaps none */
    const int from = strip_of(s, box[1]), to = strip_of(s, box[3]);
    for (int strip = from; strip <= to + 1; strip++)
        for (int32_t c = s->first[strip <= to ? strip : s->strips]; c >= 0; c = s->chunks[c].next)
            if (sdx_vec()->f32_overlaps(box, s->chunks[c].box[0], CHUNK, (size_t)s->chunks[c].count,
                                        s->iou))
                return false;
    if (to - from >= COPIES) {
        keep_box(s, s->strips, box);
        return true;
    }
    for (int strip = from; strip <= to; strip++)
        keep_box(s, strip, box);
    return true;
}

static int64_t find_candidates(const struct nms_state *s, const float *scores, int64_t n)
{
    uint32_t at[SCORES + SDX_VEC_ABOVE_ROOM];
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += SCORES) {
        const size_t m = (size_t)(n - i < SCORES ? n - i : SCORES);
        size_t found = m;
        if (s->has_score) found = sdx_vec()->f32_above(scores + i, m, 0, s->score, at);
        for (size_t j = 0; j < found; j++) {
            const int64_t k = i + (int64_t)(s->has_score ? at[j] : j);
            if (s->has_score && !(scores[k] > s->score)) continue; /* a NaN */
            s->order[count++] = (struct sdx_pair){~(uint64_t)sdx_order_key_f32(scores[k]), k};
        }
    }
    return count;
}

/* Appends the choices of one class of one image. */
static void nms_class(struct nms_state *s, const float *boxes, const float *scores, int64_t n,
                      int64_t batch, int64_t class)
{
    const int64_t candidates = s->has_score && isnan(s->score) ? 0 : find_candidates(s, scores, n);
    int64_t kept = 0, sorted = 2 * s->limit + CHUNK;
    set_strips(s, boxes, candidates);
    s->count_chunks = 0;
    for (int i = 0; i <= s->strips; i++)
        s->first[i] = -1;
    if (sorted < candidates / 8) {
        sdx_order_first(s->order, candidates, sorted);
    } else {
        sorted = candidates;
        sdx_order_all(s->order, candidates, true, s->work);
    }
    for (int64_t c = 0; c < candidates && kept < s->limit; c++) {
        if (c == sorted) sdx_order_all(s->order + c, candidates - c, false, s->work);
        float box[5];
        read_box(boxes + 4 * s->order[c].index, s->center, box);
        if (!is_kept(s, box)) continue;
        kept++;
        int64_t *to = s->out + 3 * s->count++;
        to[0] = batch;
        to[1] = class;
        to[2] = s->order[c].index;
    }
}

/* Chunks for what is kept of `limit` boxes: of each strip one may not be full. */
static int64_t chunks_of(int64_t limit)
{
    return limit <= MANY ? limit / CHUNK + 2 : COPIES * limit / CHUNK + STRIPS + 2;
}

static enum sdx_status nms_all(struct sdx_exec *x, const struct sdx_step *step, struct nms_state *s)
{
    const struct sdx_tensor *boxes = step->in[0], *scores = step->in[1];
    int64_t n = boxes->dims[1], classes = scores->dims[1];
    for (int64_t i = 0; i < scores->dims[0] * classes; i++) {
        if (sdx_exec_cancelled(x)) return SDX_FAIL(x->cx, SDX_CANCELLED, "cancelled");
        nms_class(s, (const float *)boxes->data + i / classes * n * 4,
                  (const float *)scores->data + i * n, n, i / classes, i % classes);
    }
    int64_t dims[2] = {s->count, 3};
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I64, 2, dims));
    if (s->count) memcpy(step->out[0]->data, s->out, (size_t)s->count * 24);
    return SDX_OK;
}

static struct nms_state state_of(const struct sdx_step *step, bool center, int64_t limit,
                                 void *scratch)
{
    const int64_t n = step->in[0]->dims[1];
    struct nms_state s = {.center = center, .order = scratch};
    s.work = s.order + n;
    s.limit = limit < 0 ? 0 : limit > n ? n : limit;
    s.iou = scalar_of(step, 3, 0);
    s.score = scalar_of(step, 4, 0);
    s.has_score = step->count_in > 4 && step->in[4];
    return s;
}
static int64_t limit_of(const struct sdx_tensor *limit)
{
    return limit && limit->count ? sdx_load_i64(limit->dtype, limit->data, 0) : 0;
}

static enum sdx_status run_nms(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *boxes = step->in[0], *scores = step->in[1];
    int64_t most = 0;
    struct nms_state s = state_of(step, *(const bool *)step->params,
                                  step->count_in > 2 ? limit_of(step->in[2]) : 0, x->scratch);
    if (scores->dims[2] != boxes->dims[1] || scores->dims[0] != boxes->dims[0] ||
        boxes->dims[2] != 4)
        return SDX_FAIL(x->cx, SDX_RUN_FAILED,
                        "NonMaxSuppression: boxes and scores do not fit together");
    if (!sdx_mul_i64(scores->dims[0] * scores->dims[1], s.limit, &most))
        return SDX_FAIL(x->cx, SDX_RUN_FAILED, "NonMaxSuppression: too many boxes");
    struct sdx_mem *mem = x->cx->mem;
    s.chunks = sdx_mem_alloc(mem, SDX_MEM_SCRATCH, (size_t)chunks_of(s.limit) * sizeof(*s.chunks));
    s.out = sdx_mem_calloc(mem, SDX_MEM_SCRATCH, (size_t)most + 1, 3 * sizeof(*s.out));
    enum sdx_status status = s.chunks && s.out ? nms_all(x, step, &s) : SDX_FAIL_MEMORY(x->cx);
    sdx_mem_free(mem, s.chunks);
    sdx_mem_free(mem, s.out);
    return status;
}

/* ---- a part for each class, where their number of boxes is known before ---- */

/* out: for each class how many were kept, and room for all that may be. */
static enum sdx_status run_class(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    const struct sdx_tensor *boxes = step->in[0], *scores = step->in[1];
    const int64_t n = boxes->dims[1], classes = scores->dims[1], row = step->out[0]->dims[1];
    int64_t *to = (int64_t *)step->out[0]->data + part * row;
    struct nms_state s = state_of(step, *(const bool *)step->params, row / 3, x->scratch);
    s.chunks = (struct chunk *)(void *)(s.order + 2 * n);
    s.out = to + 1;
    nms_class(&s, (const float *)boxes->data + part / classes * n * 4,
              (const float *)scores->data + part * n, n, part / classes, part % classes);
    *to = s.count;
    return SDX_OK;
}
static enum sdx_status run_join(struct sdx_exec *x, const struct sdx_step *step, int64_t part)
{
    (void)part;
    const struct sdx_tensor *kept = step->in[0];
    const int64_t rows = kept->dims[0], row = kept->dims[1], *from = kept->data;
    int64_t dims[2] = {0, 3};
    for (int64_t i = 0; i < rows; i++)
        dims[0] += from[i * row];
    SDX_TRY(sdx_exec_output(x, step, 0, SDX_I64, 2, dims));
    if (!dims[0]) return SDX_OK;
    char *to = step->out[0]->data;
    for (int64_t i = 0; i < rows; i++, from += row) {
        memcpy(to, from + 1, (size_t)from[0] * 24);
        to += from[0] * 24;
    }
    return SDX_OK;
}

enum sdx_status sdx_suppress_prepare(struct sdx_prepare *px)
{
    enum { ROOM = 1 << 22 }; /* bytes that may wait to be joined */
    const struct sdx_tensor *boxes = px->in[0], *scores = px->in[1];
    bool *center = SDX_PREPARE_NEW(px, bool);
    if (!center) return SDX_OUT_OF_MEMORY;
    *center = sdx_ir_attr_int(px->node, "center_point_box", 0) != 0;
    size_t order;
    if (!sdx_mul_size((size_t)boxes->dims[1], 2 * sizeof(struct sdx_pair), &order))
        return SDX_FAIL(px->cx, SDX_BAD_INPUT, "NonMaxSuppression: too many boxes");
    const int64_t n = boxes->dims[1], classes = scores->dims[0] * scores->dims[1];
    const struct sdx_tensor *limit = sdx_prepare_has(px, 2) ? px->in[2] : NULL;
    int64_t most = limit && limit->is_constant ? limit_of(limit) : 0;
    most = most > n ? n : most;
    if (most <= 0 || classes < 2 || classes > ROOM / 24 / most || scores->dims[2] != n ||
        scores->dims[0] != boxes->dims[0] || boxes->dims[2] != 4)
        return sdx_prepare_step(px, "non_max_suppression", run_nms, center, 1, order);
    const int64_t dims[] = {classes, 3 * most + 1};
    struct sdx_tensor *kept = sdx_prepare_temp(px, SDX_I64, 2, dims);
    if (!kept) return SDX_FAIL_MEMORY(px->cx);
    SDX_TRY(sdx_prepare_step_on(px, "non_max_suppression", run_class, center, classes,
                                order + (size_t)chunks_of(most) * sizeof(struct chunk),
                                px->count_in, px->in, 1, &kept));
    return sdx_prepare_step_on(px, "join_boxes", run_join, center, 1, 0, 1, &kept, 1, px->out);
}
