/* SPDX-License-Identifier: Apache-2.0
 * The progress bar: on a terminal only, on stderr, for what takes more than a second. */
#ifndef SDX_CLI_PROGRESS_H
#define SDX_CLI_PROGRESS_H

#include <stdint.h>

struct sdx_cli_progress;

/* Begins work of `total` steps (0: unknown, then the time is shown). NULL when stderr is no
 * terminal; the other functions accept NULL. */
struct sdx_cli_progress *sdx_cli_progress_begin(const char *title, int64_t total);
/* The same for work whose parts are worth counting: shows how many are done, and how many a second.
 * `unit`: what they are, "frames". */
struct sdx_cli_progress *sdx_cli_progress_count(const char *title, int64_t total, const char *unit);
void sdx_cli_progress_set(struct sdx_cli_progress *progress, int64_t done);
/* Clears the line, so that something else can be printed; the bar comes back with its next tick. */
void sdx_cli_progress_clear(struct sdx_cli_progress *progress);
void sdx_cli_progress_end(struct sdx_cli_progress *progress);

#endif
