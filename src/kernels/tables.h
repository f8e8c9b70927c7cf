/* SPDX-License-Identifier: Apache-2.0
 * The tables of function pointers behind vec.h, gemm.h, conv.h, qdot.h and qconv.h, and the list of
 * instruction sets that fill them. Private to src/kernels and its check. */
#ifndef SDX_KERNELS_TABLES_H
#define SDX_KERNELS_TABLES_H

#include "base/cpu.h"
#include "kernels/channel_block.h"
#include "kernels/conv.h"
#include "kernels/elements.h"
#include "kernels/fft_lanes.h"
#include "kernels/nbits.h"
#include "kernels/pool_block.h"
#include "kernels/qbytes.h"
#include "kernels/qconv_depthwise.h"
#include "kernels/qconv_shorts.h"
#include "kernels/qconv_winograd.h"
#include "kernels/qdot_panel.h"
#include "kernels/rnn_step.h"
#include "kernels/sample.h"
#include "kernels/vec.h"

/* X(set, flag): the sets that the templates are compiled for, rising; _32: those whose vectors have
 * 32 bytes at most. SDX_ONE_SET: they are
 * compiled once, for whatever the compiler targets (scripts/amalgamate.py). */
#if defined(__x86_64__) && !defined(SDX_ONE_SET)
#define SDX_KERNEL_SETS_32(X) X(generic, SDX_CPU_GENERIC) X(avx2, SDX_CPU_AVX2)
#define SDX_KERNEL_SETS(X)    SDX_KERNEL_SETS_32(X) X(avx512, SDX_CPU_AVX512)
#else
#define SDX_KERNEL_SETS_32(X) X(generic, SDX_CPU_GENERIC)
#define SDX_KERNEL_SETS(X)    SDX_KERNEL_SETS_32(X)
#endif

/* C[m x n] = A[m x k] * B[k x n] over register tiles, for one block of the sum over K.
 * A: element (i, k) at a[i * row_a + k]. B: element (k, j) of panel p at b[p * panel_step + k *
 * row_b + j]; with row_b == cols every panel has all its columns, otherwise B is a plain matrix.
 * The sums begin at C when from_c, else at 0; then alpha, then the epilogue: of a block that is not
 * the last only the residual. Pointers of the epilogue and c are those of element (0, 0) of this
 * job. */
struct sdx_gemm_job {
    int64_t m, n, k;
    const float *a;
    int64_t row_a;
    const float *b;
    int64_t row_b, panel_step;
    const uint16_t *b_half; /* in place of b when half says so; see f32_thin_half */
    const uint16_t *next;   /* panels that take the place of b's later; NULL: none of 16 bits */
    enum sdx_half half;
    float *c;
    int64_t row_c;
    bool from_c, last;
    float alpha;
    struct sdx_epilogue epilogue;
};

/* The same for operands that lie in tiles: A as f32_tile_a made it of each `height` rows, one tile
 * behind the other, B as f32_tile_b or, with half, sdx_tiles_pack_half made it of each panel. job:
 * n, k as there; its b is unused, its a (of column stride col_a) is where what is not finite is
 * found, NULL: it spreads over its row.
 * Element (i, j) of C and of the residual is c[i * row_c + j / 32 * panel_c + j % 32 / 16 * half_c
 * + j % 16]. */
struct sdx_gemm_tiles {
    struct sdx_gemm_job job;
    int64_t col_a;
    const void *a, *b;
    enum sdx_half half; /* b is panels of such weights, */
    void *panel;        /* each of which is made one of digits here */
    int64_t height;     /* 1 to 16 */
    int64_t half_c, panel_c;
};
/* Pixels on blocked channels as rows of A, with the channels of each tap of a kernel, filled up to
 * whole vectors, one tap behind the other: channel c at a[from[row * taps + tap] + c / 16 * block_a
 * + c % 16], 0 where `from` is negative. What stands beyond the channels does not matter. */
