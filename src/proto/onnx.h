/* SPDX-License-Identifier: Apache-2.0
 * The ONNX messages (onnx.proto, IR version 13) as structs read in place: strings and byte blocks
 * are views into the mapped file, repeated fields are arrays in the model's arena. Fields that we
 * do not know are kept as byte spans, in order, and written back, so that read-write-read is equal.
 */
#ifndef SDX_PROTO_ONNX_H
#define SDX_PROTO_ONNX_H

#include "base/file.h"
#include "tensor/tensor.h"

/* Presence: a string was given when its ptr is not NULL, a number when it is not 0 or its `has_`
 * flag is set (zeros are written back when they were given). */

/* Everything that came from one message but has no member of its own: whole fields with their tags.
 */
struct sdx_onnx_unknown {
    struct sdx_str *spans;
    int32_t count;
};

struct sdx_onnx_pair {
    struct sdx_str key, value;
    struct sdx_onnx_unknown unknown;
};
struct sdx_onnx_pairs {
    struct sdx_onnx_pair *at;
    int32_t count;
};
struct sdx_onnx_strings {
    struct sdx_str *at;
    int32_t count;
};
struct sdx_onnx_ints {
    int64_t *at;
    int64_t count;
};

struct sdx_onnx_tensor {
    struct sdx_str name, doc;
    struct sdx_onnx_ints dims;
    int32_t data_type;
    bool has_data_type, has_raw, has_location, has_segment, has_segment_begin, has_segment_end;
    struct sdx_str raw; /* raw_data */
    /* Typed fields, decoded into the arena (NULL when absent). */
    float *float_data;
    int64_t count_float;
    int64_t *int32_data;
    int64_t count_int32; /* as stored: sign-extended varints */
    int64_t *int64_data;
    int64_t count_int64;
    double *double_data;
    int64_t count_double;
    uint64_t *uint64_data;
    int64_t count_uint64;
    struct sdx_onnx_strings strings;
    int64_t segment_begin, segment_end;
    int32_t data_location; /* 0 default, 1 external */
    struct sdx_onnx_pairs external;
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_unknown unknown, unknown_segment;
};
struct sdx_onnx_tensors {
    struct sdx_onnx_tensor *at;
    int32_t count;
};

struct sdx_onnx_sparse {
    struct sdx_onnx_tensor *values, *indices; /* NULL when absent */
    struct sdx_onnx_ints dims;
    struct sdx_onnx_unknown unknown;
};
struct sdx_onnx_sparses {
    struct sdx_onnx_sparse *at;
    int32_t count;
};

struct sdx_onnx_dim {
    enum { SDX_DIM_NONE, SDX_DIM_VALUE, SDX_DIM_PARAM } which;
    int64_t value;
    struct sdx_str param, denotation;
    struct sdx_onnx_unknown unknown;
};

struct sdx_onnx_type {
    enum {
        SDX_TYPE_NONE,
        SDX_TYPE_TENSOR,
        SDX_TYPE_SEQUENCE,
        SDX_TYPE_MAP,
        SDX_TYPE_OPTIONAL,
        SDX_TYPE_SPARSE,
        SDX_TYPE_OPAQUE
    } which;
    int32_t elem_type; /* tensor, sparse; map: key type */
    bool has_elem_type, has_shape;
    struct sdx_onnx_dim *dims;
    int32_t rank;
    struct sdx_onnx_type *elem; /* sequence, optional; map: value type; NULL when absent */
    struct sdx_str denotation, opaque_domain, opaque_name;
    struct sdx_onnx_unknown unknown, unknown_inner, unknown_shape;
};

struct sdx_onnx_value_info {
    struct sdx_str name, doc;
    struct sdx_onnx_type *type; /* NULL when absent */
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_unknown unknown;
};
struct sdx_onnx_value_infos {
    struct sdx_onnx_value_info *at;
    int32_t count;
};

