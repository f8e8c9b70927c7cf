/* SPDX-License-Identifier: Apache-2.0
 * Why a model cannot be loaded, in the words of the real library where they are known: made from
 * the engine's line and, for what that does not tell, from the node in the model's bytes. */
#include "ort_objects.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME = 256, TEXT = 2048 };
static const char external_fault[] = "External data path validation failed for initializer: ";

/* ---- protobuf, read in place; broken bytes end what is read ---- */

struct span {
    const unsigned char *at, *end;
};

struct field {
    int number;
    uint64_t number_value; /* of varints */
    struct span bytes;     /* of what has a length */
};

static bool take_varint(struct span *from, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        const unsigned char byte = *from->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool take_field(struct span *from, struct field *field)
{
    enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };
    uint64_t tag, size = 0;
    *field = (struct field){0};
    if (!take_varint(from, &tag)) return false;
    field->number = (int)(tag >> 3);
    switch (tag & 7) {
    case VARINT: return take_varint(from, &field->number_value);
    case FIXED64: size = 8; break;
    case FIXED32: size = 4; break;
    case BYTES:
        if (!take_varint(from, &size)) return false;
        break;
    default: return false;
    }
    if (size > (uint64_t)(from->end - from->at)) return false;
    field->bytes = (struct span){from->at, from->at + size};
    from->at += size;
    return true;
}

/* Field `number`, occurrence `i`, of a message. */
static bool find_field(struct span message, int number, int i, struct field *field)
{
    while (take_field(&message, field))
        if (field->number == number && i-- == 0) return true;
    *field = (struct field){0};
    return false;
}

static void copy_text(struct span text, char *to)
{
    snprintf(to, NAME, "%.*s", (int)(text.end - text.at), (const char *)text.at);
}

static bool text_is(struct span text, const char *with)
{
    const size_t length = (size_t)(text.end - text.at);
    return strlen(with) == length && !memcmp(text.at, with, length);
}

/* ---- the model ---- */

enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_INFO = 13
};
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_DOMAIN = 7 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, ELEM_TYPE = 1 };
enum { TENSOR_TYPE = 2, TENSOR_NAME = 8 };

/* "tensor(float)" of a TypeProto; "" where that is not known. */
static void type_text(struct span type, char *to)
{
    struct field part, elem;
    *to = '\0';
    if (find_field(type, TYPE_TENSOR, 0, &part) && find_field(part.bytes, ELEM_TYPE, 0, &elem)) {
        snprintf(to, NAME, "tensor(%s)", sdx_dtype_name((sdx_dtype)elem.number_value));
    } else if (find_field(type, TYPE_SEQUENCE, 0, &part) &&
               find_field(part.bytes, ELEM_TYPE, 0, &elem)) {
        char inner[NAME];
        type_text(elem.bytes, inner);
        snprintf(to, NAME, "seq(%.200s)", inner);
    }
}

/* The type of a value of the graph as far as the file tells it. */
static void value_type(struct span graph, const char *name, char *to)
{
    struct field item, part;
    *to = '\0';
    struct span rest = graph;
    while (!*to && take_field(&rest, &item)) {
        const bool is_info =
            item.number == GRAPH_INPUT || item.number == GRAPH_OUTPUT || item.number == GRAPH_INFO;
        if (is_info && find_field(item.bytes, INFO_NAME, 0, &part) && text_is(part.bytes, name)) {
            if (find_field(item.bytes, INFO_TYPE, 0, &part)) type_text(part.bytes, to);
        } else if (item.number == GRAPH_INITIALIZER &&
                   find_field(item.bytes, TENSOR_NAME, 0, &part) && text_is(part.bytes, name)) {
            find_field(item.bytes, TENSOR_TYPE, 0, &part);
            snprintf(to, NAME, "tensor(%s)", sdx_dtype_name((sdx_dtype)part.number_value));
        }
    }
}

