/* SPDX-License-Identifier: Apache-2.0
 * The checker of nodes: operator, version, arity, names, attributes, bodies. */
#include "ops/check_messages.h"
#include "ops/custom.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static const char *const attr_type_names[] = {
    "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};

static const char *attr_type_name(int32_t type)
{
    return type >= 0 && type < SDX_COUNT_OF(attr_type_names) ? attr_type_names[type] : "unknown";
}

static struct sdx_check_place node_place(const struct sdx_check_place *outer,
                                         const struct sdx_onnx_node *node)
{
    bool named = node->name.len > 0 || node->outputs.count == 0;
    return (struct sdx_check_place){.outer = outer,
                                    .what = named ? "node" : "node of",
                                    .name = named ? node->name : node->outputs.at[0],
                                    .op = node->op_type};
}

static int count_fields(const struct sdx_onnx_attr *attr)
{
    return attr->has_f + attr->has_i + attr->has_s + (attr->t != NULL) + (attr->g != NULL) +
           (attr->sparse != NULL) + (attr->tp != NULL) + (attr->count_floats > 0) +
           (attr->ints.count > 0) + (attr->strings.count > 0) + (attr->tensors.count > 0) +
           (attr->count_graphs > 0) + (attr->sparses.count > 0) + (attr->count_types > 0);
}

/* Does the field that is set belong to the type? */
static bool field_fits(const struct sdx_onnx_attr *attr)
{
    struct sdx_onnx_attr untyped = *attr;
    untyped.type = SDX_ATTR_UNDEFINED;
    int32_t found = sdx_ir_attr_infer_type(&untyped);
    return found == SDX_ATTR_UNDEFINED || found == attr->type;
}

static void check_attr_contents(struct sdx_check *c, const struct sdx_check_place *place,
                                const struct sdx_check_scope *scope,
                                const struct sdx_onnx_attr *attr)
{
    if (attr->t) sdx_check_tensor(c, place, attr->t);
    if (attr->sparse) sdx_check_sparse(c, place, attr->sparse);
    if (attr->tp) sdx_check_type(c, place, attr->tp);
    if (attr->g) sdx_check_graph(c, place, scope, attr->g);
    for (int32_t i = 0; i < attr->tensors.count; i++)
        sdx_check_tensor(c, place, &attr->tensors.at[i]);
    for (int32_t i = 0; i < attr->sparses.count; i++)
        sdx_check_sparse(c, place, &attr->sparses.at[i]);
    for (int32_t i = 0; i < attr->count_types; i++)
        sdx_check_type(c, place, &attr->types[i]);
    for (int32_t i = 0; i < attr->count_graphs; i++)
        sdx_check_graph(c, place, scope, &attr->graphs[i]);
}

static bool declares_attr(const struct sdx_onnx_function *function, struct sdx_str name)
{
    for (int32_t i = 0; i < function->attr_names.count; i++)
        if (sdx_str_equal(function->attr_names.at[i], name)) return true;
    for (int32_t i = 0; i < function->attrs.count; i++)
        if (sdx_str_equal(function->attrs.at[i].name, name)) return true;
    return false;
}

static void check_reference(struct sdx_check *c, const struct sdx_check_place *place,
                            const struct sdx_onnx_attr *attr, int fields)
{
    if (!c->function)
        sdx_check_fault(c, place, "refers to attribute \"%.*s\" outside of a function",
                        SDX_STR_ARG(attr->ref));
    else if (!declares_attr(c->function, attr->ref))
        sdx_check_fault(c, place,
                        "refers to attribute \"%.*s\", which the function does not declare",
                        SDX_STR_ARG(attr->ref));
    else if (fields > 0)
        sdx_check_fault(c, place, "has a value and refers to attribute \"%.*s\", expected one",
                        SDX_STR_ARG(attr->ref));
}

