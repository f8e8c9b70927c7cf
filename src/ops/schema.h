/* SPDX-License-Identifier: Apache-2.0
 * Facts of the standard: one row an operator and since-version, generated from the onnx package by
 * scripts/gen_schema.py into schema/onnx_schema.c; other domains are kept by hand in
 * schema/contrib.txt, which the generator reads too, so that all rows share their arrays. Rows hold
 * offsets and indices in place of pointers: no start of a program has to relocate them. */
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

/* Types that are none of tensor, sequence and optional of tensors. X(id, kind, key, value) in the
 * order of the bits; kind SDX_KIND_SEQUENCE: of such maps. */
#define SDX_SCHEMA_OTHERS(X)                                                                       \
    X(SDX_TYPE_MAP_I64_F32, SDX_KIND_MAP, SDX_I64, SDX_F32)                                        \
    X(SDX_TYPE_MAP_I64_F64, SDX_KIND_MAP, SDX_I64, SDX_F64)                                        \
    X(SDX_TYPE_MAP_I64_STRING, SDX_KIND_MAP, SDX_I64, SDX_STRING)                                  \
    X(SDX_TYPE_MAP_STRING_F32, SDX_KIND_MAP, SDX_STRING, SDX_F32)                                  \
    X(SDX_TYPE_MAP_STRING_F64, SDX_KIND_MAP, SDX_STRING, SDX_F64)                                  \
    X(SDX_TYPE_MAP_STRING_I64, SDX_KIND_MAP, SDX_STRING, SDX_I64)                                  \
    X(SDX_TYPE_SEQUENCE_MAP_I64_F32, SDX_KIND_SEQUENCE, SDX_I64, SDX_F32)                          \
    X(SDX_TYPE_SEQUENCE_MAP_STRING_F32, SDX_KIND_SEQUENCE, SDX_STRING, SDX_F32)

enum sdx_schema_other {
#define SDX_SCHEMA_OTHER_ENUM(id, kind, key, value) id,
    SDX_SCHEMA_OTHERS(SDX_SCHEMA_OTHER_ENUM)
#undef SDX_SCHEMA_OTHER_ENUM
};

/* A set of value types: tensors by bit (1 << ONNX's number of the element type); sequences of
 * tensors, optionals of tensors, optionals of sequences of tensors, sparse tensors likewise; bits
 * of enum sdx_schema_other. 0 in all: anything. */
struct sdx_schema_types {
    uint32_t tensor, sequence, optional, optional_sequence, sparse;
    uint32_t others;
};

struct sdx_schema_param {
    uint16_t name;   /* sdx_schema_str() */
    uint8_t types;   /* index into sdx_schema_typesets */
    int8_t variable; /* parameters of a row with equal numbers >= 0 have the same type */
    uint8_t option;
};

struct sdx_schema_attr {
    uint16_t name; /* sdx_schema_str() */
    uint8_t type;  /* enum sdx_attr_type */
    bool required;
};

/* inputs_max, outputs_max: variadic without end. */
enum { SDX_SCHEMA_WITHOUT_END = 255 };

struct sdx_schema {
    uint16_t name; /* sdx_schema_str() */
    int16_t since;
    uint16_t params_in, params_out, attrs; /* first entry in the shared arrays */
    uint8_t domain;                        /* index into sdx_schema_domains */
    uint8_t inputs_min, outputs_min;
    uint8_t inputs_max, outputs_max; /* read by sdx_schema_inputs_max(), sdx_schema_outputs_max() */
    uint8_t count_params_in, count_params_out, count_attrs;
    bool deprecated : 1, has_function : 1, is_nondeterministic : 1;
};

extern const struct sdx_schema sdx_schemas[]; /* sorted by domain, name, since */
extern const int sdx_schema_count;
extern const struct sdx_schema_types sdx_schema_typesets[];
extern const struct sdx_schema_param sdx_schema_params[];
extern const struct sdx_schema_attr sdx_schema_attrs[];
extern const char sdx_schema_text[];           /* all names, each ended by NUL */
extern const int sdx_schema_opset_newest;      /* of ai.onnx */
extern const int sdx_schema_ir_version_newest; /* of the file format */

struct sdx_schema_domain {
    const char *name;
    int newest;
};
extern const struct sdx_schema_domain sdx_schema_domains[]; /* by name; ends with name NULL */

/* The name at an offset that a row, a parameter or an attribute holds. */
static inline const char *sdx_schema_str(uint16_t at)
{
    return &sdx_schema_text[at];
}
/* "" for ai.onnx. */
static inline const char *sdx_schema_domain_name(const struct sdx_schema *schema)
{
    return sdx_schema_domains[schema->domain].name;
}
/* The largest number of inputs (outputs) of a node; INT32_MAX: variadic without end. */
static inline int32_t sdx_schema_inputs_max(const struct sdx_schema *schema)
{
    return schema->inputs_max == SDX_SCHEMA_WITHOUT_END ? INT32_MAX : schema->inputs_max;
}
static inline int32_t sdx_schema_outputs_max(const struct sdx_schema *schema)
{
    return schema->outputs_max == SDX_SCHEMA_WITHOUT_END ? INT32_MAX : schema->outputs_max;
}

/* The row in force for a version of the operator's domain; NULL: no such operator (then *known
 * tells, when not NULL, whether the name exists in another version). Domains "" and "ai.onnx" are
 * the same. */
const struct sdx_schema *sdx_schema_find(struct sdx_str domain, struct sdx_str name, int64_t opset,
                                         bool *known);
/* Newest version of a domain that the table knows; 0: domain unknown. */
int64_t sdx_schema_domain_version(struct sdx_str domain);
/* All rows, i from 0; NULL past the end. */
const struct sdx_schema *sdx_schema_at(int i);
/* The formal parameter that input (output) i of a node belongs to: the last one where it is
 * variadic. NULL: there is none. */
const struct sdx_schema_param *sdx_schema_input(const struct sdx_schema *schema, int i);
const struct sdx_schema_param *sdx_schema_output(const struct sdx_schema *schema, int i);
const struct sdx_schema_attr *sdx_schema_find_attr(const struct sdx_schema *schema,
                                                   struct sdx_str name); /* NULL: none */
/* Is the type, as far as it is known, in the set? */
bool sdx_schema_allows(const struct sdx_schema_types *types, const struct sdx_type *type);
#endif