/* The node of the main graph that the engine names by its name or else its first output. */
static bool find_node(struct span graph, bool by_name, const char *name, const char *op,
                      struct span *node)
{
    struct field item, part;
    for (int i = 0; find_field(graph, GRAPH_NODE, i, &item); i++) {
        find_field(item.bytes, NODE_OP, 0, &part);
        if (!text_is(part.bytes, op)) continue;
        find_field(item.bytes, by_name ? NODE_NAME : NODE_OUTPUT, 0, &part);
        if (!text_is(part.bytes, name)) continue;
        *node = item.bytes;
        return true;
    }
    return false;
}

/* `("x": tensor(float),"y": ,) ` of the inputs or outputs of a node. */
static void list_values(struct span graph, struct span node, int field, char *to, size_t size)
{
    struct field item;
    char name[NAME], type[NAME];
    size_t length = (size_t)snprintf(to, size, "(");
    for (int i = 0; find_field(node, field, i, &item) && length < size; i++) {
        copy_text(item.bytes, name);
        value_type(graph, name, type);
        length += (size_t)snprintf(to + length, size - length, "\"%s\": %s,", name, type);
    }
    if (length < size) snprintf(to + length, size - length, ")");
}

static long long opset_of(struct span model, const char *domain)
{
    struct field item, part;
    for (int i = 0; find_field(model, MODEL_OPSET, i, &item); i++) {
        find_field(item.bytes, OPSET_DOMAIN, 0, &part);
        const bool is_standard = part.bytes.at == part.bytes.end || text_is(part.bytes, "ai.onnx");
        if (*domain ? !text_is(part.bytes, domain) : !is_standard) continue;
        find_field(item.bytes, OPSET_VERSION, 0, &part);
        return (long long)part.number_value;
    }
    return -1;
}

static void make_upper(char *text)
{
    for (; *text; text++)
        if (*text >= 'a' && *text <= 'z') *text = (char)(*text - 'a' + 'A');
}

/* ---- messages ---- */

/* The engine's line `[PATH: ]node [of ]"NAME" (OP): TEXT`. */
struct place {
    bool by_name;
    char name[NAME], op[NAME];
    const char *text;
};

static bool find_place(const char *line, struct place *place)
{
    const char *at = strstr(line, "node of \"");
    place->by_name = !at;
    if (!at) at = strstr(line, "node \"");
    if (!at) return false;
    at = strchr(at, '"') + 1;
    const char *end = strstr(at, "\" (");
    if (!end) return false;
    snprintf(place->name, NAME, "%.*s", (int)(end - at), at);
    at = end + strlen("\" (");
    snprintf(place->op, NAME, "%.*s", (int)strcspn(at, ":)"), at);
    end = strstr(at, "): ");
    place->text = end ? end + strlen("): ") : strstr(at, ") ");
    return place->text != NULL;
}

/* "In Node, (NAME, OP, DOMAIN, -1) : (inputs) -> (outputs) , Error " and the reason. */
static OrtErrorCode bad_node(struct span graph, struct span node, const char *reason, char *to)
{
    struct field part;
    char name[NAME], op[NAME], domain[NAME], inputs[NAME * 2], outputs[NAME * 2];
    find_field(node, NODE_NAME, 0, &part);
    copy_text(part.bytes, name);
    find_field(node, NODE_OP, 0, &part);
    copy_text(part.bytes, op);
    find_field(node, NODE_DOMAIN, 0, &part);
    copy_text(part.bytes, domain);
    list_values(graph, node, NODE_INPUT, inputs, sizeof inputs);
    list_values(graph, node, NODE_OUTPUT, outputs, sizeof outputs);
    snprintf(to, TEXT,
             "This is an invalid model. In Node, (\"%s\", %s, \"%s\", -1) : %s -> %s , Error %s",
             name, op, domain, inputs, outputs, reason);
    return ORT_INVALID_GRAPH;
}

