/* SPDX-License-Identifier: Apache-2.0
 * Choices that operators of ai.onnx.ml name by text before version 5 and by number from then on. */
#ifndef SDX_OPS_ML_NAMES_H
#define SDX_OPS_ML_NAMES_H

#include "base/str.h"

/* Tests of a node; MEMBER has a number only, and LEAF a text only. */
enum sdx_forest_mode {
    SDX_FOREST_LEQ,
    SDX_FOREST_LT,
    SDX_FOREST_GTE,
    SDX_FOREST_GT,
    SDX_FOREST_EQ,
    SDX_FOREST_NEQ,
    SDX_FOREST_MEMBER,
    SDX_FOREST_LEAF,
    SDX_FOREST_MODES
};
enum sdx_ml_aggregate { SDX_ML_AVERAGE, SDX_ML_SUM, SDX_ML_MIN, SDX_ML_MAX, SDX_ML_AGGREGATES };
enum sdx_ml_post {
    SDX_ML_NONE,
    SDX_ML_SOFTMAX,
    SDX_ML_LOGISTIC,
    SDX_ML_SOFTMAX_ZERO,
    SDX_ML_PROBIT,
    SDX_ML_POSTS
};
extern const char *const sdx_forest_mode_names[SDX_FOREST_MODES]; /* MEMBER: "" */
extern const char *const sdx_ml_aggregate_names[SDX_ML_AGGREGATES];
extern const char *const sdx_ml_post_names[SDX_ML_POSTS];

/* The number of a text, which is not empty; -1: none of the names. */
int sdx_ml_find_name(const char *const *names, int count, struct sdx_str text);
#endif
