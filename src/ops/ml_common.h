/* SPDX-License-Identifier: Apache-2.0
 * What the operators of classical machine learning share: rows of any number type, post transforms
 * of scores, and the step that turns the index of a class into its label. */
#ifndef SDX_OPS_ML_COMMON_H
#define SDX_OPS_ML_COMMON_H

#include "ops/infer.h"
#include "ops/ml_names.h"
#include "ops/step.h"

/* Attribute post_transform as text. */
SDX_MUST_CHECK enum sdx_status
sdx_ml_post_attr(struct sdx_context *cx, const struct sdx_ir_node *node, enum sdx_ml_post *out);
/* In place on the n scores of one row. */
void sdx_ml_post_apply(enum sdx_ml_post post, double *scores, int64_t n);
/* The same for rows of `columns` scores, in float: logistic and softmax as the engine computes them
 * elsewhere. scratch: sdx_ml_post_scratch() bytes. */
size_t sdx_ml_post_scratch(enum sdx_ml_post post, int64_t columns);
void sdx_ml_post_rows(enum sdx_ml_post post, float *scores, int64_t rows, int64_t columns,
                      void *scratch);
/* How the score of one class becomes two, to which the post transform is applied then. */
enum sdx_ml_second {
    SDX_ML_SECOND_NONE,       /* it stays one, and only PROBIT changes it */
    SDX_ML_SECOND_COMPLEMENT, /* 1 - s, s */
    SDX_ML_SECOND_NEGATIVE    /* -s, s; PROBIT: 1 - s, s */
};
/* scores[0] becomes one or two; returns how many. */
int64_t sdx_ml_post_binary(enum sdx_ml_post post, enum sdx_ml_second second, double *scores);

/* The matrix an input is: [C] is one row. Fails for other ranks than 1 and 2. */
SDX_MUST_CHECK enum sdx_status sdx_ml_matrix(struct sdx_prepare *px, int64_t *rows,
                                             int64_t *columns);
/* Rows from `first` on as float, or one as double: in place when they are of that type, otherwise
 * converted into `room` (integers by way of float, as runtimes do). */
const float *sdx_ml_rows_f32(const struct sdx_tensor *x, int64_t first, int64_t rows,
                             int64_t columns, float *room);
const double *sdx_ml_row_f64(const struct sdx_tensor *x, int64_t row, int64_t columns,
                             double *room);

/* A matrix [n, k] of the model, packed for the plan; NULL: no memory. Rows [m, k] times it turned,
 * plus a bias for each column or NULL: y, [m, n] with rows `pitch` apart. scratch: that of
 * sdx_gemm_f32_scratch(m, n, k). */
float *sdx_ml_pack(struct sdx_prepare *px, const float *matrix, int64_t n, int64_t k);
void sdx_ml_multiply(const float *x, int64_t m, const float *packed, int64_t n, int64_t k,
                     const float *bias, float *y, int64_t pitch, void *scratch);

/* Lays out scratch memory: `size` bytes at *at of `base` (NULL: only counts), aligned to 64. */
static inline void *sdx_ml_take(char *base, size_t *at, size_t size)
{
    void *place = base ? base + *at : NULL;
    *at += (size + 63) / 64 * 64;
    return place;
}

/* Class labels: texts, numbers, or neither (the index is the label). */
struct sdx_ml_labels {
    int64_t count;
    const int64_t *ints;
    const struct sdx_str *strings;
};
struct sdx_ml_labels sdx_ml_labels_of(const struct sdx_ir_node *node, const char *ints,
                                      const char *strings);
/* Where a classifier puts what it finds for its rows, int64 indices of labels (-1 - n stands for
 * the number n itself): output 0 where labels are numbers, and then sdx_ml_number_labels makes them
 * of n indices in place; for texts a tensor of their own, which the step of sdx_ml_add_texts reads.
 * Labels live as long as the plan. NULL: no memory. */
struct sdx_tensor *sdx_ml_label_rows(struct sdx_prepare *px, const struct sdx_ml_labels *labels,
                                     int64_t rows);
void sdx_ml_number_labels(const struct sdx_ml_labels *labels, int64_t *indices, int64_t n);
SDX_MUST_CHECK enum sdx_status
sdx_ml_add_texts(struct sdx_prepare *px, struct sdx_ml_labels *labels, struct sdx_tensor *indices);
/* Classifiers: output 0 is [N] of the labels' type, output 1 [N, columns] f32 (columns -1:
 * unknown). */
SDX_MUST_CHECK enum sdx_status sdx_ml_infer_classifier(struct sdx_infer *ix, bool strings,
                                                       int64_t columns);
/* Output 0 is [N, columns] of dtype. */
SDX_MUST_CHECK enum sdx_status sdx_ml_infer_rows(struct sdx_infer *ix, int dtype, int64_t columns);
#endif
