/* SPDX-License-Identifier: Apache-2.0
 * Tensors of strings. The engine's are made as a whole; what is written element by element is
 * gathered when the tensor is next looked at. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t gather_lock = PTHREAD_MUTEX_INITIALIZER;

static OrtStatusPtr need_strings(const OrtValue *value, sdx_tensor **out)
{
    ORT_TRY(ort_need_tensor(value, out));
    if (sdx_tensor_dtype(*out) == SDX_STRING) return NULL;
    return ort_status(ORT_FAIL, "Tensor type mismatch: the tensor does not hold strings");
}

void ort_texts_free(struct OrtValue *value)
{
    if (!value->texts) return;
    for (int64_t i = 0, count = sdx_tensor_count(value->tensor); i < count; i++)
        free(value->texts[i].text);
    free(value->texts);
    value->texts = NULL;
    atomic_store_explicit(&value->stale, false, memory_order_relaxed);
}

static sdx_tensor *tensor_of(const sdx_tensor *like, const char *const *texts,
                             const size_t *lengths)
{
    sdx_tensor *made = NULL;
    if (sdx_tensor_create_strings(ort_context(), sdx_tensor_rank(like), sdx_tensor_dims(like),
                                  texts, lengths, &made))
        return NULL;
    return made;
}

static void gather(struct OrtValue *value)
{
    const size_t count = (size_t)sdx_tensor_count(value->tensor);
    const char **texts = malloc((count + 1) * sizeof *texts);
    size_t *lengths = malloc((count + 1) * sizeof *lengths);
    sdx_tensor *made = NULL;
    for (size_t i = 0; texts && lengths && i < count; i++) {
        texts[i] = value->texts[i].text ? value->texts[i].text : "";
        lengths[i] = value->texts[i].length;
    }
    if (texts && lengths) made = tensor_of(value->tensor, texts, lengths);
    free(texts);
    free(lengths);
    if (!made) return;
    sdx_tensor_destroy(value->holder);
    value->holder = value->tensor = made;
    atomic_store_explicit(&value->stale, false, memory_order_release);
}

void ort_texts_gather(struct OrtValue *value)
{
    pthread_mutex_lock(&gather_lock);
    if (atomic_load_explicit(&value->stale, memory_order_relaxed)) gather(value);
    pthread_mutex_unlock(&gather_lock);
}

/* The texts of a value as they can be changed one by one. */
static OrtStatusPtr open_texts(OrtValue *value, size_t index)
{
    sdx_tensor *tensor = value->texts ? value->tensor : NULL;
    if (!tensor) ORT_TRY(need_strings(value, &tensor));
    const size_t count = (size_t)sdx_tensor_count(tensor);
    if (index >= count) return ort_status(ORT_INVALID_ARGUMENT, "element index is out of bounds");
    if (value->texts) return NULL;
    struct ort_text *texts = calloc(count, sizeof *texts);
    if (!texts) return ort_no_memory();
    value->texts = texts;
    for (size_t i = 0; i < count; i++) {
        const char *text = sdx_tensor_string(tensor, (int64_t)i, &texts[i].length);
        texts[i].text = malloc(texts[i].length + 1);
        if (!texts[i].text) {
            ort_texts_free(value);
            return ort_no_memory();
        }
        memcpy(texts[i].text, text, texts[i].length);
        texts[i].text[texts[i].length] = '\0';
    }
    return NULL;
}

static OrtStatusPtr resize_element(OrtValue *value, size_t index, size_t length, char **out)
{
    *out = NULL;
    ORT_TRY(open_texts(value, index));
    char *text = calloc(length + 1, 1);
    if (!text) return ort_no_memory();
    free(value->texts[index].text);
    value->texts[index] = (struct ort_text){text, length};
    atomic_store_explicit(&value->stale, true, memory_order_release);
    *out = text;
    return NULL;
}

static OrtStatusPtr fill_element(OrtValue *value, const char *text, size_t index)
{
    char *to = NULL;
    const size_t length = strlen(text);
    ORT_TRY(resize_element(value, index, length, &to));
    memcpy(to, text, length);
    return NULL;
}

static OrtStatusPtr fill(OrtValue *value, const char *const *texts, size_t count)
{
    sdx_tensor *tensor = NULL;
    ORT_TRY(need_strings(value, &tensor));
    if (count != (size_t)sdx_tensor_count(tensor))
        return ort_status(ORT_INVALID_ARGUMENT, "input array doesn't equal tensor size");
    sdx_tensor *made = tensor_of(tensor, texts, NULL);
    if (!made) return ort_no_memory();
    ort_value_set(value, made);
    return NULL;
}

/* ---- reading ---- */

static OrtStatusPtr data_length(const OrtValue *value, size_t *out)
{
    sdx_tensor *tensor = NULL;
    size_t total = 0, length;
    *out = 0;
    ORT_TRY(need_strings(value, &tensor));
    for (int64_t i = 0; i < sdx_tensor_count(tensor); i++) {
        (void)sdx_tensor_string(tensor, i, &length);
        total += length;
    }
    *out = total;
    return NULL;
}

static OrtStatusPtr content(const OrtValue *value, void *to, size_t size, size_t *offsets,
                            size_t count)
{
    sdx_tensor *tensor = NULL;
    size_t total = 0, length;
    ORT_TRY(need_strings(value, &tensor));
    if (count != (size_t)sdx_tensor_count(tensor))
        return ort_status(ORT_FAIL, "offsets buffer is not equal to tensor size");
    ORT_TRY(data_length(value, &total));
    if (size < total)
        return ort_status(ORT_FAIL, "output buffer is too small. Use GetStringTensorDataLength.");
    char *at = to;
    for (size_t i = 0; i < count; i++) {
        const char *text = sdx_tensor_string(tensor, (int64_t)i, &length);
        offsets[i] = (size_t)(at - (char *)to);
        memcpy(at, text, length);
        at += length;
    }
    return NULL;
}

static OrtStatusPtr element(const OrtValue *value, size_t index, const char *range,
                            const char **text, size_t *length)
{
    sdx_tensor *tensor = NULL;
    ORT_TRY(need_strings(value, &tensor));
    if (index >= (size_t)sdx_tensor_count(tensor)) return ort_status(ORT_INVALID_ARGUMENT, range);
    *text = sdx_tensor_string(tensor, (int64_t)index, length);
    return NULL;
}

static OrtStatusPtr element_length(const OrtValue *value, size_t index, size_t *out)
{
    const char *text;
    *out = 0;
    return element(value, index, "index is out of bounds", &text, out);
}

static OrtStatusPtr get_element(const OrtValue *value, size_t size, size_t index, void *to)
{
    const char *text = NULL;
    size_t length = 0;
    ORT_TRY(element(value, index, "element index is out of bounds", &text, &length));
    if (size < length) return ort_status(ORT_FAIL, "buffer size is too small for string element");
    memcpy(to, text, length);
    return NULL;
}

void ort_fill_strings(OrtApi *api)
{
    api->FillStringTensor = fill;
    api->FillStringTensorElement = fill_element;
    api->GetResizedStringTensorElementBuffer = resize_element;
    api->GetStringTensorDataLength = data_length;
    api->GetStringTensorContent = content;
    api->GetStringTensorElementLength = element_length;
    api->GetStringTensorElement = get_element;
}