struct sdx_tile_pixels {
    const float *a;
    const int64_t *from;
    int64_t taps, channels, block_a, rows, height;
};

/* Rows of which element (i, j) is from[i * pitch_from + j * step] and to[i * pitch_to + j]. */
struct sdx_rectangle {
    int64_t rows, width, pitch_from, step, pitch_to;
};

/* y[c * pitch + i] = sum over t < taps of w[t * channels + c] * x[offsets[t] + i], i < n, 1 to 4
 * channels; `more`: added to what is there. Reads and writes up to 127 elements more. */
struct sdx_few_job {
    int channels;
    bool more;
    const float *x;
    const int64_t *offsets;
    int64_t taps;
    const float *w;
    float *y;
    int64_t pitch, n;
};

/* m `rows` (nbits.h) times columns 0..width of packed low-bit weights. panel_step in lanes of 4
 * bytes; bias (may be NULL) and c are those of column 0. */
struct sdx_nbits_job {
    const struct sdx_nbits *w;
    const uint32_t *packed;
    int64_t panel_step, m, width;
    const uint8_t *rows;
    int64_t row_bytes;
    float *c;
    int64_t row_c;
    const float *bias;
    int64_t ahead; /* words ahead that the packed ones are fetched */
};
/* Of floats each block of one of `rows` is the sum of its numbers and then, for each SDX_NBITS_RUN
 * of them, what their sums start from and the numbers up to a whole word, scaled for the places of
 * their weights. In digits each run is what follows, with the sum of the block as far as the run's
 * end, and then SDX_NBITS_RUN lowest digits, as many of the middle and of the highest. */
enum { SDX_NBITS_RUN = 32, SDX_NBITS_DIGITS_MOST = 8355709 };
/* Rows of a job, at most; numbers of a row that are taken at a time, where a block is no longer. */
enum { SDX_NBITS_TILED = 192, SDX_NBITS_CHUNK = 256, SDX_NBITS_TALL = 64 };
/* Of whole products it is this, then its numbers up to a whole word: bytes or, with weights of
 * 8 bits where nothing takes bytes, shorts. */
struct sdx_nbits_fact {
    float scale, sum; /* sum: of the numbers, times scale */
    int32_t start;    /* of sums with unsigned weights: their middle times the numbers, less it */
};

