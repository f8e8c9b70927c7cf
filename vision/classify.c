/* SPDX-License-Identifier: Apache-2.0
 * A classifier's output, turned into its best classes. */
#include <sardonyx/vision.h>

#include <math.h>

/* Probabilities: none negative or above 1, the sum within 1% of 1 (rounding of float16 outputs). */
static bool are_probabilities(const sdx_tensor *scores, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = sdx_tensor_f64(scores, i);
        if (!(v >= 0 && v <= 1.001)) return false;
        sum += v;
    }
    return fabs(sum - 1) < 0.01;
}

int sdx_classify_top(const sdx_tensor *scores, int top, sdx_class_score *out)
{
    int64_t count = sdx_tensor_count(scores);
    if (count > 1 << 24) count = 1 << 24;
    int kept = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = sdx_tensor_f64(scores, i);
        int at = kept < top ? kept++ : top;
        /* Insertion from behind; equal scores keep the order of their classes. */
        for (; at > 0 && v > out[at - 1].score; at--)
            if (at < top) out[at] = out[at - 1];
        if (at < top) out[at] = (sdx_class_score){(int)i, v};
    }
    if (kept == 0 || are_probabilities(scores, count)) return kept;
    double sum = 0, most = out[0].score;
    for (int64_t i = 0; i < count; i++)
        sum += exp(sdx_tensor_f64(scores, i) - most);
    for (int i = 0; i < kept; i++)
        out[i].score = exp(out[i].score - most) / sum;
    return kept;
}