/* What holds for an attribute whatever the operator. */
static void check_attr(struct sdx_check *c, const struct sdx_check_place *outer,
                       const struct sdx_check_scope *scope, const struct sdx_onnx_attr *attr)
{
    struct sdx_check_place place = {.outer = outer, .what = "attribute", .name = attr->name};
    int fields = count_fields(attr);
    if (attr->name.len == 0) sdx_check_fault(c, outer, "an attribute has no name");
    if (attr->type < 0 || attr->type > SDX_ATTR_TYPES)
        sdx_check_fault(c, &place, "type is %d, expected 1 to %d", attr->type, SDX_ATTR_TYPES);
    else if (fields > 1)
        sdx_check_fault(c, &place, "%d value fields are set, expected one", fields);
    else if (attr->ref.len > 0)
        check_reference(c, &place, attr, fields);
    else if (attr->type == SDX_ATTR_UNDEFINED && fields == 0)
        sdx_check_fault(c, &place, "has neither a type nor a value");
    else if (attr->type == SDX_ATTR_UNDEFINED && c->model->ir_version >= 2)
        sdx_check_fault(c, &place, "has no type, expected one from IR version 2 on");
    else if (attr->type != SDX_ATTR_UNDEFINED && !field_fits(attr))
        sdx_check_fault(c, &place, "type is %s, but the value field of another type is set",
                        attr_type_name(attr->type));
    else if ((attr->type == SDX_ATTR_TENSOR && !attr->t) ||
             (attr->type == SDX_ATTR_GRAPH && !attr->g) ||
             (attr->type == SDX_ATTR_SPARSE && !attr->sparse) ||
             (attr->type == SDX_ATTR_TYPE && !attr->tp))
        sdx_check_fault(c, &place, "type is %s, but there is no value", attr_type_name(attr->type));
    check_attr_contents(c, &place, scope, attr);
}

static bool is_private(struct sdx_str name)
{
    return name.len >= 4 && memcmp(name.ptr, "__", 2) == 0 &&
           memcmp(name.ptr + name.len - 2, "__", 2) == 0;
}

static void check_schema_attrs(struct sdx_check *c, const struct sdx_check_place *place,
                               const struct sdx_schema *schema, const struct sdx_onnx_node *node)
{
    for (int32_t i = 0; i < node->attrs.count; i++) {
        const struct sdx_onnx_attr *attr = &node->attrs.at[i];
        const struct sdx_schema_attr *fact = sdx_schema_find_attr(schema, attr->name);
        int32_t type = sdx_ir_attr_infer_type(attr);
        if (!fact && !is_private(attr->name))
            sdx_check_fault(c, place, "attribute %.*s is unknown in version %d of the operator",
                            SDX_STR_ARG(attr->name), schema->since);
        /* A list that is empty has no field to tell its type in files without types. */
        if (fact && type != SDX_ATTR_UNDEFINED && type != fact->type)
            sdx_check_fault(c, place, "attribute %.*s is of type %s, expected %s",
                            SDX_STR_ARG(attr->name), attr_type_name(type),
                            attr_type_name(fact->type));
    }
    for (int i = 0; i < schema->count_attrs; i++) {
        const struct sdx_schema_attr *fact = &sdx_schema_attrs[schema->attrs + i];
        const char *name = sdx_schema_str(fact->name);
        bool given = !fact->required;
        for (int32_t k = 0; k < node->attrs.count && !given; k++)
            given = sdx_str_is(node->attrs.at[k].name, name);
        if (!given) sdx_check_fault(c, place, "required attribute %s is missing", name);
    }
}

static void check_count(struct sdx_check *c, const struct sdx_check_place *place, const char *what,
                        int32_t count, int32_t least, int32_t most)
{
    char bound[64];
    if (count >= least && count <= most) return;
    if (least == most)
        snprintf(bound, sizeof(bound), "%d", least);
    else if (most == INT32_MAX)
        snprintf(bound, sizeof(bound), "at least %d", least);
    else
        snprintf(bound, sizeof(bound), "%d to %d", least, most);
    sdx_check_fault(c, place, "has %d %s, expected %s", count, what, bound);
}

static void check_arity(struct sdx_check *c, const struct sdx_check_place *place,
                        const struct sdx_schema *schema, const struct sdx_onnx_node *node)
{
    check_count(c, place, "inputs", node->inputs.count, schema->inputs_min,
                sdx_schema_inputs_max(schema));
    check_count(c, place, "outputs", node->outputs.count, schema->outputs_min,
                sdx_schema_outputs_max(schema));
    for (int32_t i = 0; i < node->inputs.count; i++) {
        const struct sdx_schema_param *param = sdx_schema_input(schema, i);
        const bool is_needed =
            param && (param->option == SDX_PARAM_SINGLE ||
                      (c->faults->is_strict && param->option & SDX_PARAM_VARIADIC));
        if (is_needed && node->inputs.at[i].len == 0)
            sdx_check_fault(c, place, "input %s is left out, but it is required",
                            sdx_schema_str(param->name));
    }
    for (int32_t i = 0; i < node->outputs.count; i++) {
        const struct sdx_schema_param *param = sdx_schema_output(schema, i);
        if (param && param->option == SDX_PARAM_SINGLE && node->outputs.at[i].len == 0)
            sdx_check_fault(c, place, "output %s is left out, but it is required",
                            sdx_schema_str(param->name));
    }
}