enum { SDX_GEMM_THIN = 4 };
struct sdx_gemm_table {
    int rows, cols; /* of the largest tile; cols is the panel's width */
    void (*f32_block)(const struct sdx_gemm_job *job);
    /* NULL: the machine has no tiles; see gemm_tiles.h. A tile of the first of `rows` rows of A
     * times k, zeros up to `height`; with up to five of these the digits of a chunk are `height`
     * rows apart, beyond them 1 KB. */
    void (*f32_tile_a)(const float *a, int64_t row_a, int64_t rows, int64_t height, int64_t k,
                       void *tile);
    void (*f32_tile_pixels)(const struct sdx_tile_pixels *p, void *tile);
    /* A panel of n <= cols columns of B; row_b or col_b is 1. Column j times scale[j]; NULL: 1. */
    void (*f32_tile_b)(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                       const sdx_weight_f32 *scale, void *panel);
    /* of n filters [channels][taps], whose k is ordered as that of f32_tile_pixels */
    void (*f32_tile_filters)(const sdx_weight_f32 *filters, int64_t taps, int64_t channels,
                             int64_t n, void *panel);
    /* Whole panels in steps, from rows [k][cols] of B: raises the sizes of the columns, 0 at first,
     * to those of `rows` rows; makes factors of the sizes, which ..._rows takes, and the scales of
     * the panel; rows k0, k0 + 16, k0 + 32 and k0 + 48, of which `rows` are there and the others
     * are 0, k0 % 64 < 16. */
    void (*f32_tile_b_sizes)(const float *b, int64_t rows, float *sizes);
    void (*f32_tile_b_scales)(float *sizes, int64_t k, void *panel);
    void (*f32_tile_b_rows)(const float *b, int64_t rows, const float *factors, int64_t k0,
                            void *panel);
    void (*f32_tiles)(const struct sdx_gemm_tiles *g);
    /* the same for up to SDX_GEMM_THIN rows and whole panels of 16-bit numbers in b_half */
    void (*f32_thin_half)(const struct sdx_gemm_job *job);
    /* rows 0..k of b(k, j), columns 0..n, to panels of [k][cols], panel_step apart; zeros beyond n
     */
    void (*f32_pack)(const sdx_weight_f32 *b, int64_t row_b, int64_t col_b, int64_t k, int64_t n,
                     float *packed, int64_t panel_step);
    int nbits_panels[2]; /* that one row and two rows of floats are computed of at a time */
    /* size: bytes of a number of whole products */
    void (*nbits_row)(const struct sdx_nbits *w, int size, const float *a, void *row);
    void (*nbits_run)(const struct sdx_nbits_job *job);
    /* of floats and weights of 4 bits; NULL: the ones above are faster, and have the others' form
     */
    void (*nbits_digit_row)(const struct sdx_nbits *w, const float *a, void *row);
    void (*nbits_digit_run)(const struct sdx_nbits_job *job);
    /* of whole products with weights of 4 bits the rows that are fours; NULL: run does all */
    void (*nbits_whole_fours)(const struct sdx_nbits_job *job);
    /* of whole products with weights of 8 bits all rows, of bytes; NULL: run does them */
    void (*nbits_whole_bytes)(const struct sdx_nbits_job *job);
    /* Of m rows that are faster together: their size in bytes, a multiple of what 16 of them take,
     * or 0; NULL: there are none. Rows i0..i1 of them; up to SDX_NBITS_TALL rows of a job. */
    size_t (*nbits_tall_size)(const struct sdx_nbits *w, int64_t m);
    void (*nbits_tall_rows)(const struct sdx_nbits *w, int64_t m, const float *a, int64_t row_a,
                            int64_t i0, int64_t i1, void *rows);
    void (*nbits_tall_run)(const struct sdx_nbits_job *job);
    /* y[i] = sum over k of a[i * row_a + k] * x[k], in lanes: for convolutions to one pixel */
    void (*f32_rows_dot)(const float *a, int64_t row_a, const float *x, int64_t m, int64_t k,
                         float *y);
    /* to = act(from + bias + residual); residual may be NULL; to may be from */
    void (*f32_finish)(const float *from, float *to, int64_t n, float bias, const float *residual,
                       const struct sdx_epilogue *epilogue);
    /* y[i] = sum over i, j < size of w[i * size + j] * tap(i, j)[i]: tap(i, j) is rows[i] + j for
     * stride 1 and rows[i] + (j & 1) * odd + j / 2 for stride 2. size is 3 or 5. Reads up to the
     * next multiple of 64 elements and writes as far. */
    void (*f32_depthwise)(int size, int stride, const float *const *rows, int64_t odd,
                          const float *w, float *y, int64_t n);
    void (*f32_few)(const struct sdx_few_job *job);
    /* to = from, to += w * from, over a rectangle */
    void (*f32_copy_rows)(const float *from, float *to, struct sdx_rectangle r);
    void (*f32_axpy_rows)(float w, const float *from, float *to, struct sdx_rectangle r);
    void (*f64_gemm)(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t row_a,
                     int64_t col_a, const double *b, int64_t row_b, int64_t col_b, double beta,
                     double *c, int64_t row_c);
    void (*b32_gemm)(int64_t m, int64_t n, int64_t k, uint32_t alpha, const uint32_t *a,
                     int64_t row_a, int64_t col_a, const uint32_t *b, int64_t row_b, int64_t col_b,
                     uint32_t beta, uint32_t *c, int64_t row_c);
};