/* The reason in the real library's words; false: not known. */
static bool node_reason(struct span model, struct span node, const struct place *place, char *to)
{
    struct field part;
    char domain[NAME], name[NAME], found[NAME], wanted[NAME];
    find_field(node, NODE_DOMAIN, 0, &part);
    copy_text(part.bytes, domain);
    const long long opset = opset_of(model, domain);
    const char *text = place->text;
    if (strstr(text, "has no such operator") || strstr(text, "the operator is not yet in"))
        snprintf(to, TEXT, "No Op registered for %s with domain_version of %lld", place->op, opset);
    else if (strstr(text, "the operator is deprecated"))
        snprintf(to, TEXT, "Op registered for %s is deprecated in domain_version of %lld",
                 place->op, opset);
    else if (sscanf(text, "required attribute %255s is missing", name) == 1)
        snprintf(to, TEXT, "Required attribute '%s' is missing.", name);
    else if ((sscanf(text, "attribute \"%255[^\"]\": type is", name) == 1 ||
              sscanf(text, "attribute \"%255[^\"]\": has no type", name) == 1) &&
             strstr(text, " type"))
        snprintf(to, TEXT, "type field and data field mismatch in attribute %s.", name);
    else if (strstr(text, " is unknown in version") && sscanf(text, "attribute %255s", name) == 1)
        snprintf(to, TEXT, "Unrecognized attribute: %s for operator %s", name, place->op);
    else if (sscanf(text, "attribute %255s is of type %255[^,], expected %255s", name, found,
                    wanted) == 3) {
        make_upper(found);
        make_upper(wanted);
        snprintf(to, TEXT, "Mismatched attribute type in '%s : %s'. Expected: '%s', actual: '%s'",
                 place->by_name ? place->name : "", name, wanted, found);
    } else
        return false;
    return true;
}

/* `input X is float[N], expected bool`: the first input of that type is taken to be the one. */
static OrtErrorCode wrong_type(struct span graph, struct span node, const struct place *place,
                               const char *found, char *to)
{
    struct field item;
    char name[NAME], type[NAME], wanted[NAME];
    snprintf(wanted, sizeof wanted, "tensor(%.*s)", (int)strcspn(found, "[, "), found);
    for (int i = 0; find_field(node, NODE_INPUT, i, &item); i++) {
        copy_text(item.bytes, name);
        value_type(graph, name, type);
        if (strcmp(type, wanted) != 0) continue;
        snprintf(to, TEXT,
                 "This is an invalid model. Type Error: Type '%s' of input parameter (%s) of "
                 "operator (%s) in node (%s) is invalid.",
                 type, name, place->op, place->by_name ? place->name : "");
        return ORT_INVALID_GRAPH;
    }
    return ORT_OK;
}

/* Faults of a node that need the model's bytes; ORT_OK: none of them. */
static OrtErrorCode node_fault(struct span model, const struct place *place, char *to)
{
    struct field graph;
    struct span node;
    char found[NAME];
    if (!find_field(model, MODEL_GRAPH, 0, &graph) ||
        !find_node(graph.bytes, place->by_name, place->name, place->op, &node))
        return ORT_OK;
    char reason[TEXT], first[NAME], other[NAME];
    if (node_reason(model, node, place, reason)) return bad_node(graph.bytes, node, reason, to);
    if (sscanf(place->text,
               "input %*s is %255[^[,], expected the type of input %*[^,], which is "
               "%255[^[,]",
               other, first) == 2 ||
        sscanf(place->text,
               "input %*s is %255[^[,]%*[^,], expected the type of input %*[^,], "
               "which is %255[^[,]",
               other, first) == 2) {
        snprintf(to, TEXT,
                 "Type Error: Type parameter (T) of Optype (%s) bound to different types "
                 "(tensor(%s) and tensor(%s) in node (%s).",
                 place->op, first, other, place->by_name ? place->name : "");
        return ORT_FAIL;
    }
    if (sscanf(place->text, "input %*s is %255s", found) == 1 && strstr(place->text, "expected"))
        return wrong_type(graph.bytes, node, place, found, to);
    if (!strncmp(place->text, "has ", strlen("has "))) return ORT_OK; /* inputs, outputs */
    snprintf(to, TEXT, "Node (%s) Op (%s) [ShapeInferenceError] %s",
             place->by_name ? place->name : "", place->op, place->text);
    return ORT_FAIL;
}

