/* SPDX-License-Identifier: Apache-2.0
 * Products of rows of bytes widened to shorts with weights of 16 bits, exact: for weights of which
 * so many pairs do not fit into the 16 bits of qdot.h that widening in the product costs more.
 * Private to qconv.c. */
#ifndef SDX_KERNELS_QCONV_SHORTS_H
#define SDX_KERNELS_QCONV_SHORTS_H

#include "kernels/qdot.h"

struct sdx_qshorts {
    int64_t m, n, runs, run;    /* run is even: of an odd one the short behind it is read, too */
    int64_t apart;              /* shorts from a panel of w to the next: it may have more runs */
    const uint8_t *const *rows; /* shorts */
    const int64_t *starts;      /* of the runs, from a row */
    const int16_t *w;           /* [panel][runs * run / 2][16][2] */
    struct sdx_qdot_store store;
};
struct sdx_qshorts_table {
    void (*widen)(const uint8_t *from, uint8_t flip, int16_t *to, int64_t n);
    /* panels p0 .. p1 - 1 of all rows; NULL: sums of bytes are faster */
    void (*panels)(const struct sdx_qshorts *q, int64_t p0, int64_t p1);
};
#endif
