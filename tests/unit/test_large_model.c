/* SPDX-License-Identifier: Apache-2.0
 * A model of more than 2 GiB in one file: an initializer of zeros that nothing touches (a hole in
 * the file) beside a small one that a node uses. Loading and running it stays small in memory. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sardonyx/sardonyx.h>

enum { ROW = 1 << 16 };
static const int64_t rows = 9000; /* 9000 * 65536 floats: 2.36e9 bytes */

/* Bytes of protobuf put together from the inside out. */
struct bytes {
    unsigned char at[1024];
    size_t count;
};

static void put_varint(struct bytes *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        b->at[b->count++] = (unsigned char)(v | 0x80);
    b->at[b->count++] = (unsigned char)v;
}

static void put_int(struct bytes *b, int field, uint64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, v);
}

static void put_bytes(struct bytes *b, int field, const void *data, size_t size)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, size);
    memcpy(b->at + b->count, data, size);
    b->count += size;
}

static void put_text(struct bytes *b, int field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_message(struct bytes *b, int field, const struct bytes *message)
{
    put_bytes(b, field, message->at, message->count);
}

/* ValueInfoProto `name`, float[3]. */
static struct bytes value_info(const char *name)
{
    struct bytes dim = {.count = 0}, shape = dim, tensor = dim, type = dim, info = dim;
    put_int(&dim, 1, 3);
    put_message(&shape, 1, &dim);
    put_int(&tensor, 1, SDX_F32);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    return info;
}

/* The graph without the large initializer: y = x + small. */
static struct bytes small_graph(void)
{
    static const float small[3] = {1, 2, 3};
    struct bytes node = {.count = 0}, weights = node, graph = node, x = value_info("x"),
                 y = value_info("y");
    put_text(&node, 1, "x");
    put_text(&node, 1, "small");
    put_text(&node, 2, "y");
    put_text(&node, 4, "Add");
    put_message(&graph, 1, &node);
    put_text(&graph, 2, "g");
    put_int(&weights, 1, 3);
    put_int(&weights, 2, SDX_F32);
    put_text(&weights, 8, "small");
    put_bytes(&weights, 9, small, sizeof small);
    put_message(&graph, 5, &weights);
    put_message(&graph, 11, &x);
    put_message(&graph, 12, &y);
    return graph;
}

static void write_all(int fd, const struct bytes *b)
{
    assert_int_equal(write(fd, b->at, b->count), (ssize_t)b->count);
}

/* The large initializer is the last field of the graph and its raw_data the last of it. */
static void write_model(int fd)
{
    const uint64_t raw = (uint64_t)rows * ROW * sizeof(float);
    struct bytes opset = {.count = 0}, head = opset, tensor = opset, lead = opset,
                 graph = small_graph();
    put_int(&tensor, 1, (uint64_t)rows);
    put_int(&tensor, 1, ROW);
    put_int(&tensor, 2, SDX_F32);
    put_text(&tensor, 8, "large");
    put_varint(&tensor, 9 << 3 | 2);
    put_varint(&tensor, raw);
    put_varint(&lead, 5 << 3 | 2);
    put_varint(&lead, tensor.count + raw);
    put_int(&head, 1, 8);
    put_int(&opset, 2, 17);
    put_message(&head, 8, &opset);
    put_varint(&head, 7 << 3 | 2);
    put_varint(&head, graph.count + lead.count + tensor.count + raw);
    write_all(fd, &head);
    write_all(fd, &graph);
    write_all(fd, &lead);
    write_all(fd, &tensor);
    off_t end = lseek(fd, 0, SEEK_CUR);
    assert_true(end > 0);
    assert_int_equal(ftruncate(fd, end + (off_t)raw), 0);
}

static void test_larger_than_2_gib(void **state)
{
    (void)state;
    char path[] = "/tmp/sdx_large_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    write_model(fd);
    close(fd);
    float data[3] = {10, 20, 30};
    sdx_context *cx = sdx_context_create(NULL);
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL;
    if (sdx_model_open(cx, path, NULL, &model)) fail_msg("%s", sdx_error(cx));
    assert_int_equal(sdx_model_get_facts(model)->parameters, rows * ROW + 3);
    if (sdx_session_create(cx, model, NULL, &session)) fail_msg("%s", sdx_error(cx));
    assert_int_equal(sdx_tensor_view(cx, SDX_F32, 1, (int64_t[]){3}, data, &x), SDX_OK);
    if (sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y)) fail_msg("%s", sdx_error(cx));
    assert_true(sdx_tensor_f64(y, 2) == 33);
    assert_true(sdx_memory_peak(cx) < (size_t)16 << 20);
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_true(usage.ru_maxrss < 300 * 1024); /* KiB */
    sdx_tensor_destroy(y);
    sdx_tensor_destroy(x);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_larger_than_2_gib)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
