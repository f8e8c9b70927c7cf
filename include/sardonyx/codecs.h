/* SPDX-License-Identifier: Apache-2.0
 * Between the engine and libsardonyx_codecs.so, the optional module that decodes pictures for the
 * operator ImageDecoder (docs/adr/0017). Programs need not include this; another module with the
 * same two functions may stand in its place: SDX_CODECS names its file. */
#ifndef SARDONYX_CODECS_H
#define SARDONYX_CODECS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SDX_CODECS_VERSION = 1, SDX_CODECS_ERROR_SIZE = 256 };

enum sdx_codecs_pixels { SDX_CODECS_RGB, SDX_CODECS_BGR, SDX_CODECS_GRAY };

enum sdx_codecs_result {
    SDX_CODECS_OK,
    SDX_CODECS_BAD_PICTURE, /* broken, of no known kind, or with more pixels than allowed */
    SDX_CODECS_MISSING,     /* the module was built without the library for it */
    SDX_CODECS_MEMORY       /* no memory, or take_pixels refused */
};

struct sdx_codecs_picture {
    const unsigned char *data; /* the encoded picture */
    size_t size;
    enum sdx_codecs_pixels pixels;
    int64_t pixels_most; /* height * width above it is BAD_PICTURE before anything is allocated */
    /* Memory for [height, width, channels] bytes; called once, when the picture's size is known.
     * NULL: there is none. */
    unsigned char *(*take_pixels)(void *user, int64_t height, int64_t width, int64_t channels);
    void *user;
    char error[SDX_CODECS_ERROR_SIZE]; /* one line, when the result is not OK */
};

/* SDX_CODECS_VERSION of the module. */
typedef int sdx_codecs_version_fn(void);
typedef enum sdx_codecs_result sdx_codecs_decode_fn(struct sdx_codecs_picture *picture);

#define SDX_CODECS_VERSION_NAME "sdx_codecs_version"
#define SDX_CODECS_DECODE_NAME  "sdx_codecs_decode"

#ifdef __cplusplus
}
#endif
#endif