/* A part of a depthwise convolution on blocked channels, conv_block_depthwise.c: outputs from ..
 * end of rows h0 .. h1 of one channel block of one image. x, residual (NULL, or laid out as y and
 * maybe y) and y are those of the whole plane; w: [kh][kw] vectors. ring: NULL when every column
 * that is read lies within the image; else as many rows as the kernel spans, zero where it does
 * not. pick: the lane of x that each lane of the ring has; NULL: its own. */
enum { SDX_DEPTHWISE_ROWS = 64 }; /* of the kernel, at most */
struct sdx_depthwise_strip {
    int64_t from, end, h0, h1;
    const float *x, *w, *bias, *residual;
    float *y, *ring;
    const int32_t *pick;
    enum sdx_act act;
    float a, b;
};
/* Winograd's convolution on blocked channels, conv_block_winograd.c. Tiles are numbered in reading
 * order over the whole batch. */
struct sdx_winograd_block {
    const struct sdx_conv_shape *shape;
    int step;               /* outputs of a tile down and across: 2, 4, 5 or 6; 3 of four phases */
    int axis;               /* 1, 2: of tiles of four outputs along it; 0: of step x step */
    int64_t high, wide;     /* tiles of an image */
    int64_t tiles, first;   /* of the block in hand */
    int64_t room;           /* tiles of a panel of M */
    int planes;             /* of V, U and M to be multiplied */
    int64_t from, channels; /* input channels in hand; from > 0: added to M, in steps of ..._pass */
    bool streams, far;      /* U comes from memory; V again from beyond the second cache */
    const float *ahead;     /* filters of the next panel, brought meanwhile when U is one panel */
    int64_t plane_v, plane_m, group_v; /* floats of a plane, and of a group of tiles in V */
    int64_t group;                     /* most tiles of one */
    int64_t tile_v, block_v; /* floats to the next tile of 3 x 3, and block of channels, in V */
    int64_t gap_u;           /* between planes of U */
};
/* One register panel of a convolution over blocked channels, for pixels that see the same kernel
 * positions and one pass of the sum over K. Pixel i reads x at from[i], writes y at to[i] (in
 * floats). K is walked in runs: first `runs` of `chunks` chunks of LANES values, then `tail_runs`
 * of `tail_chunks` chunks of `tail` values; chunks of a run begin `step` apart. Weights:
 * [K][vectors * LANES]. Vectors of y lie y_step apart. */
struct sdx_conv_block_run {
    int64_t x; /* offset from the pixel */
    int64_t w; /* first row of its weights, which follow each other */
};
struct sdx_conv_block_job {
    int64_t pixels;
    const int64_t *from, *to;
    const float *x;
    const struct sdx_conv_block_run *run;
    int64_t runs, chunks, tail_runs, tail_chunks, tail, step;
    const float *weights, *weights_tail; /* of row 0, for the two kinds of runs */
    int64_t ahead;      /* from these weights to the next ones, brought to L2 meanwhile; 0: none */
    int64_t phase;      /* pixels of the strip before these */
    float share;        /* lines of a chunk and vector of those weights that a pixel brings */
    bool is_halved;     /* outputs are the lower half of the last vector, or fewer */
    bool brings_pixels; /* a tile brings those of the next one, its neighbours */
    float *y;
    int64_t y_step;
    const float *bias;     /* the sums begin with it; NULL: they begin at y */
    const float *residual; /* added before y is written, laid out as y, or NULL */
    enum sdx_act act;      /* then this, unless it is a clamp, */
    float a, b, lo, hi;    /* then the clamp, with infinities for none */
};
/* A row of outputs of a block of conv_block_group.c. Weights of a block of the input:
 * [kernel row][channel][3][lanes], with so many channels that each output sums up. */
