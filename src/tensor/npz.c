/* SPDX-License-Identifier: Apache-2.0
 * NumPy's .npz files: zip archives (PKWARE APPNOTE.TXT 6.3) of .npy members, read through the
 * central directory, stored or deflated; written stored. Zip64 (4 GiB and more), encryption and
 * archives of several parts are refused. */
#include "tensor/npy.h"

#include "base/file.h"
#include "tensor/inflate.h"
#include "tensor/npy_internal.h"

enum {
    END_SIZE = 22,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_MAX = 65535,
    RATIO_MAX = 1032, /* deflate's best: 258 bytes for two bits */
    DOS_DATE = 0x21   /* 1 January 1980: files do not depend on when they are written */
};
static const uint32_t END_MARK = 0x06054b50, CENTRAL_MARK = 0x02014b50, LOCAL_MARK = 0x04034b50;

static uint32_t u16_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32_at(const unsigned char *p)
{
    return u16_at(p) | u16_at(p + 2) << 16;
}

/* CRC-32 as zip has it: reflected polynomial 0xedb88320, four bits a step. */
static uint32_t crc_add(uint32_t crc, const void *bytes, size_t size)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const unsigned char *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* ---- reading ---- */

struct member {
    struct sdx_str name; /* without ".npy" */
    uint32_t flags, method, crc, packed, size, offset;
};

struct zip {
    struct sdx_context *cx;
    const unsigned char *data;
    size_t size;
    const unsigned char *directory, *directory_end;
    uint32_t count;
};

static enum sdx_status fail_zip(const struct zip *z, const char *text)
{
    return SDX_FAIL(z->cx, SDX_BAD_DATA, "npz: %s", text);
}

static enum sdx_status open_zip(struct zip *z)
{
    size_t lowest = z->size > END_SIZE + COMMENT_MAX ? z->size - END_SIZE - COMMENT_MAX : 0;
    size_t at = z->size < END_SIZE ? SIZE_MAX : z->size - END_SIZE;
    while (at != SIZE_MAX && u32_at(z->data + at) != END_MARK)
        at = at > lowest ? at - 1 : SIZE_MAX;
    if (at == SIZE_MAX) return fail_zip(z, "the file has no zip directory");
    const unsigned char *end = z->data + at;
    uint32_t size = u32_at(end + 12), offset = u32_at(end + 16);
    z->count = u16_at(end + 10);
    if (size == UINT32_MAX || offset == UINT32_MAX || z->count == 0xffff)
        return SDX_FAIL(z->cx, SDX_NOT_SUPPORTED,
                        "npz: archives of 4 GiB and more (zip64) are not supported");
    if (u16_at(end + 4) != 0 || u16_at(end + 8) != z->count)
        return SDX_FAIL(z->cx, SDX_NOT_SUPPORTED,
                        "npz: archives of several parts are not supported");
    if (offset > at || size > at - offset) return fail_zip(z, "the zip directory is out of bounds");
    z->directory = z->data + offset;
    z->directory_end = z->directory + size;
    return SDX_OK;
}

/* The member at *at, which moves to the next. */
static enum sdx_status next_member(const struct zip *z, const unsigned char **at, struct member *m)
{
    const unsigned char *p = *at;
    size_t left = (size_t)(z->directory_end - p);
    if (left < CENTRAL_SIZE || u32_at(p) != CENTRAL_MARK)
        return fail_zip(z, "the zip directory is broken");
    size_t name = u16_at(p + 28), length = CENTRAL_SIZE + name + u16_at(p + 30) + u16_at(p + 32);
    if (length > left) return fail_zip(z, "the zip directory ends within an entry");
    *m = (struct member){.name = {(const char *)p + CENTRAL_SIZE, name},
                         .flags = u16_at(p + 8),
                         .method = u16_at(p + 10),
                         .crc = u32_at(p + 16),
                         .packed = u32_at(p + 20),
                         .size = u32_at(p + 24),
                         .offset = u32_at(p + 42)};
    if (name >= 4 && memcmp(m->name.ptr + name - 4, ".npy", 4) == 0) m->name.len -= 4;
    *at += length;
    return SDX_OK;
}

static enum sdx_status find_member(const struct zip *z, const char *name, struct member *found)
{
    const unsigned char *at = z->directory;
    if (!name && z->count != 1)
        return SDX_FAIL(z->cx, SDX_INVALID_ARGUMENT,
                        "npz: the archive has %u members, and none was named", (unsigned)z->count);
    for (uint32_t i = 0; i < z->count; i++) {
        SDX_TRY(next_member(z, &at, found));
        if (!name || sdx_str_is(found->name, name)) return SDX_OK;
    }
    return SDX_FAIL(z->cx, SDX_NOT_FOUND, "npz: the archive has no member \"%s\"", name);
}

