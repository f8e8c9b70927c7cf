/* SPDX-License-Identifier: Apache-2.0
 * Rotary embeddings (Su et al., "RoFormer", 2021) of rows: column i and its partner, `turned / 2`
 * columns on or the next one, are turned by an angle. */
#ifndef SDX_OPS_ROTATE_H
#define SDX_OPS_ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row of angles and the rows that it turns; columns from `turned` on stay. */
struct sdx_rotate {
    int64_t size, turned;
    bool is_interleaved;        /* partners are neighbours */
    const float *cosine, *sine; /* see sdx_rotate_angles */
};
/* Bytes that sdx_rotate_angles wants. */
size_t sdx_rotate_scratch(const struct sdx_rotate *r);
/* cosine, sine: of the turned / 2 angles; both and scratch live as long as rows are turned. */
void sdx_rotate_angles(struct sdx_rotate *r, const float *cosine, const float *sine,
                       float *scratch);
/* `to` may be `from`. */
void sdx_rotate_row(const struct sdx_rotate *r, const float *from, float *to);
#endif