enum { SDX_CONV_GROUP_LEAST = 5 }; /* outputs of a row */
struct sdx_conv_group_row {
    const float *x;        /* the first pixel of the first kernel row that is within the image */
    int64_t pitch, block;  /* floats between rows, and between blocks of channels */
    int64_t blocks, rows;  /* of the input; of the kernel within the image */
    int channels;          /* lanes, or a divisor of them: those of each lane's group */
    int64_t weights_block; /* floats between blocks of weights */
    const float *weights, *bias;
    float *y;
    int64_t width; /* outputs */
    int stride;    /* 1 or 2 */
    float lo, hi;  /* limits of the outputs, with infinities for none */
};
/* Kernels on blocked channels. */
struct sdx_conv_block_table {
    int lanes;         /* channels of a block */
    int vectors;       /* blocks of the widest panel */
    int rows;          /* most pixels of a tile two vectors wide */
    int winograd_rows; /* tiles of Winograd's register tile */
    int winograd_pass; /* input channels in one chain of sums */
    void (*f32_panel)(int vectors, const struct sdx_conv_block_job *job);
    /* `channels` <= lanes planes of pixels, pitch apart, to [pixel][lanes], zeros beyond channels;
     * and back */
    void (*f32_from_plain)(const float *plain, int64_t pitch, int64_t channels, int64_t pixels,
                           float *blocked);
    void (*f32_to_plain)(const float *blocked, int64_t channels, int64_t pixels, float *plain,
                         int64_t pitch);
    /* filters of 9, step 5: 4 or, along an axis, 2 to 4 taps, [channel][taps][width], of one or
     * two vectors of output channels, to planes [channel][width], `plane` floats apart; step 3:
     * whole blocks, [block][phase][lane][width] */
    void (*f32_winograd_filters)(int step, int taps, const float *weights, int64_t channels,
                                 int64_t width, float *u, int64_t plane);
    /* V: planes [group of tiles], of which ..._multiply wants [channel block][phase]
     * [winograd_rows][lanes] */
    void (*f32_winograd_in)(const struct sdx_winograd_block *w, const float *x, float *v);
    /* M: planes [panel of two vectors][room][2][lanes] for `vectors` of output channels; u: [plane]
     * [panel][channel][2][lanes], an odd last panel of one vector */
    void (*f32_winograd_multiply)(const struct sdx_winograd_block *w, const float *v,
                                  const float *u, int64_t vectors, float *m);
    /* to the vectors k0 .. k1 of output channels */
    void (*f32_winograd_out)(const struct sdx_winograd_block *w, const float *m, int64_t k0,
                             int64_t k1, const struct sdx_epilogue *epilogue, float *y);
    void (*f32_depthwise)(const struct sdx_conv_shape *s, const struct sdx_depthwise_strip *strip);
    void (*f32_group_row)(const struct sdx_conv_group_row *job); /* NULL: panels are as fast */
};
struct sdx_rnn_table {
    int lanes;
    void (*f32_step)(const struct sdx_rnn_step *step);
};

/* As in pool_block.h. */
struct sdx_pool_block_table {
    void (*f32_max)(const struct sdx_pool_block *p, const float *x, float *y, int64_t r0,
                    int64_t r1);
    void (*f32_average)(const struct sdx_pool_block *p, bool count_pads, const float *x, float *y,
                        int64_t r0, int64_t r1);
    void (*f32_mean)(int64_t pixels, const float *x, float *y);
    void (*f32_squares)(int64_t pixels, const float *x, const float *mean, float *y);
};

struct sdx_kernel_tables {
    struct sdx_vec vec;
    const struct sdx_elements *elements;
    struct sdx_fft_kernels fft;
    struct sdx_gemm_table gemm;
    struct sdx_conv_block_table block;
    struct sdx_channel_block channel;
    struct sdx_pool_block_table pool;
    struct sdx_rnn_table rnn;
    struct sdx_sample sample;
    struct sdx_qbytes qbytes;
    struct sdx_qdot_table qdot;
    struct sdx_qdw_table qdw;
    struct sdx_qshorts_table qshorts;
    struct sdx_qwinograd_table qwinograd;
};

