/* SPDX-License-Identifier: Apache-2.0
 * Choices between ways to compute, measured on this machine and kept in the user's cache folder,
 * one file for each version of the library, instruction set and CPU model:
 *
 *   sardonyx tune FORMAT, VERSION, SET, CPU MODEL
 *   KEY <tab> WAY                                       (a line a choice)
 *   end COUNT CHECKSUM
 *
 * A file that is not exactly so is named in one line of the log and ignored; the next that is
 * written replaces it. Writers merge under a lock and replace the file as a whole. */
#ifndef SDX_RUN_TUNE_H
#define SDX_RUN_TUNE_H

#include "ops/step.h"

struct sdx_tune;

/* Reads what is there. Without a folder for it choices last as long as the session. */
SDX_MUST_CHECK enum sdx_status sdx_tune_open(struct sdx_context *cx, struct sdx_tune **out);
void sdx_tune_close(struct sdx_tune *tune); /* NULL allowed */
/* The way that is recorded, or measured now; -1: none serves, or there is no memory; or an error is
 * set, of measuring that was cancelled. */
int sdx_tune_choose(struct sdx_tune *tune, const struct sdx_choice *choice,
                    const atomic_int *cancel);
/* Writes what has been measured since the last time; a failure is logged. */
void sdx_tune_save(struct sdx_tune *tune);
#endif
