/* SPDX-License-Identifier: Apache-2.0
 * A table from numbers or texts to positions in a list, made once in the memory of a plan. */
#ifndef SDX_OPS_ML_LOOKUP_H
#define SDX_OPS_ML_LOOKUP_H

#include "ops/step.h"

enum sdx_lookup_kind { SDX_LOOKUP_INT, SDX_LOOKUP_REAL, SDX_LOOKUP_TEXT };

struct sdx_lookup {
    enum sdx_lookup_kind kind;
    int64_t count, capacity;
    const int64_t *ints; /* the keys: one of these */
    const double *reals;
    const struct sdx_str *texts;
    int32_t *slots; /* position + 1; 0: free */
    bool is_direct; /* whole numbers that lie close: slot i is that of the key least + i */
    int64_t least;
};

/* Keys must live as long as the plan. Of equal keys the last counts. */
SDX_MUST_CHECK enum sdx_status sdx_lookup_ints(struct sdx_prepare *px, struct sdx_lookup *out,
                                               const int64_t *keys, int64_t count);
SDX_MUST_CHECK enum sdx_status sdx_lookup_reals(struct sdx_prepare *px, struct sdx_lookup *out,
                                                const double *keys, int64_t count);
SDX_MUST_CHECK enum sdx_status sdx_lookup_texts(struct sdx_prepare *px, struct sdx_lookup *out,
                                                const struct sdx_str *keys, int64_t count);
/* Position, -1: not there. The kind must be the table's. All NaN are one key. */
int64_t sdx_lookup_int(const struct sdx_lookup *table, int64_t key);
int64_t sdx_lookup_real(const struct sdx_lookup *table, double key);
int64_t sdx_lookup_text(const struct sdx_lookup *table, struct sdx_str key);
/* Element i of a tensor of numbers or texts, by the table's kind. */
int64_t sdx_lookup_element(const struct sdx_lookup *table, const struct sdx_tensor *x, int64_t i);
#endif