const struct sdx_kernel_tables *sdx_kernel_tables(void);
/* For checks and benchmarks: use the sets up to `most` from now on, whatever SDX_CPU says. Packed
 * operands made before are of no use then. No other thread may be in a kernel. */
void sdx_kernel_tables_use(enum sdx_cpu_set most);

#define SDX_KERNEL_INIT(set, flag)                                                                 \
    void sdx_vec_map_init_##set(struct sdx_vec *vec);                                              \
    void sdx_vec_reduce_init_##set(struct sdx_vec *vec);                                           \
    void sdx_vec_convert_init_##set(struct sdx_vec *vec);                                          \
    void sdx_fft_init_##set(struct sdx_fft_kernels *fft);                                          \
    void sdx_gemm_init_##set(struct sdx_gemm_table *gemm);                                         \
    void sdx_gemm_other_init_##set(struct sdx_gemm_table *gemm);                                   \
    void sdx_nbits_init_##set(struct sdx_gemm_table *gemm);                                        \
    void sdx_conv_init_##set(struct sdx_gemm_table *gemm);                                         \
    void sdx_conv_block_depthwise_init_##set(struct sdx_conv_block_table *block);                  \
    void sdx_conv_block_group_init_##set(struct sdx_conv_block_table *block);                      \
    void sdx_conv_block_winograd_init_##set(struct sdx_conv_block_table *block);                   \
    void sdx_conv_block_init_##set(struct sdx_conv_block_table *block);                            \
    void sdx_channel_block_init_##set(struct sdx_channel_block *channel);                          \
    void sdx_pool_block_init_##set(struct sdx_pool_block_table *pool);                             \
    void sdx_rnn_step_init_##set(struct sdx_rnn_table *rnn);                                       \
    void sdx_sample_init_##set(struct sdx_sample *sample);                                         \
    void sdx_qbytes_init_##set(struct sdx_qbytes *qbytes);                                         \
    void sdx_qdot_init_##set(struct sdx_qdot_table *qdot);                                         \
    void sdx_qwinograd_init_##set(struct sdx_qwinograd_table *qwinograd);                          \
    void sdx_qshorts_init_##set(struct sdx_qshorts_table *qshorts);                                \
    void sdx_qdw_init_##set(struct sdx_qdw_table *qdw);
SDX_KERNEL_SETS(SDX_KERNEL_INIT)
#undef SDX_KERNEL_INIT
#define SDX_KERNEL_INIT(set, flag)                                                                 \
    void sdx_elements_init_##set(const struct sdx_elements **elements);
SDX_KERNEL_SETS_32(SDX_KERNEL_INIT)
#undef SDX_KERNEL_INIT
#if defined(__x86_64__) && !defined(SDX_ONE_SET)
void sdx_qdot_init_avxvnni(struct sdx_qdot_table *qdot);
void sdx_qdot_init_avx512vnni(struct sdx_qdot_table *qdot);
void sdx_qbytes_init_avx512vbmi(struct sdx_qbytes *qbytes);
void sdx_qdot_init_amx(struct sdx_qdot_table *qdot);
void sdx_gemm_init_amx(struct sdx_gemm_table *gemm);
void sdx_nbits_init_amx(struct sdx_gemm_table *gemm);
void sdx_qdw_init_avx512vnni(struct sdx_qdw_table *qdw);
void sdx_nbits_init_avx512vnni(struct sdx_gemm_table *gemm);
#elif defined(__aarch64__) && !defined(SDX_ONE_SET)
void sdx_qdot_init_dotprod(struct sdx_qdot_table *qdot);
#endif

/* sdx_vec_map_init_<the set this file is compiled for> */
#define SDX_JOIN_(a, b) a##b
#define SDX_JOIN(a, b)  SDX_JOIN_(a, b)
#define SDX_INIT(stem)  SDX_JOIN(stem, SDX_SET)
#endif
