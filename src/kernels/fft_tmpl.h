/* SPDX-License-Identifier: Apache-2.0
 * The stages of a transform for one type: values V, a number or a vector of one number of each of
 * several lines; roots T; SUFFIX(name). Each includer defines them, once a type. A template: not
 * compiled by itself.
 *
 * Stage of factor p: from [l, p, r] to [p, l, r], l the product of the factors before, r what is
 * left; output j of a butterfly over p is turned by j k / (p r), k its place in r. */

static void SUFFIX(turn)(V *to, V re, V im, const T *w, bool inverse)
{
    to[0] = inverse ? re * w[0] - im * w[1] : re * w[0] + im * w[1];
    to[1] = inverse ? re * w[1] + im * w[0] : im * w[0] - re * w[1];
}

/* Where the values of a butterfly lie. */
struct SUFFIX(stage) {
    const V *from;
    V *to;
    const T *turns;
    int64_t l, r;
};

#define FROM(j) (s->from + 2 * (k + s->r * ((j) + p * i)))
#define TO(j)   (s->to + 2 * (k + s->r * (i + s->l * (j))))
#define PUT(j, re, im)                                                                             \
    do {                                                                                           \
        if (k == 0) {                                                                              \
            TO(j)[0] = (re);                                                                       \
            TO(j)[1] = (im);                                                                       \
        } else {                                                                                   \
            SUFFIX(turn)                                                                           \
            (TO(j), (re), (im), s->turns + 2 * (((j)-1) * (s->r - 1) + k - 1), inverse);           \
        }                                                                                          \
    } while (0)

static void SUFFIX(stage_2)(const struct SUFFIX(stage) * s, bool inverse)
{
    const int64_t p = 2;
    for (int64_t i = 0; i < s->l; i++)
        for (int64_t k = 0; k < s->r; k++) {
            const V *a = FROM(0), *b = FROM(1);
            V *sum = TO(0);
            sum[0] = a[0] + b[0];
            sum[1] = a[1] + b[1];
            PUT(1, a[0] - b[0], a[1] - b[1]);
        }
}

static void SUFFIX(stage_4)(const struct SUFFIX(stage) * s, bool inverse)
{
    const int64_t p = 4;
    T sign = inverse ? 1 : -1;
    for (int64_t i = 0; i < s->l; i++)
        for (int64_t k = 0; k < s->r; k++) {
            const V *a = FROM(0), *b = FROM(1), *c = FROM(2), *d = FROM(3);
            V even[2] = {a[0] + c[0], a[1] + c[1]}, odd[2] = {b[0] + d[0], b[1] + d[1]};
            V even_less[2] = {a[0] - c[0], a[1] - c[1]};
            V quarter[2] = {-sign * (b[1] - d[1]), sign * (b[0] - d[0])};
            TO(0)[0] = even[0] + odd[0];
            TO(0)[1] = even[1] + odd[1];
            PUT(1, even_less[0] + quarter[0], even_less[1] + quarter[1]);
            PUT(2, even[0] - odd[0], even[1] - odd[1]);
            PUT(3, even_less[0] - quarter[0], even_less[1] - quarter[1]);
        }
}

/* Sums and differences of the pairs (j, p - j) halve the products. */
static void SUFFIX(stage_odd)(const struct SUFFIX(stage) * s, int64_t p, const T *roots,
                              bool inverse)
{
    int64_t half = (p - 1) / 2;
    V sums[SDX_FFT_PRIME_MOST][2], less[SDX_FFT_PRIME_MOST][2];
    for (int64_t i = 0; i < s->l; i++)
        for (int64_t k = 0; k < s->r; k++) {
            const V *first = FROM(0);
            V all[2] = {first[0], first[1]};
            for (int64_t j = 1; j <= half; j++) {
                const V *a = FROM(j), *b = FROM(p - j);
                for (int c = 0; c < 2; c++) {
                    sums[j][c] = a[c] + b[c];
                    less[j][c] = a[c] - b[c];
                    all[c] += sums[j][c];
                }
            }
            V at[2] = {first[0], first[1]};
            TO(0)[0] = all[0];
            TO(0)[1] = all[1];
            for (int64_t u = 1; u <= half; u++) {
                V re[2] = {at[0], at[1]}, im[2] = {(V){0}, (V){0}};
                for (int64_t j = 1; j <= half; j++) {
                    const T *root = roots + 2 * (u * j % p);
                    T sine = inverse ? root[1] : -root[1];
                    re[0] += root[0] * sums[j][0];
                    re[1] += root[0] * sums[j][1];
                    im[0] += sine * less[j][1];
                    im[1] += sine * less[j][0];
                }
                PUT(u, re[0] - im[0], re[1] + im[1]);
                PUT(p - u, re[0] + im[0], re[1] - im[1]);
            }
        }
}

#undef FROM
#undef TO
#undef PUT

static void SUFFIX(transform)(const struct sdx_fft_stages *f, V *line, V *work, bool inverse)
{
    struct SUFFIX(stage) s = {.from = line, .to = work, .turns = f->turns, .l = 1, .r = f->n};
    const T *roots = f->roots;
    for (int i = 0; i < f->count_factors; i++) {
        int p = f->factors[i];
        s.r /= p;
        if (p == 2)
            SUFFIX(stage_2)(&s, inverse);
        else if (p == 4)
            SUFFIX(stage_4)(&s, inverse);
        else
            SUFFIX(stage_odd)(&s, p, roots, inverse);
        if (p & 1) roots += 2 * p;
        s.turns += 2 * (p - 1) * (s.r - 1);
        s.l *= p;
        V *to = s.to;
        s.to = to == line ? work : line;
        s.from = to;
    }
    if (s.from != line) memcpy(line, s.from, (size_t)f->n * 2 * sizeof *line);
}
