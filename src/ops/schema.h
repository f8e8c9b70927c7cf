/* SPDX-License-Identifier: Apache-2.0
 * Facts of the standard: one row an operator and since-version, generated from the onnx package by
 * scripts/gen_schema.py into schema/onnx_schema.c; other domains by hand in
 * schema/contrib_schema.c. */
#ifndef SDX_OPS_SCHEMA_H
#define SDX_OPS_SCHEMA_H

#include "ir/ir.h"

/* Options of a formal parameter. */
enum {
    SDX_PARAM_SINGLE = 0,
    SDX_PARAM_OPTIONAL = 1,
    SDX_PARAM_VARIADIC = 2,
    SDX_PARAM_HETEROGENEOUS = 4
};

/* A set of value types: tensors by bit (1 << dtype); sequences, optionals of sequences/tensors,
 * sparse tensors likewise; maps as bits of `others`. 0 in all: anything. */
struct sdx_schema_types {
    uint32_t tensor, sequence, optional, optional_sequence, sparse;
    uint32_t others; /* SDX_TYPE_MAP_* bits, defined in schema.c's table of names */
};

struct sdx_schema_param {
    const char *name;
    uint16_t types;  /* index into sdx_schema_typesets */
    int8_t variable; /* parameters of a row with equal numbers >= 0 have the same type */
    uint8_t option;
};

struct sdx_schema_attr {
    const char *name;
    uint8_t type; /* enum sdx_attr_type */
    bool required;
};

struct sdx_schema {
    const char *domain, *name;
    int16_t since;
    bool deprecated, has_function, is_nondeterministic;
    int16_t inputs_min, outputs_min;
    int32_t inputs_max, outputs_max; /* INT32_MAX: variadic without end */
    uint16_t count_params_in, count_params_out, count_attrs;
    uint16_t params_in, params_out, attrs; /* first entry in the shared arrays */
};

extern const struct sdx_schema sdx_schemas[]; /* sorted by domain, name, since */
extern const int sdx_schema_count;
extern const struct sdx_schema_types sdx_schema_typesets[];
extern const struct sdx_schema_param sdx_schema_params[];
extern const struct sdx_schema_attr sdx_schema_attrs[];
extern const int sdx_schema_opset_newest; /* of ai.onnx: 28 */

/* The row in force for a version of the operator's domain; NULL: no such operator (then *known
 * tells, when not NULL, whether the name exists in another version). Contrib domains included. */
const struct sdx_schema *sdx_schema_find(struct sdx_str domain, struct sdx_str name, int64_t opset,
                                         bool *known);
/* Newest version of a domain that the table knows; 0: domain unknown. */
int64_t sdx_schema_domain_version(struct sdx_str domain);
/* All rows of both tables, i from 0; NULL past the end. */
const struct sdx_schema *sdx_schema_at(int i);
bool sdx_schema_allows(const struct sdx_schema_types *types, const struct sdx_type *type);
#endif
