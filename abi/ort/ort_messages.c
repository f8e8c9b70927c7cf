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

/* Messages of kernels that the real library has without a source path; NULL: none of them. */
static const char *known_text(const struct place *place, char *to, OrtErrorCode *code)
{
    long long index, axis, length;
    char op[NAME];
    if (sscanf(place->text, "%255[^:]: index %lld is outside axis %lld of length %lld", op, &index,
               &axis, &length) == 4) {
        *code = ORT_INVALID_ARGUMENT;
        snprintf(to, TEXT,
                 "indices element out of data bounds, idx=%lld must be within the inclusive range "
                 "[%lld,%lld]",
                 index, -length, length - 1);
        return to;
    }
    return NULL;
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
