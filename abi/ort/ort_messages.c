/* SPDX-License-Identifier: Apache-2.0
 * What the engine says of a failed run, in the words of the real library: programs look for them.
 * Where the real text is not known the engine's stands behind the real library's beginning. */
#include "ort_objects.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 256, TEXT = 1024 };

/* The parts of `node "NAME" (OP: ...): TEXT`. */
struct place {
    char node[NAME], op[NAME];
    const char *text;
};

static void copy_part(char *to, const char *from, size_t length)
{
    snprintf(to, NAME, "%.*s", (int)length, from);
}

static bool find_place(const char *text, struct place *place)
{
    const char *at = strstr(text, "node ");
    if (!at) return false;
    at += strlen("node ");
    const bool named = *at == '"';
    if (!named && strncmp(at, "of \"", 4) != 0) return false;
    at += named ? 1 : 4;
    const char *end = strstr(at, "\" (");
    if (!end) return false;
    copy_part(place->node, at, named ? (size_t)(end - at) : 0);
    at = end + strlen("\" (");
    const size_t op = strcspn(at, ":)");
    copy_part(place->op, at, op);
    end = strstr(at + op, "): ");
    if (!end) return false;
    place->text = end + strlen("): ");
    return true;
}

/* The engine's texts with up to three numbers in them, and the real library's with their places;
 * its own beginnings with source files are left out. */
#define BAD ORT_INVALID_ARGUMENT
static const struct known {
    const char *op; /* NULL: any */
    const char *engine, *real;
    OrtErrorCode code;
    int order[3]; /* which numbers of the engine's text the real one shows */
} known_texts[] = {
    {"GatherND",
     "index %lld is outside axis %lld of length %lld",
     "invalid index found, index = %lld",
     BAD,
     {0}},
    {"GatherND",
     "tuples of %lld indices into rank %lld",
     "last dimension of indices must not be larger than rank of input tensor",
     BAD,
     {0}},
    {"ScatterND",
     "index %lld is outside axis %lld of length %lld",
     "invalid indice found, indice = %lld",
     BAD,
     {0}},
    {"GatherElements",
     "index %lld is outside axis %lld of length %lld",
     "GatherElements op: Out of range value in index tensor",
     ORT_FAIL,
     {0}},
    {"GatherElements",
     "axis %lld of the indices has length %lld, at most %lld allowed",
     "GatherElements op: 'indices' shape should have values within bounds of 'data' shape. Invalid "
     "value in indices shape is: %lld",
     BAD,
     {1}},
    {"TopK", "k is -%lld, the axis", "value of k must not be negative", ORT_FAIL, {0}},
    {"TopK",
     "k is %lld, the axis has length %lld",
     "k argument [%lld] should not be greater than specified axis dim value [%lld]",
     ORT_FAIL,
     {0, 1}},
    {"Conv",
     "input has %lld channels, but the weights take %lld in each of %lld groups",
     "Input channels C is not equal to kernel channels * group. C: %lld kernel channels: %lld "
     "group: %lld",
     ORT_FAIL,
     {0, 1, 2}},
    {"Conv",
     "%lld output channels do not divide into %lld groups",
     "Output channels M is not divisible by group. M: %lld group: %lld",
     ORT_FAIL,
     {0, 1}},
    {"ConvTranspose",
     "input has %lld channels, but the weights take %lld",
     "filter number not equal to input channel number. filter_number: %lld num_input_channels: "
     "%lld",
     BAD,
     {1, 0}},
    {"BatchNormalization",
     "input 1 has %lld entries for %lld channels",
     "Invalid input scale: 0th dimension != %lld",
     BAD,
     {1}},
    {"BatchNormalization",
     "input 2 has %lld entries for %lld channels",
     "Invalid input B: 0th dimension != %lld",
     BAD,
     {1}},
    {"BatchNormalization",
     "input 3 has %lld entries for %lld channels",
     "Invalid input mean: 0th dimension != %lld",
     BAD,
     {1}},
    {"BatchNormalization",
     "input 4 has %lld entries for %lld channels",
     "Invalid input var: 0th dimension != %lld",
     BAD,
     {1}},
    {"InstanceNormalization",
     "input 1 has %lld entries, expected %lld",
     "Mismatch between input data and scale: size of scale != input channel count %lld vs. %lld",
     BAD,
     {0, 1}},
    {"InstanceNormalization",
     "input 2 has %lld entries, expected %lld",
     "Mismatch between input data and B: size of B != input channel count %lld vs. %lld",
     BAD,
     {0, 1}},
    {"DepthToSpace",
     "length %lld and a block of %lld",
     "DepthToSpace requires input depth to be a multiple of (block_size * block_size)",
     BAD,
     {0}},
    {"Expand", "lengths %lld and %lld do not broadcast", "invalid expand shape", BAD, {0}},
    {"Expand", "length %lld is %lld", "invalid expand shape", BAD, {0}},
    {"Tile",
     "%lld repeats for a tensor of rank %lld",
     "'repeat' input tensor must have the same length as the 'input' tensor",
     BAD,
     {0}},
    {"Tile", "repeat %lld is %lld", "Tile repeat value must be non-negative, got: %lld", BAD, {1}},
    {"Transpose",
     "perm has %lld entries, the input has rank %lld",
     "perm size: %lld does not match input rank: %lld",
     BAD,
     {0, 1}},
    {"Unsqueeze", "axis %lld is listed twice", "'axes' has a duplicate axis", BAD, {0}},
    {"Slice", "step %lld is 0", "'step' value cannot be 0", BAD, {0}},
    {"Slice",
     "axis %lld is out of range for rank %lld",
     "'axes' has an axis outside of the tensor dimension count",
     BAD,
     {0}},
    {"Slice",
     "%lld starts for a tensor of rank %lld",
     "'axes' has an axis outside of the tensor dimension count",
     BAD,
     {0}},
    {"Range", "delta is %lld,", "delta in Range operator can not be zero!", BAD, {0}},
    {"OneHot",
     "%lld values, expected 2",
     "Invalid argument for values; either it's rank is more than 1 or it has more than 2 elements",
     BAD,
     {0}},
    {"CumSum", "axis has %lld elements", "Axis tensor must contain exactly one element", BAD, {0}},
    {"SplitToSequence",
     "the lengths sum up to %lld, the axis has %lld",
     "split_size_sum (%lld) != split_dim_size (%lld)",
     BAD,
     {0, 1}},
    {"ReverseSequence",
     "sequence %lld has length %lld, the axis %lld",
     "Invalid sequence length: %lld. Value must be in range [0,%lld]",
     ORT_FAIL,
     {1, 2}},
    {"Gemm", "length of C is %lld and %lld", "Gemm: Invalid bias shape for broadcast", BAD, {0}},
    {"BiasGelu",
     "bias has %lld values",
     "Input 1 dimension 0 should have same length as the last dimension of input 0",
     BAD,
     {0}},
    {"MatMul", "inner length is %lld and %lld", "MatMul dimension mismatch", ORT_FAIL, {0}},
    {NULL,
     "position %lld in a sequence of %lld items",
     "Invalid sequence index (%lld) specified for sequence of size (%lld)",
     BAD,
     {0, 1}},
    {NULL,
     "lengths %lld and %lld do not broadcast",
     "Attempting to broadcast an axis by a dimension other than 1. %lld by %lld",
     ORT_FAIL,
     {0, 1}},
};
#undef BAD