/* Version imported for a domain: a function's own import, else the model's. false: none. */
static bool find_opset(const struct sdx_check *c, struct sdx_str domain, int64_t *version)
{
    const struct sdx_onnx_opsets *own = c->function ? &c->function->opsets : &c->model->opsets;
    const struct sdx_onnx_opsets *lists[] = {own, &c->model->opsets};
    for (int k = 0; k < SDX_COUNT_OF(lists); k++)
        for (int32_t i = 0; i < lists[k]->count; i++)
            if (sdx_str_equal(sdx_ir_domain(lists[k]->at[i].domain), domain)) {
                *version = lists[k]->at[i].version;
                return true;
            }
    *version = 1;
    return domain.len == 0 && c->model->ir_version < 3;
}

/* An operator whose first version is marked deprecated was so marked long after models had it
 * (GroupNormalization of version 18): they are valid. */
static bool had_version_before(struct sdx_str domain, const struct sdx_schema *schema)
{
    bool known = false;
    return sdx_schema_find(domain, sdx_str(sdx_schema_str(schema->name)), schema->since - 1,
                           &known) != NULL;
}

static void check_operator(struct sdx_check *c, const struct sdx_check_place *place,
                           const struct sdx_onnx_node *node, int64_t opset)
{
    struct sdx_str domain = sdx_ir_domain(node->domain);
    bool known = false;
    const struct sdx_schema *schema = sdx_schema_find(domain, node->op_type, opset, &known);
    struct sdx_str shown = domain.len ? domain : SDX_STR("ai.onnx");
    if (!schema) {
        if (known)
            sdx_check_fault(c, place, "the operator is not yet in version %" PRId64 " of %.*s",
                            opset, SDX_STR_ARG(shown));
        else if (sdx_check_is_standard(domain))
            sdx_check_fault(c, place, "%.*s has no such operator", SDX_STR_ARG(shown));
        return;
    }
    if (schema->deprecated && had_version_before(domain, schema)) {
        sdx_check_fault(c, place, "the operator is deprecated since version %d of %.*s",
                        schema->since, SDX_STR_ARG(shown));
        return;
    }
    check_arity(c, place, schema, node);
    check_schema_attrs(c, place, schema, node);
}

static void check_left_out(struct sdx_check *c, const struct sdx_check_place *place,
                           const char *what, const struct sdx_onnx_strings *names,
                           uint64_t optional)
{
    for (int32_t i = 0; i < names->count; i++)
        if (names->at[i].len == 0 && !(i < 64 && optional >> i & 1))
            sdx_check_fault(c, place, "%s %d is left out, but it is required", what, i);
}

static void check_custom(struct sdx_check *c, const struct sdx_check_place *place,
                         const struct sdx_custom_op *op, const struct sdx_onnx_node *node)
{
    check_count(c, place, "inputs", node->inputs.count, op->inputs_min, op->inputs_max);
    check_count(c, place, "outputs", node->outputs.count, op->outputs_min, op->outputs_max);
    check_left_out(c, place, "input", &node->inputs, op->inputs_optional);
    check_left_out(c, place, "output", &node->outputs, op->outputs_optional);
}

static void check_call(struct sdx_check *c, const struct sdx_check_place *place,
                       const struct sdx_onnx_node *node, const struct sdx_onnx_function *function)
{
    check_count(c, place, "inputs", node->inputs.count, 0, function->inputs.count);
    check_count(c, place, "outputs", node->outputs.count, 0, function->outputs.count);
    for (int32_t i = 0; i < node->attrs.count; i++)
        if (!declares_attr(function, node->attrs.at[i].name))
            sdx_check_fault(c, place, "function \"%.*s\" has no attribute %.*s",
                            SDX_STR_ARG(function->name), SDX_STR_ARG(node->attrs.at[i].name));
}

/* Is the name, which is visible, made only after the place where we are? */
static bool is_later(const struct sdx_check_scope *scope, struct sdx_str name)
{
    for (; scope; scope = scope->outer) {
        const int32_t order = sdx_map_get(&scope->names, name);
        if (order >= 0 && order <= scope->node) return false;
    }
    return true;
}

