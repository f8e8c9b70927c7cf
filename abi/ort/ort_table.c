/* SPDX-License-Identifier: Apache-2.0
 * The table of functions that programs get. Each family fills in its own part; what is left gets a
 * function that returns a status with the name of what is missing. */
#include "ort_families.h"

#include <pthread.h>
#include <string.h>

#define ORT_EXPORT __attribute__((visibility("default")))

/* In place of a function that we lack: a status with its name, or NULL where something else than a
 * status is expected. */
#define ORT_MISSING(index, since, result, name, arguments)                                         \
    static OrtStatusPtr missing_##name(void)                                                       \
    {                                                                                              \
        const bool has_status = _Generic((result(*) arguments)NULL, OrtStatusPtr(*) arguments      \
                                         : true, default                                           \
                                         : false);                                                 \
        return has_status                                                                          \
                   ? ort_status(ORT_NOT_IMPLEMENTED, #name " is not implemented by Sardonyx")      \
                   : NULL;                                                                         \
    }
SDX_ORT_SLOTS(ORT_MISSING)
#undef ORT_MISSING

typedef OrtStatusPtr (*ort_slot)(void);
static const ort_slot missing[] = {
#define ORT_MISSING(index, since, result, name, arguments) missing_##name,
    SDX_ORT_SLOTS(ORT_MISSING)
#undef ORT_MISSING
};
enum { COUNT_SLOTS = sizeof missing / sizeof missing[0] };
_Static_assert(sizeof(OrtApi) == sizeof missing, "struct OrtApi is an array of functions");

static OrtApi table;
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
#define ORT_FILL(family) ort_fill_##family(&table);
    ORT_FAMILIES(ORT_FILL)
#undef ORT_FILL
    for (int i = 0; i < COUNT_SLOTS; i++) {
        unsigned char *slot = (unsigned char *)&table + (size_t)i * sizeof(ort_slot);
        ort_slot have;
        memcpy(&have, slot, sizeof have);
        if (!have) memcpy(slot, &missing[i], sizeof have);
    }
}

/* The newest table serves every version: functions are only ever added behind. Programs crash when
 * they get NULL, so whatever they ask for they get it. */
static const OrtApi *get_api(uint32_t version)
{
    (void)version;
    pthread_once(&filled, fill_table);
    return &table;
}

/* The second number is the newest version of the API: the Rust crate `ort` compares it. */
static const char *get_version(void)
{
    return "1.31.1";
}

/* What tells this library from a real one: the engine in it must not open itself as a provider. */
extern const char sdx_ort_abi;
ORT_EXPORT const char sdx_ort_abi = 1;

ORT_EXPORT const OrtApiBase *OrtGetApiBase(void)
{
    static const OrtApiBase base = {.GetApi = get_api, .GetVersionString = get_version};
    return &base;
}
