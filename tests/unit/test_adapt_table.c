/* SPDX-License-Identifier: Apache-2.0
 * The rows of the version converter against the schema table: each stands at a version of its
 * operator, and no change that loses something has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "convert/adapt.h"
#include "ops/schema.h"

static const struct sdx_schema *older(const struct sdx_schema *s)
{
    if (s->since <= 1) return NULL;
    return sdx_schema_find(sdx_str(sdx_schema_domain_name(s)), sdx_str(sdx_schema_str(s->name)),
                           s->since - 1, NULL);
}

/* What an operator had and its next version has not. */
static bool loses(const struct sdx_schema *was, const struct sdx_schema *is)
{
    for (int a = 0; a < was->count_attrs; a++) {
        const char *name = sdx_schema_str(sdx_schema_attrs[was->attrs + a].name);
        if (strcmp(name, "consumed_inputs") != 0 && !sdx_schema_find_attr(is, sdx_str(name)))
            return true;
    }
    return is->inputs_min > was->inputs_min ||
           sdx_schema_inputs_max(is) < sdx_schema_inputs_max(was) ||
           sdx_schema_outputs_max(is) < sdx_schema_outputs_max(was) ||
           (is->deprecated && !was->deprecated);
}

static bool is_standard(const struct sdx_schema *s)
{
    const char *domain = sdx_schema_domain_name(s);
    return domain[0] == 0 || strcmp(domain, "ai.onnx.ml") == 0;
}

static void changes_that_lose_have_rows(void **state)
{
    (void)state;
    int faults = 0;
    const struct sdx_schema *s;
    for (int i = 0; (s = sdx_schema_at(i)) != NULL; i++) {
        const struct sdx_schema *was = is_standard(s) ? older(s) : NULL;
        if (!was || !loses(was, s)) continue;
        const char *name = sdx_schema_str(s->name);
        /* The experimental ones of the first versions are refused. */
        if (strcmp(name, "DynamicSlice") == 0 || strcmp(name, "MeanVarianceNormalization") == 0)
            continue;
        const struct sdx_adapter *row =
            sdx_adapt_find(sdx_str(sdx_schema_domain_name(s)), sdx_str(name), s->since);
        if (row && row->up) continue;
        printf("%s %d: no row\n", name, s->since);
        faults++;
    }
    assert_int_equal(faults, 0);
}

/* Number of rows at the versions that exist, against the rows that there are. */
static void rows_stand_at_versions(void **state)
{
    (void)state;
    int faults = 0, found = 0;
    const struct sdx_adapter *rows;
    for (int ml = 0; ml < 2; ml++) {
        const struct sdx_str domain = ml ? SDX_STR("ai.onnx.ml") : SDX_STR("");
        int count = 0;
        rows = sdx_adapt_rows(domain, &count);
        for (int i = 0; i < count; i++, found++) {
            const struct sdx_schema *s =
                sdx_schema_find(domain, sdx_str(rows[i].op), rows[i].version, NULL);
            const bool stands = s && s->since == rows[i].version;
            /* Upsample and Scatter end where Resize and ScatterElements begin. */
            if (stands && (rows[i].up || rows[i].down)) continue;
            printf("%s %d: no such version\n", rows[i].op, rows[i].version);
            faults++;
        }
    }
    assert_int_equal(faults, 0);
    assert_true(found > 100);
}

static void defaults_stand_at_versions(void **state)
{
    (void)state;
    int count = 0, faults = 0;
    const struct sdx_adapt_default *rows = sdx_adapt_defaults(&count);
    for (int i = 0; i < count; i++) {
        struct sdx_str op = sdx_str(rows[i].op);
        const struct sdx_schema *s = sdx_schema_find(SDX_STR(""), op, rows[i].version, NULL);
        const bool is_new = s && s->since == rows[i].version &&
                            sdx_schema_find_attr(s, sdx_str(rows[i].attr)) && older(s) &&
                            !sdx_schema_find_attr(older(s), sdx_str(rows[i].attr));
        if (is_new) continue;
        printf("%s %d %s: is not new there\n", rows[i].op, rows[i].version, rows[i].attr);
        faults++;
    }
    assert_int_equal(faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_that_lose_have_rows),
                                       cmocka_unit_test(rows_stand_at_versions),
                                       cmocka_unit_test(defaults_stand_at_versions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
