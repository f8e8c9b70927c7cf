/* SPDX-License-Identifier: Apache-2.0
 * The profile of a session: a row a step, with time, work and bytes. */
#ifndef SDX_RUN_PROFILE_H
#define SDX_RUN_PROFILE_H

#include "run/runner.h"

struct sdx_profile {
    struct sdx_arena arena;
    struct sdx_profile_row *rows;
    int32_t count, capacity;
};

void sdx_profile_init(struct sdx_profile *profile, struct sdx_mem *mem);
void sdx_profile_deinit(struct sdx_profile *profile);
/* Rows for the steps of a new segment; fills s->profile_rows. */
SDX_MUST_CHECK enum sdx_status sdx_profile_add_segment(struct sdx_profile *profile,
                                                       struct sdx_context *cx,
                                                       const struct sdx_runner *r,
                                                       struct sdx_segment *s);
void sdx_profile_record(struct sdx_profile *profile, int32_t row, int64_t begin_ns, int64_t end_ns,
                        int64_t run_begin_ns);
void sdx_profile_reset(struct sdx_profile *profile);
#endif