static enum sdx_status fail_member(const struct zip *z, const struct member *m, const char *text)
{
    return SDX_FAIL(z->cx, SDX_BAD_DATA, "npz: member \"%.*s\": %s", SDX_STR_ARG(m->name), text);
}

/* Where its bytes lie in the file. */
static enum sdx_status locate(const struct zip *z, const struct member *m,
                              const unsigned char **out)
{
    if (m->flags & 1)
        return SDX_FAIL(z->cx, SDX_NOT_SUPPORTED, "npz: member \"%.*s\" is encrypted",
                        SDX_STR_ARG(m->name));
    if (m->packed == UINT32_MAX || m->size == UINT32_MAX || m->offset == UINT32_MAX)
        return SDX_FAIL(z->cx, SDX_NOT_SUPPORTED,
                        "npz: member \"%.*s\": 4 GiB and more (zip64) are not supported",
                        SDX_STR_ARG(m->name));
    if (m->offset > z->size || z->size - m->offset < LOCAL_SIZE ||
        u32_at(z->data + m->offset) != LOCAL_MARK)
        return fail_member(z, m, "its header is not where the directory says");
    const unsigned char *local = z->data + m->offset;
    size_t skip = (size_t)LOCAL_SIZE + u16_at(local + 26) + u16_at(local + 28);
    size_t left = z->size - m->offset;
    if (skip > left || m->packed > left - skip) return fail_member(z, m, "it is out of bounds");
    *out = local + skip;
    return SDX_OK;
}

static enum sdx_status read_member(const struct zip *z, const struct member *m,
                                   struct sdx_tensor **out)
{
    const unsigned char *bytes = NULL;
    unsigned char *unpacked = NULL;
    SDX_TRY(locate(z, m, &bytes));
    if (m->method == 8) {
        if (m->size / RATIO_MAX > m->packed) return fail_member(z, m, "its size is not possible");
        unpacked = sdx_mem_alloc(z->cx->mem, SDX_MEM_TENSOR, m->size);
        if (!unpacked) return SDX_FAIL_MEMORY(z->cx);
        const char *fault = sdx_inflate(bytes, m->packed, unpacked, m->size);
        if (fault) {
            sdx_mem_free(z->cx->mem, unpacked);
            return SDX_FAIL(z->cx, SDX_BAD_DATA, "npz: member \"%.*s\" cannot be unpacked: %s",
                            SDX_STR_ARG(m->name), fault);
        }
        bytes = unpacked;
    } else if (m->method != 0) {
        return SDX_FAIL(z->cx, SDX_NOT_SUPPORTED,
                        "npz: member \"%.*s\" is packed by method %u, expected 0 or 8",
                        SDX_STR_ARG(m->name), (unsigned)m->method);
    } else if (m->packed != m->size) {
        return fail_member(z, m, "its two sizes differ");
    }
    enum sdx_status status = crc_add(0, bytes, m->size) == m->crc
                                 ? sdx_npy_read(z->cx, bytes, m->size, out)
                                 : fail_member(z, m, "its checksum is wrong");
    sdx_mem_free(z->cx->mem, unpacked);
    return status;
}

enum sdx_status sdx_npz_read(struct sdx_context *cx, const void *bytes, size_t size,
                             const char *name, struct sdx_tensor **out)
{
    struct zip z = {.cx = cx, .data = bytes, .size = size};
    struct member m = {0};
    *out = NULL;
    SDX_TRY(open_zip(&z));
    SDX_TRY(find_member(&z, name, &m));
    return read_member(&z, &m, out);
}

enum sdx_status sdx_npz_load(struct sdx_context *cx, const char *path, const char *member,
                             struct sdx_tensor **out)
{
    struct sdx_file_map map;
    *out = NULL;
    SDX_TRY(sdx_file_map_open(cx, path, &map));
    enum sdx_status status = sdx_npz_read(cx, map.data, map.size, member, out);
    sdx_file_map_close(&map);
    return status == SDX_OK ? SDX_OK : sdx_fail_where(cx, "%s", path);
}

/* ---- writing ---- */

struct written {
    uint32_t crc, size, offset;
};

struct zip_writer {
    struct sdx_npy_sink sink;
    struct sdx_context *cx;
    struct sdx_file_writer file;
    bool measuring; /* the walk before the writing one: size and checksum only */
    uint32_t crc;
    uint64_t size;   /* of the member */
    uint64_t offset; /* in the file */
};

static enum sdx_status put_file(struct zip_writer *w, const void *bytes, size_t size)
{
    w->offset += size;
    return size > 0 ? sdx_file_writer_put(&w->file, bytes, size) : SDX_OK;
}

static enum sdx_status put_member(struct sdx_npy_sink *sink, const void *bytes, size_t size)
{
    struct zip_writer *w = (struct zip_writer *)sink;
    if (!w->measuring) return put_file(w, bytes, size);
    w->crc = crc_add(w->crc, bytes, size);
    w->size += size;
    return SDX_OK;
}

