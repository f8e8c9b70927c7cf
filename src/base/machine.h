/* SPDX-License-Identifier: Apache-2.0
 * The machine as one that measures on it sees it: its processor's name, and its caches emptied. */
#ifndef SDX_BASE_MACHINE_H
#define SDX_BASE_MACHINE_H

#include <stddef.h>

/* The processor's name as its maker gives it, "AMD EPYC 7763 64-Core Processor"; "unknown". */
void sdx_machine_cpu(char *buf, size_t size);
/* These bytes leave the caches, where the processor lets a program say so. */
void sdx_machine_evict(const void *bytes, size_t size);
#endif