/* Faults of initializers; ORT_OK: none of them. */
static OrtErrorCode initializer_fault(const char *line, char *to)
{
    char name[NAME], found[NAME], declared[NAME];
    long long bytes, offset, size;
    if (sscanf(line, "initializer \"%255[^\"]\" is [%255[^]]], declared [%255[^]]]", name, found,
               declared) == 3) {
        snprintf(to, TEXT, "Type Error: Shape of initializer %s does not match. {%s} != {%s}", name,
                 declared, found);
        return ORT_FAIL;
    }
    if (sscanf(line, "tensor \"%255[^\"]\": ", name) != 1) return ORT_OK;
    const char *text = strstr(line, "\": ") + strlen("\": ");
    if (sscanf(text, "external data takes %lld bytes at %lld, but \"%*[^\"]\" has %lld", &bytes,
               &offset, &size) == 3) {
        snprintf(to, TEXT,
                 "External initializer: %s offset: %lld size to read: %lld given file_length: %lld "
                 "are out of bounds or can not be read in full.",
                 name, offset, bytes, size);
        return ORT_FAIL;
    }
    char what[TEXT];
    if (sscanf(text, "cannot open %255[^:]: no such file", found) == 1)
        snprintf(what, sizeof what, "External data path does not exist: \"%s\"", found);
    else if (strstr(text, "the path is absolute"))
        snprintf(what, sizeof what, "Absolute path not allowed for external data location");
    else if (strstr(text, "external data \"") || strstr(text, "has no folder"))
        snprintf(what, sizeof what, "External data path escapes model directory. %s", text);
    else
        return ORT_OK;
    snprintf(to, TEXT, "%s%s. Error: %.1500s", external_fault, name, what);
    return ORT_FAIL;
}

/* The real library's code and text for the engine's line; ORT_OK: the text is not known. */
static OrtErrorCode known_fault(const char *line, struct span model, bool is_file, char *to)
{
    struct place place;
    char name[NAME];
    const char *at;
    at = strncmp(line, "byte ", strlen("byte ")) ? strstr(line, ": byte ") : line;
    if (at) {
        snprintf(to, TEXT, "%s",
                 is_file ? "Protobuf parsing failed."
                         : "Failed to load model because protobuf parsing failed.");
        return ORT_INVALID_PROTOBUF;
    }
    if (strstr(line, "the file is empty") || strstr(line, "has no graph")) {
        snprintf(to, TEXT, "%s",
                 is_file ? "ModelProto does not have a graph."
                         : "No graph was found in the protobuf.");
        return is_file ? ORT_FAIL : ORT_INVALID_ARGUMENT;
    }
    if ((at = strstr(line, "operator ")) && strstr(at, " is not supported") &&
        sscanf(at, "operator %255s", name) == 1 && strchr(name, '.')) {
        char *dot = strrchr(name, '.');
        *dot = '\0';
        snprintf(to, TEXT, "Fatal error: %s:%s(-1) is not a registered function/op", name, dot + 1);
        return ORT_FAIL;
    }
    if (strstr(line, "ir_version is ") || strstr(line, "newest known is") ||
        strstr(line, "is not made by any node")) {
        snprintf(to, TEXT, "%s", line);
        return ORT_FAIL;
    }
    const OrtErrorCode code = initializer_fault(line, to);
    if (code) return code;
    if (!find_place(line, &place)) return ORT_OK;
    if ((at = strstr(place.text, "Type Error: "))) { /* of a custom operator */
        snprintf(to, TEXT, "This is an invalid model. %s", at);
        return ORT_INVALID_GRAPH;
    }
    if (sscanf(place.text, "input \"%255[^\"]\" is not defined", name) == 1 &&
        strstr(place.text, "is not defined")) {
        snprintf(to, TEXT,
                 "Invalid model. Node input '%s' is not a graph input, initializer, or output of a "
                 "previous node.",
                 name);
        return ORT_INVALID_ARGUMENT;
    }
    if (strstr(line, "depends on its own output")) {
        snprintf(to, TEXT, "This is an invalid model. Error: the graph is not acyclic.");
        return ORT_FAIL;
    }
    if (sscanf(place.text, "output \"%255[^\"]\" is defined", name) == 1 &&
        strstr(place.text, "is defined twice")) {
        snprintf(to, TEXT, "This is an invalid model. Error: Duplicate definition of name (%s).",
                 name);
        return ORT_FAIL;
    }
    char found[NAME], declared[NAME];
    if ((sscanf(place.text, "value \"%255[^\"]\" is declared %255[^,[], found %255[^[]", name,
                declared, found) == 3 ||
         sscanf(place.text, "value \"%255[^\"]\" is declared %255[^,[]%*[^,], found %255[^[]", name,
                declared, found) == 3) &&
        strcmp(declared, found) != 0) {
        snprintf(to, TEXT,
                 "Type Error: Type (tensor(%s)) of output arg (%s) of node (%s) does not match "
                 "expected type (tensor(%s)).",
                 declared, name, place.by_name ? place.name : "", found);
        return ORT_FAIL;
    }
    return node_fault(model, &place, to);
}

