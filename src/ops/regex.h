/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions in RE2's syntax: whole texts (RegexFullMatch; time is linear in the text) and
 * the leftmost longest place in one (Tokenizer): the set of all states is stepped through at once
 * (Thompson), nothing backtracks.
 *
 * Understood: literals, ".", classes with ranges, negation, [:posix:] names and \d \w \s \D \W \S,
 * groups (captures are not kept; names are allowed), alternatives, * + ? {n} {n,} {n,m} with lazy
 * forms, ^ $ \A \z \b \B, escapes \n \t \r \f \v \a \xHH \x{H..} \0oo \Q..\E and of punctuation,
 * flags i m s U. Not understood, and reported: \p classes, \C. */
#ifndef SDX_OPS_REGEX_H
#define SDX_OPS_REGEX_H

#include "base/context.h"
#include "base/mem.h"
#include "base/str.h"

struct sdx_regex;
/* In `arena`. Fails with what is wrong in the pattern. */
SDX_MUST_CHECK enum sdx_status sdx_regex_create(struct sdx_context *cx, struct sdx_arena *arena,
                                                struct sdx_str pattern, struct sdx_regex **out);
/* Bytes of working memory that a match needs. */
size_t sdx_regex_scratch(const struct sdx_regex *re);
bool sdx_regex_match(const struct sdx_regex *re, struct sdx_str text, void *scratch);
/* The first match that begins at or after `from`, the longest there. */
bool sdx_regex_find(const struct sdx_regex *re, struct sdx_str text, size_t from, void *scratch,
                    size_t *begin, size_t *end);
#endif