static void check_names(struct sdx_check *c, const struct sdx_check_place *place,
                        const struct sdx_check_scope *scope, const struct sdx_onnx_node *node)
{
    for (int32_t i = 0; i < node->inputs.count; i++) {
        struct sdx_str name = node->inputs.at[i];
        if (name.len > 0 && !sdx_check_is_visible(scope, name))
            sdx_check_fault(c, place, "input \"%.*s\" is not defined", SDX_STR_ARG(name));
        else if (name.len > 0 && c->faults->is_strict && is_later(scope, name))
            sdx_check_fault(c, place, "input \"%.*s\" is made by this node or a later one",
                            SDX_STR_ARG(name));
    }
    /* A name of a graph around is taken when it is made before the node that holds this body. */
    for (int32_t i = 0; i < node->outputs.count; i++) {
        struct sdx_str name = node->outputs.at[i];
        for (const struct sdx_check_scope *outer = scope->outer; outer && name.len;
             outer = outer->outer) {
            int32_t order = sdx_map_get(&outer->names, name);
            if (order < 0 || order > outer->node) continue;
            sdx_check_fault(c, place, "output \"%.*s\" shadows a value of a graph around it",
                            SDX_STR_ARG(name));
            break;
        }
    }
}

static void check_attrs(struct sdx_check *c, const struct sdx_check_place *place,
                        const struct sdx_check_scope *scope, const struct sdx_onnx_node *node)
{
    if (node->attrs.count > SDX_CHECK_LIST_MAX) {
        sdx_check_fault(c, place, "has %d attributes, expected at most %d", node->attrs.count,
                        SDX_CHECK_LIST_MAX);
        return;
    }
    for (int32_t i = 0; i < node->attrs.count; i++) {
        const struct sdx_onnx_attr *attr = &node->attrs.at[i];
        bool repeated = false;
        for (int32_t k = 0; k < i && !repeated; k++)
            repeated = sdx_str_equal(node->attrs.at[k].name, attr->name);
        if (repeated)
            sdx_check_fault(c, place, "attribute %.*s is given twice", SDX_STR_ARG(attr->name));
        check_attr(c, place, scope, attr);
    }
}

static void check_node(struct sdx_check *c, const struct sdx_check_place *outer,
                       const struct sdx_check_scope *scope, const struct sdx_onnx_node *node)
{
    struct sdx_check_place place = node_place(outer, node);
    struct sdx_str domain = sdx_ir_domain(node->domain);
    int64_t opset = 0;
    bool imported = find_opset(c, domain, &opset);
    check_names(c, &place, scope, node);
    check_attrs(c, &place, scope, node);
    int32_t function = sdx_check_find_function(c, node->domain, node->op_type, node->overload);
    const struct sdx_custom_row *custom =
        sdx_customs_find(c->faults->customs, domain, node->op_type, imported ? opset : 0);
    if (node->op_type.len == 0)
        sdx_check_fault(c, &place, "has no operator type");
    else if (node->inputs.count == 0 && node->outputs.count == 0)
        sdx_check_fault(c, &place, "has neither inputs nor outputs");
    else if (custom && function < 0)
        check_custom(c, &place, &custom->given, node);
    else if (!imported && (domain.len > 0 || c->model->opsets.count > 0))
        sdx_check_fault(c, &place, "domain \"%.*s\" is not imported", SDX_STR_ARG(domain));
    else if (function >= 0)
        check_call(c, &place, node, &c->model->functions[function]);
    else if (imported && opset > 0)
        check_operator(c, &place, node, opset);
}

void sdx_check_nodes(struct sdx_check *c, const struct sdx_check_place *place,
                     struct sdx_check_scope *scope, const struct sdx_onnx_nodes *nodes)
{
    for (int32_t n = 0; n < nodes->count; n++) {
        const struct sdx_onnx_node *node = &nodes->at[n];
        struct sdx_check_place at = node_place(place, node);
        for (int32_t i = 0; i < node->outputs.count; i++) {
            struct sdx_str name = node->outputs.at[i];
            if (name.len > 0 && !sdx_check_declare(c, scope, name, n + 1))
                sdx_check_fault(c, &at, "output \"%.*s\" is defined twice", SDX_STR_ARG(name));
        }
    }
    for (int32_t n = 0; n < nodes->count && !c->out_of_memory; n++) {
        scope->node = n;
        check_node(c, place, scope, &nodes->at[n]);
    }
}