/* The line without the path that the engine puts in front. */
static const char *without_path(const char *line, const char *path)
{
    const size_t length = path ? strlen(path) : 0;
    const bool has_path =
        length && !strncmp(line, path, length) && !strncmp(line + length, ": ", 2);
    return has_path ? line + length + 2 : line;
}

static struct span map_file(const char *path)
{
    struct span none = {0};
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return none;
    void *bytes = MAP_FAILED;
    if (!fstat(file, &about) && about.st_size > 0)
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED) return none;
    return (struct span){bytes, (unsigned char *)bytes + about.st_size};
}

OrtStatusPtr ort_load_status(sdx_status status, const char *line, const char *path,
                             const void *bytes, size_t size)
{
    static const OrtErrorCode codes[] = {[SDX_BAD_MODEL] = ORT_INVALID_GRAPH,
                                         [SDX_NOT_SUPPORTED] = ORT_NOT_IMPLEMENTED,
                                         [SDX_NOT_FOUND] = ORT_FAIL,
                                         [SDX_INVALID_ARGUMENT] = ORT_INVALID_ARGUMENT,
                                         [SDX_INTERNAL] = ORT_FAIL};
    char text[TEXT];
    const unsigned char *first = bytes;
    struct span model = path ? map_file(path) : (struct span){first, first + size};
    line = without_path(line, path);
    OrtErrorCode code = known_fault(line, model, path != NULL, text);
    if (path && model.at) munmap((void *)(uintptr_t)model.at, (size_t)(model.end - model.at));
    if (code == ORT_OK) {
        snprintf(text, sizeof text, "%s", line);
        code = codes[status] ? codes[status] : ORT_FAIL;
    }
    const bool is_told_alone = !strncmp(text, external_fault, strlen(external_fault));
    return path && !is_told_alone ? ort_fail(code, "Load model from %s failed:%s", path, text)
                                  : ort_status(code, text);
}

bool ort_find_node(const OrtSession *session, const char *value, bool makes, char *node, char *op,
                   size_t size)
{
    const unsigned char *first = session->bytes;
    struct field graph, item, part;
    bool found = false;
    struct span model =
        session->path ? map_file(session->path) : (struct span){first, first + session->size};
    if (!model.at || !find_field(model, MODEL_GRAPH, 0, &graph)) graph = (struct field){0};
    for (int i = 0; !found && find_field(graph.bytes, GRAPH_NODE, i, &item); i++)
        for (int k = 0;
             !found && find_field(item.bytes, makes ? NODE_OUTPUT : NODE_INPUT, k, &part); k++)
            found = text_is(part.bytes, value);
    if (found) {
        find_field(item.bytes, NODE_NAME, 0, &part);
        snprintf(node, size, "%.*s", (int)(part.bytes.end - part.bytes.at),
                 (const char *)part.bytes.at);
        find_field(item.bytes, NODE_OP, 0, &part);
        snprintf(op, size, "%.*s", (int)(part.bytes.end - part.bytes.at),
                 (const char *)part.bytes.at);
    }
    if (session->path && model.at)
        munmap((void *)(uintptr_t)model.at, (size_t)(model.end - model.at));
    return found;
}
