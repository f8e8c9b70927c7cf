/* SPDX-License-Identifier: Apache-2.0
 * What every unit test includes: cmocka with the headers it wants first, and a context of its own
 * whose memory must be empty at the end. */
#ifndef SDX_TESTS_UNIT_H
#define SDX_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/context.h"
#include "base/mem.h"
#include "base/thread_pool.h"

struct unit {
    struct sdx_mem mem;
    struct sdx_context cx;
};

static inline void unit_init(struct unit *unit)
{
    memset(unit, 0, sizeof *unit);
    sdx_mem_init(&unit->mem, NULL, 0);
    unit->cx.mem = &unit->mem;
    unit->cx.log_level = SDX_LOG_WARNING;
}

/* Nothing may be left. */
static inline void unit_deinit(struct unit *unit)
{
    assert_int_equal(atomic_load(&unit->mem.now), 0);
}

/* cmocka 1.1.5 has no assert for text that contains text. */
#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("\"%s\" does not contain \"%s\"", (text), (part));                            \
    } while (0)
#endif
