/* SPDX-License-Identifier: Apache-2.0
 * IO binding: the feeds and results of runs, kept by name. All memory is the CPU's, so binding to a
 * device says no more than that the library makes the value. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

/* Parallel lists of names and values; the values are retained. */
struct bound {
    char **names;
    OrtValue **values;
    size_t count;
};

struct OrtIoBinding {
    OrtSession *session;
    struct bound inputs, outputs;
};

static void clear(struct bound *bound)
{
    for (size_t i = 0; i < bound->count; i++) {
        free(bound->names[i]);
        ort_value_release(bound->values[i]);
    }
    free(bound->names);
    free(bound->values);
    *bound = (struct bound){0};
}

/* `value` belongs to the list from now on, also on failure. A name that is there gets it. */
static OrtStatusPtr bind(struct bound *bound, const char *name, OrtValue *value)
{
    for (size_t i = 0; i < bound->count; i++) {
        if (strcmp(bound->names[i], name) != 0) continue;
        ort_value_release(bound->values[i]);
        bound->values[i] = value;
        return NULL;
    }
    char *own = NULL;
    OrtStatusPtr failed = ort_grow(&bound->names, bound->count, sizeof *bound->names);
    if (!failed) failed = ort_grow(&bound->values, bound->count, sizeof *bound->values);
    if (!failed) failed = ort_set_text(&own, name);
    if (failed) {
        ort_value_release(value);
        return failed;
    }
    bound->names[bound->count] = own;
    bound->values[bound->count++] = value;
    return NULL;
}

static OrtStatusPtr create_io_binding(OrtSession *session, OrtIoBinding **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    (*out)->session = session;
    return NULL;
}

static void release_io_binding(OrtIoBinding *binding)
{
    if (!binding) return;
    clear(&binding->inputs);
    clear(&binding->outputs);
    free(binding);
}

static OrtStatusPtr bind_input(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    if (!ort_find_input(binding->session, binding->inputs.count, name))
        return ort_fail(ORT_FAIL, "Failed to find input name in the mapping: %s", name);
    return bind(&binding->inputs, name, ort_value_retain(value));
}

static OrtStatusPtr bind_output(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    return bind(&binding->outputs, name, ort_value_retain(value));
}

static OrtStatusPtr bind_output_to_device(OrtIoBinding *binding, const char *name,
                                          const OrtMemoryInfo *memory)
{
    OrtValue *value = NULL;
    if (memory->device != OrtMemoryInfoDeviceType_CPU)
        return ort_fail(ORT_INVALID_ARGUMENT, "output \"%s\" cannot be on device %s", name,
                        memory->name);
    ORT_TRY(ort_value_own(NULL, &value));
    return bind(&binding->outputs, name, value);
}

static OrtStatusPtr run_with_binding(OrtSession *session, const OrtRunOptions *options,
                                     const OrtIoBinding *binding)
{
    const struct bound *in = &binding->inputs, *out = &binding->outputs;
    return ort_run(session, options, (const char *const *)in->names,
                   (const OrtValue *const *)in->values, in->count, (const char *const *)out->names,
                   out->count, out->values);
}

/* All names in one block, without NUL between them, and their lengths in another. */
static OrtStatusPtr get_bound_output_names(const OrtIoBinding *binding, OrtAllocator *allocator,
                                           char **names, size_t **lengths, size_t *count)
{
    const struct bound *out = &binding->outputs;
    size_t size = 0;
    *names = NULL;
    *lengths = NULL;
    *count = 0;
    if (out->count == 0) return NULL;
    for (size_t i = 0; i < out->count; i++)
        size += strlen(out->names[i]);
    *names = allocator->Alloc(allocator, size + 1);
    *lengths = *names ? allocator->Alloc(allocator, out->count * sizeof **lengths) : NULL;
    if (!*lengths) {
        if (*names) allocator->Free(allocator, *names);
        *names = NULL;
        return ort_no_memory();
    }
    char *at = *names;
    for (size_t i = 0; i < out->count; i++) {
        (*lengths)[i] = strlen(out->names[i]);
        memcpy(at, out->names[i], (*lengths)[i]);
        at += (*lengths)[i];
    }
    *count = out->count;
    return NULL;
}

static OrtStatusPtr get_bound_output_values(const OrtIoBinding *binding, OrtAllocator *allocator,
                                            OrtValue ***values, size_t *count)
{
    const struct bound *out = &binding->outputs;
    *values = NULL;
    *count = 0;
    if (out->count == 0) return NULL;
    *values = allocator->Alloc(allocator, out->count * sizeof **values);
    if (!*values) return ort_no_memory();
    for (size_t i = 0; i < out->count; i++)
        (*values)[i] = ort_value_retain(out->values[i]);
    *count = out->count;
    return NULL;
}

static void clear_bound_inputs(OrtIoBinding *binding)
{
    clear(&binding->inputs);
}

static void clear_bound_outputs(OrtIoBinding *binding)
{
    clear(&binding->outputs);
}

/* Copies between devices would end here. */
static OrtStatusPtr synchronize(OrtIoBinding *binding)
{
    (void)binding;
    return NULL;
}

void ort_fill_binding(OrtApi *api)
{
    api->CreateIoBinding = create_io_binding;
    api->ReleaseIoBinding = release_io_binding;
    api->BindInput = bind_input;
    api->BindOutput = bind_output;
    api->BindOutputToDevice = bind_output_to_device;
    api->RunWithBinding = run_with_binding;
    api->GetBoundOutputNames = get_bound_output_names;
    api->GetBoundOutputValues = get_bound_output_values;
    api->ClearBoundInputs = clear_bound_inputs;
    api->ClearBoundOutputs = clear_bound_outputs;
    api->SynchronizeBoundInputs = synchronize;
    api->SynchronizeBoundOutputs = synchronize;
}
