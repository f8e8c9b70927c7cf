/* SPDX-License-Identifier: Apache-2.0
 * Quicksort of what is wanted first, and sorting of all by digits. */
#include "ops/order.h"

static bool pair_less(struct sdx_pair a, struct sdx_pair b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static void pair_swap(struct sdx_pair *a, struct sdx_pair *b)
{
    struct sdx_pair t = *a;
    *a = *b;
    *b = t;
}

/* Max-heap: moves the pair at i down. */
static void heap_sift(struct sdx_pair *h, int64_t n, int64_t i)
{
    struct sdx_pair v = h[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && pair_less(h[child], h[child + 1])) child++;
        if (!pair_less(v, h[child])) break;
        h[i] = h[child];
    }
    h[i] = v;
}

static void heap_sort(struct sdx_pair *h, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        heap_sift(h, n, i);
    for (int64_t i = n - 1; i > 0; i--) {
        pair_swap(&h[0], &h[i]);
        heap_sift(h, i, 0);
    }
}

/* Splits around the median of three; returns where the pivot lies. */
static int64_t partition(struct sdx_pair *v, int64_t n)
{
    int64_t mid = n / 2;
    if (pair_less(v[mid], v[0])) pair_swap(&v[mid], &v[0]);
    if (pair_less(v[n - 1], v[mid])) pair_swap(&v[n - 1], &v[mid]);
    if (pair_less(v[mid], v[0])) pair_swap(&v[mid], &v[0]);
    pair_swap(&v[mid], &v[n - 2]);
    struct sdx_pair pivot = v[n - 2];
    int64_t i = 0, j = n - 2;
    for (;;) {
        while (pair_less(v[++i], pivot)) {
        }
        while (pair_less(pivot, v[--j])) {
        }
        if (i >= j) break;
        pair_swap(&v[i], &v[j]);
    }
    pair_swap(&v[i], &v[n - 2]);
    return i;
}

/* The k smallest pairs come first, sorted. Quicksort that leaves out what lies beyond k; heap sort
 * when it degenerates. */
static void sort_first(struct sdx_pair *v, int64_t n, int64_t k, int depth)
{
    while (n > 24 && k > 0) {
        if (depth-- == 0) {
            heap_sort(v, n);
            return;
        }
        int64_t at = partition(v, n);
        if (k > at + 1) sort_first(v + at + 1, n - at - 1, k - at - 1, depth);
        n = at;
        if (k > n) k = n;
    }
    for (int64_t i = 1; i < n && k > 0; i++) {
        struct sdx_pair p = v[i];
        int64_t j = i;
        for (; j > 0 && pair_less(p, v[j - 1]); j--)
            v[j] = v[j - 1];
        v[j] = p;
    }
}

static int sort_depth(int64_t n)
{
    int depth = 4;
    for (; n > 1; n /= 2)
        depth += 2;
    return depth;
}

void sdx_order_first(struct sdx_pair *v, int64_t n, int64_t k)
{
    sort_first(v, n, k, sort_depth(n));
}

/* Bits of a digit, of fewer pairs than FEW a smaller one: its places are counted in less time. A
 * comparison of new numbers is predicted wrongly every second time, so not many go by those. */
enum { DIGIT = 11, DIGITS = 1 << DIGIT, FEW = 2048, FEW_DIGIT = 8, SHORT = 64 };

static uint64_t digits_of(struct sdx_pair p, bool of_index)
{
    return of_index ? (uint64_t)p.index : p.key;
}

/* Digit after digit, the lowest first, of those that are not all equal. */
void sdx_order_all(struct sdx_pair *v, int64_t n, bool is_rising, struct sdx_pair *work)
{
    if (n <= SHORT) {
        sdx_order_first(v, n, n);
        return;
    }
    struct sdx_pair *from = v, *to = work;
    const int bits = n < FEW ? FEW_DIGIT : DIGIT, digits = 1 << bits;
    for (int of_index = !is_rising; of_index >= 0; of_index--) {
        uint64_t differ = 0;
        for (int64_t i = 1; i < n; i++)
            differ |= digits_of(from[i], of_index) ^ digits_of(from[0], of_index);
        for (int shift = 0; shift < 64; shift += bits) {
            const uint64_t mask = (uint64_t)digits - 1;
            int64_t place[DIGITS], sum = 0;
            if (!(differ >> shift & mask)) continue;
            memset(place, 0, (size_t)digits * sizeof *place);
            for (int64_t i = 0; i < n; i++)
                place[digits_of(from[i], of_index) >> shift & mask]++;
            for (int d = 0; d < digits; d++) {
                const int64_t count = place[d];
                place[d] = sum;
                sum += count;
            }
            for (int64_t i = 0; i < n; i++)
                to[place[digits_of(from[i], of_index) >> shift & mask]++] = from[i];
            struct sdx_pair *t = from;
            from = to;
            to = t;
        }
    }
    if (from != v) memcpy(v, from, (size_t)n * sizeof *v);
}