/* An index outside of its axis, which the real library tells with the range. */
static bool index_text(const char *text, char *to)
{
    long long index, axis, length;
    if (sscanf(text, "index %lld is outside axis %lld of length %lld", &index, &axis, &length) != 3)
        return false;
    snprintf(to, TEXT,
             "indices element out of data bounds, idx=%lld must be within the inclusive range "
             "[%lld,%lld]",
             index, -length, length - 1);
    return true;
}

/* Texts with shapes in them. */
static bool shape_text(const char *text, char *to, OrtErrorCode *code)
{
    char from[NAME], wanted[NAME];
    long long count, sum, outputs, axis;
    if (sscanf(text, "inner length of A is %lld, B is [%255[^]]] with %lld", &count, from, &sum) ==
        3) {
        *code = ORT_INVALID_ARGUMENT;
        snprintf(to, TEXT, "GEMM: Dimension mismatch, W: {%s} K: %lld N:%lld", from, count, sum);
        return true;
    }
    if (sscanf(text, "%lld lengths sum up to %lld for %lld outputs on axis %lld of [%255[^]]]",
               &count, &sum, &outputs, &axis, from) == 5) {
        snprintf(to, TEXT,
                 "Cannot split using values in 'split' attribute. Axis=%lld Input shape={%s} "
                 "NumOutputs=%lld Num entries in 'split' (must equal number of outputs) was %lld "
                 "Sum of sizes in 'split' (must equal size of selected axis) was %lld",
                 axis, from, outputs, count, sum);
        return true;
    }
    if (sscanf(text, "%lld outputs do not divide axis %lld of [%255[^]]]", &outputs, &axis, from) ==
        3) {
        snprintf(to, TEXT,
                 "Input cannot be split evenly on selected axis. Input shape={%s} Axis=%lld "
                 "NumOutputs=%lld",
                 from, axis, outputs);
        return true;
    }
    if (sscanf(text, "[%255[^]]] has %lld elements, [%255[^]]] has", from, &count, wanted) != 3)
        return false;
    snprintf(to, TEXT,
             "The input tensor cannot be reshaped to the requested shape. Input shape:{%s}, "
             "requested shape:{%s}",
             from, wanted);
    return true;
}

