/* SPDX-License-Identifier: Apache-2.0
 * Statuses: what every function returns, NULL for success. */
#include "ort_families.h"

#include <stdlib.h>
#include <string.h>

struct OrtStatus {
    OrtErrorCode code;
    const char *text;
    char own[];
};

OrtStatusPtr ort_status(OrtErrorCode code, const char *text)
{
    static OrtStatus no_memory = {.code = ORT_FAIL, .text = "out of memory"};
    if (code == ORT_OK) return NULL;
    const size_t size = strlen(text) + 1;
    OrtStatus *status = malloc(sizeof *status + size);
    if (!status) return &no_memory;
    status->code = code;
    status->text = memcpy(status->own, text, size);
    return status;
}

static OrtErrorCode get_error_code(const OrtStatus *status)
{
    return status ? status->code : ORT_OK;
}

const char *ort_status_text(const OrtStatus *status)
{
    return status ? status->text : "";
}

void ort_release_status(OrtStatus *status)
{
    if (status && status->text == status->own) free(status);
}

void ort_fill_status(OrtApi *api)
{
    api->CreateStatus = ort_status;
    api->GetErrorCode = get_error_code;
    api->GetErrorMessage = ort_status_text;
    api->ReleaseStatus = ort_release_status;
}
