/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the picture decoders: whatever the bytes are, a result and a line of text. The first byte
 * chooses the pixels. */
#include <stdlib.h>
#include <string.h>

#include "sardonyx/codecs.h"

sdx_codecs_decode_fn sdx_codecs_decode;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char *take_pixels(void *user, int64_t height, int64_t width, int64_t channels)
{
    unsigned char **pixels = user;
    *pixels = malloc((size_t)(height * width * channels));
    return *pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *pixels = NULL;
    if (size < 1) return 0;
    struct sdx_codecs_picture picture = {.data = data + 1,
                                         .size = size - 1,
                                         .pixels = (enum sdx_codecs_pixels)(data[0] % 3),
                                         .pixels_most = 1 << 20,
                                         .take_pixels = take_pixels,
                                         .user = &pixels};
    enum sdx_codecs_result result = sdx_codecs_decode(&picture);
    if ((result == SDX_CODECS_OK) != (picture.error[0] == 0)) abort();
    free(pixels);
    return 0;
}
