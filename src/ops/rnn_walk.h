/* SPDX-License-Identifier: Apache-2.0
 * The walk of RNN, GRU and LSTM over time: its sizes, its order, where rows are, its parts. */
#ifndef SDX_OPS_RNN_WALK_H
#define SDX_OPS_RNN_WALK_H

#include "ops/op.h"

enum { SDX_RNN_ROWS = 64 }; /* of a part that nothing keeps together, at most */

struct sdx_rnn_walk {
    int64_t seq, batch, input, hidden, gates;
    int directions;
    bool is_reverse, batch_first;
    bool rounds; /* DynamicQuantizeLSTM: the states of all entries before a product share a scale */
    int64_t rows_a_part, blocks; /* of batch entries; sdx_rnn_split_batch() */
};

/* Row of X and its products; of Y; of a state. */
static inline int64_t sdx_rnn_input_at(const struct sdx_rnn_walk *w, int64_t time, int64_t entry)
{
    return w->batch_first ? entry * w->seq + time : time * w->batch + entry;
}
static inline int64_t sdx_rnn_output_at(const struct sdx_rnn_walk *w, int64_t time, int direction,
                                        int64_t entry)
{
    return w->batch_first ? (entry * w->seq + time) * w->directions + direction
                          : (time * w->directions + direction) * w->batch + entry;
}
static inline int64_t sdx_rnn_state_at(const struct sdx_rnn_walk *w, int direction, int64_t entry)
{
    return w->batch_first ? entry * w->directions + direction : direction * w->batch + entry;
}

/* Parts of the walk: batch entries, `rows` at most, for the work of a part to be worth a thread;
 * not fewer than share a pass over the recurrent weights. */
static inline void sdx_rnn_split_batch(struct sdx_rnn_walk *w, int64_t rows)
{
    enum { ROWS_LEAST = 3 };
    const double work = (double)w->seq * (double)w->batch * (double)w->hidden * (double)w->hidden *
                        (double)w->gates;
    const int64_t most = w->batch / ROWS_LEAST < 16 ? w->batch / ROWS_LEAST : 16;
    const int64_t blocks = w->rounds ? 1 : sdx_prepare_parts(work, 1 << 20, most);
    w->rows_a_part = (w->batch + blocks - 1) / blocks;
    if (w->rows_a_part > rows) w->rows_a_part = rows;
    w->blocks = (w->batch + w->rows_a_part - 1) / w->rows_a_part;
}
#endif
