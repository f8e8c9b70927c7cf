/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic limit of this machine, measured. */
#ifndef SDX_CLI_PEAK_H
#define SDX_CLI_PEAK_H

/* Billions of float operations a second (a fused multiply-add is two) that `threads` threads reach
 * together in registers alone; takes about 0.2 s. */
double sdx_cli_peak_gflops(int threads);

#endif
