/* SPDX-License-Identifier: Apache-2.0
 * The texts of the choices. */
#include "ops/ml_names.h"

const char *const sdx_forest_mode_names[SDX_FOREST_MODES] = {
    "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "", "LEAF"};
const char *const sdx_ml_aggregate_names[SDX_ML_AGGREGATES] = {"AVERAGE", "SUM", "MIN", "MAX"};
const char *const sdx_ml_post_names[SDX_ML_POSTS] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                     "PROBIT"};

int sdx_ml_find_name(const char *const *names, int count, struct sdx_str text)
{
    for (int i = 0; i < count; i++)
        if (text.len > 0 && sdx_str_is(text, names[i])) return i;
    return -1;
}
