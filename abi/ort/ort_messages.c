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
static const struct known {
    const char *op; /* NULL: any */
    const char *engine, *real;
    OrtErrorCode code;
    int order[3]; /* which numbers of the engine's text the real one shows */
} known_texts[] = {
    {"GatherND",
     "index %lld is outside axis %lld of length %lld",
     "invalid index found, index = %lld",
     ORT_INVALID_ARGUMENT,
     {0}},
    {"GatherElements",
     "index %lld is outside axis %lld of length %lld",
     "GatherElements op: Out of range value in index tensor",
     ORT_FAIL,
     {0}},
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
    {"Expand",
     "lengths %lld and %lld do not broadcast",
     "invalid expand shape",
     ORT_INVALID_ARGUMENT,
     {0}},
    {"Tile",
     "%lld repeats for a tensor of rank %lld",
     "'repeat' input tensor must have the same length as the 'input' tensor",
     ORT_INVALID_ARGUMENT,
     {0}},
    {"Transpose",
     "perm has %lld entries, the input has rank %lld",
     "perm size: %lld does not match input rank: %lld",
     ORT_INVALID_ARGUMENT,
     {0, 1}},
    {"MatMul", "inner length is %lld and %lld", "MatMul dimension mismatch", ORT_FAIL, {0}},
    {NULL,
     "lengths %lld and %lld do not broadcast",
     "Attempting to broadcast an axis by a dimension other than 1. %lld by %lld",
     ORT_FAIL,
     {0, 1}},
};

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

/* The same shapes in both: "[2,3] has 6 elements, [4,2] has 8". */
static bool reshape_text(const char *text, char *to)
{
    char from[NAME], wanted[NAME];
    long long count;
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
    return reshape_text(text, to) ? to : NULL;
}

OrtStatusPtr ort_run_status(sdx_status status, const char *text)
{
    static const char missing[] = "was not given";
    struct place place;
    char other[TEXT];
    OrtErrorCode code = status == SDX_INVALID_ARGUMENT ? ORT_INVALID_ARGUMENT /* custom operators */
                        : status == SDX_NOT_SUPPORTED  ? ORT_NOT_IMPLEMENTED
                                                       : ORT_FAIL;
    static const char ended[] = "Exiting due to terminate flag being set to true.";
    const bool has_place = find_place(text, &place);
    if (status == SDX_CANCELLED && !has_place) return ort_status(ORT_FAIL, ended);
    if (status == SDX_BAD_INPUT && strstr(text, missing)) {
        char name[NAME] = "";
        if (sscanf(text, "input \"%255[^\"]", name) == 1)
            return ort_fail(ORT_FAIL, "Missing Input: %s", name);
    }
    char bound[NAME], made[NAME];
    if (sscanf(text,
               "output \"%255[^\"]\" was bound to %*[^[][%255[^]]], expected %*[^[][%255[^]]]",
               other, bound, made) == 3)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "The output OrtValue provided for output '%s' has shape {%s} but the "
                        "computed output shape for this run is {%s}.",
                        other, bound, made);
    if (!has_place) {
        const bool at_caller =
            status == SDX_INVALID_ARGUMENT || status == SDX_BAD_INPUT || status == SDX_NOT_FOUND;
        return ort_status(at_caller ? ORT_INVALID_ARGUMENT : ORT_FAIL, text);
    }
    const char *known = status == SDX_CANCELLED ? ended : known_text(&place, other, &code);
    return ort_fail(code,
                    "Non-zero status code returned while running %s node. Name:'%s' Status "
                    "Message: %s",
                    place.op, place.node, known ? known : place.text);
}
