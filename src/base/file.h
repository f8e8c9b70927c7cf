/* SPDX-License-Identifier: Apache-2.0
 * Files: read-only mappings, whole-file reads, confined opening, and atomic writing. */
#ifndef SDX_BASE_FILE_H
#define SDX_BASE_FILE_H

#include "base/context.h"
#include "base/str.h"

struct sdx_file_map {
    const unsigned char *data; /* NULL when size is 0 */
    size_t size;
    bool mapped;
    bool is_file; /* the pages are the file's: they can be dropped and read again */
    const char
        *given_as; /* the name by which the caller gave the bytes; NULL: the file was found */
};

/* Maps a regular file. Errors name the path and the reason (not there, a directory, no permission
 * ...). */
SDX_MUST_CHECK enum sdx_status sdx_file_map_open(struct sdx_context *cx, const char *path,
                                                 struct sdx_file_map *out);
/* Maps `relative` below `folder`: refuses an empty or absolute path, "..", and anything whose real
 * path leaves the folder (symbolic links are resolved), and what is not a regular file. */
SDX_MUST_CHECK enum sdx_status sdx_file_map_open_below(struct sdx_context *cx, const char *folder,
                                                       struct sdx_str relative,
                                                       struct sdx_file_map *out);
void sdx_file_map_close(struct sdx_file_map *map);
/* Tells the system that these bytes of a mapping are not needed soon; they are read again when
 * touched. Bytes outside the mapping are left alone. */
void sdx_file_map_drop(const struct sdx_file_map *map, const void *bytes, size_t size);
/* Parts of the mapping stay in use and the rest is dropped: small pages, as a large one would bring
 * what lies beside a part into memory again. */
void sdx_file_map_use_small_pages(const struct sdx_file_map *map);
/* They will all be read: their pages come now, as many at a fault as the system brings. */
void sdx_file_map_fetch(const struct sdx_file_map *map, const void *bytes, size_t size);

/* Writes through a temporary file in the same folder and renames it: readers see all or nothing. */
struct sdx_file_writer {
    struct sdx_context *cx;
    void *stream; /* FILE */
    char *path, *path_temp;
    bool is_synced; /* set after opening: closing waits until the bytes are on the disk */
};
SDX_MUST_CHECK enum sdx_status sdx_file_writer_open(struct sdx_context *cx, const char *path,
                                                    struct sdx_file_writer *out);
SDX_MUST_CHECK enum sdx_status sdx_file_writer_put(struct sdx_file_writer *w, const void *bytes,
                                                   size_t size);
SDX_MUST_CHECK enum sdx_status sdx_file_writer_close(struct sdx_file_writer *w); /* commits */
void sdx_file_writer_abandon(struct sdx_file_writer *w); /* after a failure; removes the rest */
/* Folder part of a path in `arena`, "." when there is none. */
char *sdx_path_folder(struct sdx_arena *arena, const char *path);
#endif
