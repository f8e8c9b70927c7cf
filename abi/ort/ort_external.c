/* SPDX-License-Identifier: Apache-2.0
 * Data of initializers outside of the model: where it is, and files of it given from memory. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

struct OrtExternalInitializerInfo {
    char *path;
    int64_t offset;
    size_t size;
};

static void release_info(OrtExternalInitializerInfo *info)
{
    if (info) free(info->path);
    free(info);
}

static OrtStatusPtr create_info(const char *path, int64_t offset, size_t size,
                                OrtExternalInitializerInfo **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    (*out)->offset = offset;
    (*out)->size = size;
    OrtStatusPtr failed = ort_set_text(&(*out)->path, path);
    if (!failed) return NULL;
    release_info(*out);
    *out = NULL;
    return failed;
}

static const char *get_path(const OrtExternalInitializerInfo *info)
{
    return info->path;
}

static int64_t get_offset(const OrtExternalInitializerInfo *info)
{
    return info->offset;
}

static size_t get_size(const OrtExternalInitializerInfo *info)
{
    return info->size;
}

void ort_file_release(struct ort_file *file)
{
    if (!file || atomic_fetch_sub(&file->refs, 1) > 1) return;
    free(file->name);
    free(file);
}

/* The bytes are copied: the program may free them when its session is made. */
static OrtStatusPtr add_file(OrtSessionOptions *options, const char *name, const void *bytes,
                             size_t size)
{
    for (size_t i = 0; i < options->count_files; i++)
        if (strcmp(options->files[i]->name, name) == 0)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "An entry for this name has already been added. name: %s", name);
    ORT_TRY(ort_grow(&options->files, options->count_files, sizeof *options->files));
    struct ort_file *file = malloc(sizeof *file + size);
    if (!file) return ort_no_memory();
    atomic_init(&file->refs, 1);
    file->name = NULL;
    file->size = size;
    memcpy(file->bytes, bytes, size);
    options->files[options->count_files++] = file;
    return ort_set_text(&file->name, name);
}

static OrtStatusPtr add_files(OrtSessionOptions *options, const char *const *names,
                              char *const *buffers, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!names[i] || !*names[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "Received null name for an external file");
        if (!buffers[i] || !sizes[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "Received null or empty buffer for file %s",
                            names[i]);
        ORT_TRY(add_file(options, names[i], buffers[i], sizes[i]));
    }
    return NULL;
}

void ort_fill_external(OrtApi *api)
{
    api->CreateExternalInitializerInfo = create_info;
    api->ReleaseExternalInitializerInfo = release_info;
    api->ExternalInitializerInfo_GetFilePath = get_path;
    api->ExternalInitializerInfo_GetFileOffset = get_offset;
    api->ExternalInitializerInfo_GetByteSize = get_size;
    api->AddExternalInitializersFromFilesInMemory = add_files;
}
