/* SPDX-License-Identifier: Apache-2.0
 * ImageDecoder. The codecs are in an optional module (docs/adr/0017), opened when a model has such
 * a node. As the standard says, what cannot be decoded gives an empty picture; the reason goes to
 * the log. A codec that is missing, or memory, is an error. */
#include "base/module.h"
#include "ops/op.h"
#include "sardonyx/codecs.h"

struct decoder {
    sdx_codecs_decode_fn *decode;
    enum sdx_codecs_pixels pixels;
};

/* Pixels of a picture without a limit on memory: a small file may tell any size. */
static const int64_t pixels_most = INT64_C(1) << 28;

static bool pixels_of(const struct sdx_ir_node *node, enum sdx_codecs_pixels *pixels)
{
    struct sdx_str format = sdx_ir_attr_str(node, "pixel_format", "RGB");
    *pixels = sdx_str_is(format, "BGR")         ? SDX_CODECS_BGR
              : sdx_str_is(format, "Grayscale") ? SDX_CODECS_GRAY
                                                : SDX_CODECS_RGB;
    return *pixels != SDX_CODECS_RGB || sdx_str_is(format, "RGB");
}

static enum sdx_status infer_image_decoder(struct sdx_infer *ix)
{
    enum sdx_codecs_pixels pixels;
    int rank = sdx_infer_rank(ix, 0);
    if (rank >= 0 && rank != 1)
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL, "ImageDecoder: input has rank %d, expected 1", rank);
    if (!pixels_of(ix->node, &pixels)) {
        struct sdx_str format = sdx_ir_attr_str(ix->node, "pixel_format", "");
        return SDX_FAIL(ix->cx, SDX_BAD_MODEL,
                        "ImageDecoder: pixel_format is \"%.*s\", expected RGB, BGR or Grayscale",
                        SDX_STR_ARG(format));
    }
    sdx_infer_set_dtype(ix, 0, SDX_U8);
    int64_t dims[3] = {-1, -1, pixels == SDX_CODECS_GRAY ? 1 : 3};
    return sdx_infer_set_dims(ix, 0, 3, dims);
}

struct target {
    struct sdx_exec *x;
    const struct sdx_step *step;
    enum sdx_status status;
};

static unsigned char *take_pixels(void *user, int64_t height, int64_t width, int64_t channels)
{
    struct target *t = user;
    int64_t dims[3] = {height, width, channels};
    t->status = sdx_exec_output(t->x, t->step, 0, SDX_U8, 3, dims);
    return t->status == SDX_OK ? t->step->out[0]->data : NULL;
}

static enum sdx_status run_image_decoder(struct sdx_exec *x, const struct sdx_step *step,
                                         int64_t part)
{
    const struct decoder *p = step->params;
    const struct sdx_tensor *in = step->in[0];
    size_t limit = x->cx->mem->limit;
    struct target target = {.x = x, .step = step};
    struct sdx_codecs_picture picture = {.data = in->data,
                                         .size = (size_t)in->count,
                                         .pixels = p->pixels,
                                         .pixels_most = pixels_most,
                                         .take_pixels = take_pixels,
                                         .user = &target};
    (void)part;
    if (limit && limit / 4 < (size_t)pixels_most) picture.pixels_most = (int64_t)(limit / 4);
    enum sdx_codecs_result result = p->decode(&picture);
    if (target.status != SDX_OK) return target.status;
    switch (result) {
    case SDX_CODECS_OK: return SDX_OK;
    case SDX_CODECS_MISSING:
        return SDX_FAIL(x->cx, SDX_NOT_SUPPORTED, "ImageDecoder: %s", picture.error);
    case SDX_CODECS_MEMORY:
        return SDX_FAIL(x->cx, SDX_OUT_OF_MEMORY, "ImageDecoder: %s", picture.error);
    case SDX_CODECS_BAD_PICTURE: break;
    }
    sdx_log(x->cx, SDX_LOG_WARNING, "run", "ImageDecoder gives an empty picture: %s",
            picture.error);
    int64_t dims[3] = {0, 0, p->pixels == SDX_CODECS_GRAY ? 1 : 3};
    return sdx_exec_output(x, step, 0, SDX_U8, 3, dims);
}

static enum sdx_status prepare_image_decoder(struct sdx_prepare *px)
{
    static const char *const names[] = {SDX_CODECS_VERSION_NAME, SDX_CODECS_DECODE_NAME};
    void *functions[2] = {NULL, NULL};
    struct decoder *p = SDX_PREPARE_NEW(px, struct decoder);
    sdx_codecs_version_fn *version = NULL;
    if (!p) return SDX_FAIL_MEMORY(px->cx);
    if (sdx_module_open(px->cx, "libsardonyx_codecs.so", "SDX_CODECS", 2, names, functions))
        return sdx_fail_where(px->cx, "ImageDecoder needs its codecs");
    memcpy(&version, &functions[0], sizeof version); /* ISO C has no cast for it */
    memcpy(&p->decode, &functions[1], sizeof p->decode);
    if (version() != SDX_CODECS_VERSION)
        return SDX_FAIL(px->cx, SDX_NOT_SUPPORTED,
                        "ImageDecoder: libsardonyx_codecs.so has version %d, expected %d",
                        version(), SDX_CODECS_VERSION);
    pixels_of(px->node, &p->pixels);
    return sdx_prepare_step(px, "image_decoder", run_image_decoder, p, 1, 0);
}

static const struct sdx_op ops[] = {
    {"ImageDecoder", 20, 0, infer_image_decoder, KERNEL(prepare_image_decoder),
     .flags = SDX_OP_DYNAMIC},
};

const struct sdx_op_family sdx_ops_image_decoder = FAMILY("", ops);