struct sdx_onnx_graph;
struct sdx_onnx_attr {
    struct sdx_str name, doc, ref; /* ref: ref_attr_name, inside functions */
    int32_t type;                  /* as stored; 0 when absent (models before IR version 3) */
    bool has_type, has_f, has_i, has_s;
    float f;
    int64_t i;
    struct sdx_str s;
    struct sdx_onnx_tensor *t;
    struct sdx_onnx_graph *g;
    struct sdx_onnx_sparse *sparse;
    struct sdx_onnx_type *tp;
    float *floats;
    int64_t count_floats;
    struct sdx_onnx_ints ints;
    struct sdx_onnx_strings strings;
    struct sdx_onnx_tensors tensors;
    struct sdx_onnx_graph *graphs;
    int32_t count_graphs;
    struct sdx_onnx_sparses sparses;
    struct sdx_onnx_type *types;
    int32_t count_types;
    struct sdx_onnx_unknown unknown;
};
struct sdx_onnx_attrs {
    struct sdx_onnx_attr *at;
    int32_t count;
};

struct sdx_onnx_node {
    struct sdx_str name, op_type, domain, overload, doc;
    struct sdx_onnx_strings inputs, outputs;
    struct sdx_onnx_attrs attrs;
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_unknown unknown; /* device_configurations among them */
};
struct sdx_onnx_nodes {
    struct sdx_onnx_node *at;
    int32_t count;
};

struct sdx_onnx_quant {
    struct sdx_str tensor_name;
    struct sdx_onnx_pairs pairs;
    struct sdx_onnx_unknown unknown;
};

struct sdx_onnx_graph {
    struct sdx_str name, doc;
    struct sdx_onnx_nodes nodes;
    struct sdx_onnx_tensors initializers;
    struct sdx_onnx_sparses sparse_initializers;
    struct sdx_onnx_value_infos inputs, outputs, values;
    struct sdx_onnx_quant *quants;
    int32_t count_quants;
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_unknown unknown;
};

struct sdx_onnx_opset {
    struct sdx_str domain;
    int64_t version;
    bool has_version;
    struct sdx_onnx_unknown unknown;
};
struct sdx_onnx_opsets {
    struct sdx_onnx_opset *at;
    int32_t count;
};

struct sdx_onnx_function {
    struct sdx_str name, domain, overload, doc;
    struct sdx_onnx_strings inputs, outputs, attr_names;
    struct sdx_onnx_attrs attrs; /* attribute_proto: attributes with defaults */
    struct sdx_onnx_nodes nodes;
    struct sdx_onnx_opsets opsets;
    struct sdx_onnx_value_infos values;
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_unknown unknown;
};

struct sdx_onnx_model {
    int64_t ir_version, model_version;
    bool has_ir_version, has_model_version;
    struct sdx_str producer, producer_version, domain, doc;
    struct sdx_onnx_opsets opsets;
    struct sdx_onnx_graph *graph; /* NULL when absent */
    struct sdx_onnx_pairs metadata;
    struct sdx_onnx_function *functions;
    int32_t count_functions;
    struct sdx_onnx_unknown unknown; /* training_info, configuration among them */
};

/* Bounds of the reader; what exceeds them is refused with a line that names the bound. */
enum { SDX_ONNX_DEPTH_MAX = 100 }; /* nested messages, as protobuf's own readers allow */

/* Parses a ModelProto. Everything in *out points into `arena` or `bytes`, which must outlive it.
 * Fails on: wire faults (with byte offset), a length past its parent, a field of the wrong wire
 * type, group wire types, field number 0, depth, names with NUL or invalid UTF-8. What the standard
 * calls invalid beyond that is the checker's. */
SDX_MUST_CHECK enum sdx_status sdx_onnx_read_model(struct sdx_context *cx, struct sdx_arena *arena,
                                                   const void *bytes, size_t size,
                                                   struct sdx_onnx_model **out);
SDX_MUST_CHECK enum sdx_status sdx_onnx_read_tensor(struct sdx_context *cx, struct sdx_arena *arena,
                                                    const void *bytes, size_t size,
                                                    struct sdx_onnx_tensor **out);
/* Writes a model, every message's fields by rising number, the unknown ones last. */
SDX_MUST_CHECK enum sdx_status sdx_onnx_write_model(struct sdx_context *cx,
                                                    const struct sdx_onnx_model *model,
                                                    struct sdx_file_writer *to);
/* The same bytes at the end of `to`. */
SDX_MUST_CHECK enum sdx_status sdx_onnx_write_model_text(struct sdx_context *cx,
                                                         const struct sdx_onnx_model *model,
                                                         struct sdx_text *to);
#endif
