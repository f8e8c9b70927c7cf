/* SPDX-License-Identifier: Apache-2.0
 * Searches of sequences: the rules of the next token, greed, beams that end and are kept. */
#include "unit.h"

#include "ops/beams.h"

enum { VOCAB = 5, END = 4, PAD = 3, MOST = 8 };

static struct sdx_beams start(struct sdx_context *cx, int64_t batch, int64_t width)
{
    struct sdx_beams b = {.cx = cx,
                          .batch = batch,
                          .width = width,
                          .most = MOST,
                          .length = 2,
                          .length_penalty = 1,
                          .rules = {.repetition = 1, .temperature = 1, .end = END, .pad = PAD}};
    assert_int_equal(sdx_beams_init(&b), SDX_OK);
    assert_int_equal(sdx_beams_set_vocab(&b, VOCAB), SDX_OK);
    for (int64_t r = 0; r < b.rows; r++) {
        b.sequences[r * MOST] = 1;
        b.sequences[r * MOST + 1] = 2;
    }
    return b;
}

static void give(struct sdx_beams *b, const float *logits)
{
    for (int64_t r = 0; r < b->rows; r++)
        memcpy(b->scores + r * VOCAB, logits, VOCAB * sizeof *logits);
}

static void test_greed(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    struct sdx_beams b = start(cx, 1, 1);
    const float logits[VOCAB] = {1, 5, 4, 0, 3};
    give(&b, logits);
    assert_int_equal(sdx_beams_advance_greedy(&b, 1, NULL), SDX_OK);
    assert_int_equal(b.sequences[2], 1);
    b.rules.ngram = 2; /* 1 2 was there: 2 may not come after 1 */
    b.rules.repetition = 10;
    give(&b, logits);
    assert_int_equal(sdx_beams_advance_greedy(&b, 2, NULL), SDX_OK);
    assert_int_equal(b.sequences[3], PAD); /* the end is the best of what is left */
    assert_true(sdx_beams_all_done(&b));
    sdx_beams_deinit(&b);
    unit_deinit(&unit);
}

static void test_masks(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    struct sdx_beams b = start(cx, 1, 1);
    const int32_t words[VOCAB] = {1, 0, 1, 1, 1}, first[VOCAB] = {1, 1, 0, 1, 1};
    const float logits[VOCAB] = {1, 9, 8, 0, 7};
    b.rules.words = words;
    b.rules.first_words = first;
    b.rules.min_length = 3;
    give(&b, logits);
    assert_int_equal(sdx_beams_advance_greedy(&b, 1, NULL), SDX_OK);
    assert_int_equal(b.sequences[2], 0); /* no word, not first, too early to end */
    give(&b, logits);
    assert_int_equal(sdx_beams_advance_greedy(&b, 2, NULL), SDX_OK);
    assert_int_equal(b.sequences[3], 2);
    sdx_beams_deinit(&b);
    unit_deinit(&unit);
}

static void test_beams(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    struct sdx_beams b = start(cx, 1, 2);
    const float logits[VOCAB] = {4, 3, 0, 0, 3.5f};
    int32_t sequences[2 * MOST];
    float scores[2];
    give(&b, logits);
    assert_int_equal(sdx_beams_advance(&b, 1), SDX_OK);
    assert_int_equal(b.sequences[2], 0); /* from the first beam only, */
    assert_int_equal(b.sequences[MOST + 2], 1);
    assert_int_equal(b.count_found[0], 1); /* and its end is kept */
    give(&b, logits);
    assert_int_equal(sdx_beams_advance(&b, 2), SDX_OK);
    assert_int_equal(b.count_found[0], 2);
    sdx_beams_finish(&b, 2, sequences, scores);
    assert_true(scores[0] >= scores[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sequences[i * MOST], 1);
        assert_int_equal(sequences[i * MOST + 1], 2);
        assert_int_equal(sequences[i * MOST + MOST - 1], PAD);
    }
    sdx_beams_deinit(&b);
    unit_deinit(&unit);
}

static void test_vocabulary(void **state)
{
    (void)state;
    struct unit unit;
    unit_init(&unit);
    struct sdx_context *cx = &unit.cx;
    struct sdx_beams b = start(cx, 1, 1);
    sdx_beams_deinit(&b);
    struct sdx_beams small = {.cx = cx, .batch = 1, .width = 1, .most = 2, .rules = {.end = END}};
    assert_int_equal(sdx_beams_init(&small), SDX_OK);
    assert_int_equal(sdx_beams_set_vocab(&small, END), SDX_RUN_FAILED);
    sdx_beams_deinit(&small);
    unit_deinit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greed),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_beams),
        cmocka_unit_test(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
