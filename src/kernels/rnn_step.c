/* SPDX-License-Identifier: Apache-2.0
 * Layout and packing for the recurrent step. Panels of the packed weights: [panel][k][column]; a
 * panel has the gates of one vector of units, or of four where there is one gate; what is left of
 * four is a panel of two and one of one. */
#include "kernels/rnn_step.h"

#include "kernels/tables.h"

enum { GROUP = 4 };

static int64_t lanes(void)
{
    return sdx_kernel_tables()->rnn.lanes;
}

int64_t sdx_rnn_units(void)
{
    return GROUP * lanes();
}

int sdx_rnn_gates(enum sdx_rnn_kind kind)
{
    return kind == SDX_RNN_LSTM ? 4 : kind == SDX_RNN_GRU ? 3 : 1;
}

int64_t sdx_rnn_padded(int64_t hidden)
{
    return (hidden + lanes() - 1) / lanes() * lanes();
}

int64_t sdx_rnn_width(enum sdx_rnn_kind kind, int64_t hidden)
{
    return sdx_rnn_gates(kind) * sdx_rnn_padded(hidden);
}

int64_t sdx_rnn_column(enum sdx_rnn_kind kind, int gate, int64_t unit)
{
    return unit / lanes() * sdx_rnn_gates(kind) * lanes() + gate * lanes() + unit % lanes();
}

size_t sdx_rnn_packed_size(enum sdx_rnn_kind kind, int64_t hidden)
{
    return (size_t)hidden * (size_t)sdx_rnn_width(kind, hidden) * sizeof(float);
}

void sdx_rnn_pack(enum sdx_rnn_kind kind, int64_t hidden, const float *r, float *packed)
{
    int gates = sdx_rnn_gates(kind);
    int64_t width = sdx_rnn_width(kind, hidden), panel = (gates == 1 ? GROUP : gates) * lanes();
    for (int64_t j = 0; j < hidden * width; j++)
        packed[j] = 0;
    for (int gate = 0; gate < gates; gate++) {
        for (int64_t unit = 0; unit < hidden; unit++) {
            int64_t column = sdx_rnn_column(kind, gate, unit);
            int64_t wide = column < width / panel * panel                 ? panel
                           : column < width / (2 * lanes()) * 2 * lanes() ? 2 * lanes()
                                                                          : lanes();
            int64_t first = column / wide * wide;
            const float *from = r + (gate * hidden + unit) * hidden;
            float *to = packed + first * hidden + column - first;
            for (int64_t k = 0; k < hidden; k++)
                to[k * wide] = from[k];
        }
    }
}

void sdx_rnn_step_f32(const struct sdx_rnn_step *step)
{
    sdx_kernel_tables()->rnn.f32_step(step);
}