static void put_u16(unsigned char **at, uint32_t value)
{
    *(*at)++ = (unsigned char)value;
    *(*at)++ = (unsigned char)(value >> 8);
}

static void put_u32(unsigned char **at, uint32_t value)
{
    put_u16(at, value & 0xffff);
    put_u16(at, value >> 16);
}

/* From "version needed" to "extra length": what both headers share. */
static void put_common(unsigned char **at, const struct written *m, size_t name)
{
    put_u16(at, 20);    /* version 2.0 */
    put_u16(at, 0x800); /* names are UTF-8 */
    put_u16(at, 0);     /* stored */
    put_u16(at, 0);
    put_u16(at, DOS_DATE);
    put_u32(at, m->crc);
    put_u32(at, m->size);
    put_u32(at, m->size);
    put_u16(at, (uint32_t)name + 4);
    put_u16(at, 0);
}

static enum sdx_status put_name(struct zip_writer *w, const char *name)
{
    SDX_TRY(put_file(w, name, strlen(name)));
    return put_file(w, ".npy", 4);
}

static enum sdx_status write_member(struct zip_writer *w, const char *name,
                                    const struct sdx_tensor *tensor, struct written *m)
{
    unsigned char header[LOCAL_SIZE], *at = header;
    if (strlen(name) > 0xffff - 4 || !sdx_str_is_utf8(sdx_str(name)))
        return SDX_FAIL(w->cx, SDX_INVALID_ARGUMENT, "npz: a member's name is not valid");
    w->measuring = true;
    w->crc = 0;
    w->size = 0;
    SDX_TRY(sdx_npy_put(w->cx, tensor, &w->sink));
    w->measuring = false;
    if (w->size >= UINT32_MAX || w->offset + w->size + LOCAL_SIZE >= UINT32_MAX)
        return SDX_FAIL(w->cx, SDX_NOT_SUPPORTED,
                        "npz: member \"%s\" takes the archive over 4 GiB, which is not supported",
                        name);
    *m = (struct written){w->crc, (uint32_t)w->size, (uint32_t)w->offset};
    put_u32(&at, LOCAL_MARK);
    put_common(&at, m, strlen(name));
    SDX_TRY(put_file(w, header, sizeof header));
    SDX_TRY(put_name(w, name));
    return sdx_npy_put(w->cx, tensor, &w->sink);
}

static enum sdx_status write_directory(struct zip_writer *w, int count, const char *const *names,
                                       const struct written *members)
{
    uint64_t begin = w->offset;
    for (int i = 0; i < count; i++) {
        unsigned char entry[CENTRAL_SIZE] = {0}, *at = entry;
        put_u32(&at, CENTRAL_MARK);
        put_u16(&at, 20);
        put_common(&at, &members[i], strlen(names[i]));
        at = entry + 42;
        put_u32(&at, members[i].offset);
        SDX_TRY(put_file(w, entry, sizeof entry));
        SDX_TRY(put_name(w, names[i]));
    }
    unsigned char end[END_SIZE] = {0}, *at = end;
    if (w->offset >= UINT32_MAX)
        return SDX_FAIL(w->cx, SDX_NOT_SUPPORTED, "npz: archives over 4 GiB are not supported");
    put_u32(&at, END_MARK);
    at = end + 8;
    put_u16(&at, (uint32_t)count);
    put_u16(&at, (uint32_t)count);
    put_u32(&at, (uint32_t)(w->offset - begin));
    put_u32(&at, (uint32_t)begin);
    return put_file(w, end, sizeof end);
}

enum sdx_status sdx_npz_save(struct sdx_context *cx, const char *path, int count,
                             const char *const *names, struct sdx_tensor *const *tensors)
{
    struct zip_writer w = {.sink.put = put_member, .cx = cx};
    if (count < 0 || count >= 0xffff)
        return SDX_FAIL(cx, SDX_INVALID_ARGUMENT, "npz: %d members, expected at most 65534", count);
    struct written *members =
        sdx_mem_calloc(cx->mem, SDX_MEM_TENSOR, (size_t)count, sizeof *members);
    if (!members) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = sdx_file_writer_open(cx, path, &w.file);
    if (status == SDX_OK) {
        for (int i = 0; i < count && status == SDX_OK; i++)
            status = write_member(&w, names[i], tensors[i], &members[i]);
        if (status == SDX_OK) status = write_directory(&w, count, names, members);
        if (status == SDX_OK) {
            status = sdx_file_writer_close(&w.file);
        } else {
            sdx_file_writer_abandon(&w.file);
            status = sdx_fail_where(cx, "%s", path);
        }
    }
    sdx_mem_free(cx->mem, members);
    return status;
}