static int count_numbers(const char *format)
{
    int count = 0;
    while ((format = strstr(format, "%lld")) != NULL) {
        count++;
        format++;
    }
    return count;
}

/* Texts of kernels as the real library has them; NULL: not known. */
static const char *known_text(const struct place *place, char *to, OrtErrorCode *code)
{
    const size_t op = strlen(place->op);
    const bool is_named =
        !strncmp(place->text, place->op, op) && !strncmp(place->text + op, ": ", 2);
    const char *text = is_named ? place->text + op + 2 : place->text;
    for (size_t i = 0; i < sizeof known_texts / sizeof known_texts[0]; i++) {
        const struct known *k = &known_texts[i];
        long long n[3] = {0};
        if (k->op && strcmp(k->op, place->op) != 0) continue;
        if (sscanf(text, k->engine, &n[0], &n[1], &n[2]) != count_numbers(k->engine)) continue;
        *code = k->code;
        snprintf(to, TEXT, k->real, n[k->order[0]], n[k->order[1]], n[k->order[2]]);
        return to;
    }
    if (index_text(text, to)) {
        *code = ORT_INVALID_ARGUMENT;
        return to;
    }
    return shape_text(text, to, code) ? to : NULL;
}

/* "Non-zero status code returned ..." of a node. */
static OrtStatusPtr node_status(OrtErrorCode code, const char *op, const char *node,
                                const char *text)
{
    return ort_fail(code,
                    "Non-zero status code returned while running %s node. Name:'%s' Status "
                    "Message: %s",
                    op, node, text);
}

/* What is wrong with an input or output is told by the first node that reads or makes it. */
static OrtStatusPtr value_status(const OrtSession *session, const char *text)
{
    char name[NAME] = "", bound[NAME], made[NAME], node[NAME], op[NAME], told[4 * NAME];
    if (strstr(text, "was not given") && sscanf(text, "input \"%255[^\"]\"", name) == 1) {
        snprintf(told, sizeof told, "Missing Input: %s", name);
        return ort_find_node(session, name, false, node, op, NAME)
                   ? node_status(ORT_FAIL, op, node, told)
                   : ort_status(ORT_FAIL, told);
    }
    if (sscanf(text,
               "output \"%255[^\"]\" was bound to %*[^[][%255[^]]], expected %*[^[][%255[^]]]",
               name, bound, made) != 3)
        return NULL;
    if (!ort_find_node(session, name, true, node, op, NAME)) node[0] = op[0] = '\0';
    snprintf(
        told, sizeof told,
        "The output OrtValue provided for output '%s' of node '%s' (%s) has shape {%s} but the "
        "computed output shape for this run is {%s}. When calling Run() with pre-allocated "
        "output OrtValues on a model with dynamic output shapes, either supply unallocated "
        "output OrtValues or ensure the pre-allocated shapes match the expected output shapes "
        "for each run.",
        name, node, op, bound, made);
    return node_status(ORT_INVALID_ARGUMENT, op, node, told);
}

OrtStatusPtr ort_run_status(const OrtSession *session, sdx_status status, const char *text)
{
    struct place place;
    char other[TEXT];
    OrtErrorCode code = status == SDX_INVALID_ARGUMENT ? ORT_INVALID_ARGUMENT /* custom operators */
                        : status == SDX_NOT_SUPPORTED  ? ORT_NOT_IMPLEMENTED
                                                       : ORT_FAIL;
    static const char ended[] = "Exiting due to terminate flag being set to true.";
    const bool has_place = find_place(text, &place);
    if (status == SDX_CANCELLED && !has_place) return ort_status(ORT_FAIL, ended);
    OrtStatusPtr told = status == SDX_BAD_INPUT ? value_status(session, text) : NULL;
    if (told) return told;
    if (!has_place) {
        const bool at_caller =
            status == SDX_INVALID_ARGUMENT || status == SDX_BAD_INPUT || status == SDX_NOT_FOUND;
        return ort_status(at_caller ? ORT_INVALID_ARGUMENT : ORT_FAIL, text);
    }
    const char *known = status == SDX_CANCELLED ? ended : known_text(&place, other, &code);
    return node_status(code, place.op, place.node, known ? known : place.text);
}
