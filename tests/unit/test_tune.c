/* SPDX-License-Identifier: Apache-2.0
 * Tuned sessions: choices are measured, kept in a file, taken from there; several processes at once
 * leave a valid file, one that is broken or foreign is named and ignored. */
#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cpu.h"
#include "base/machine.h"
#include "base/str.h"
#include "make_model.h"
#include "run/session.h"

enum { CHANNELS = 32, FILE_MOST = 1 << 16 };

static char folder[80], file[400];
static char logged[2000];

static void take_log(sdx_log_level level, const char *area, const char *text, void *user)
{
    (void)user;
    const size_t at = strlen(logged);
    if (level >= SDX_LOG_WARNING) snprintf(logged + at, sizeof logged - at, "%s: %s\n", area, text);
}

/* y = conv3x3(x), x of `size` x `size`. */
static void make_conv(struct make *m, int64_t size)
{
    static float weights[CHANNELS * CHANNELS * 9];
    for (int i = 0; i < CHANNELS * CHANNELS * 9; i++)
        weights[i] = (float)(i % 17 - 8) / 64;
    make_init(m);
    make_input(m, "x", SDX_F32, 4, (int64_t[]){1, CHANNELS, size, size});
    make_initializer(m, "w", SDX_F32, 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, weights,
                     sizeof weights);
    make_node(m, "Conv", "x w -> y");
    make_output(m, "y", SDX_F32, -1, NULL);
}

/* One run of a tuned session: the kernel of the convolution, a static text. */
static const char *run_tuned(int64_t size)
{
    struct make m;
    char path[80];
    sdx_context_options options;
    sdx_session_options how;
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *x = NULL, *y = NULL;
    const char *kernel = NULL;
    make_conv(&m, size);
    make_write(&m, path, sizeof path);
    sdx_context_options_init(&options);
    options.log = take_log;
    sdx_session_options_init(&how);
    how.tune = true;
    sdx_context *cx = sdx_context_create(&options);
    if (sdx_model_open(cx, path, NULL, &model) || sdx_session_create(cx, model, &how, &session) ||
        sdx_tensor_create(cx, SDX_F32, 4, (int64_t[]){1, CHANNELS, size, size}, &x) ||
        sdx_run(session, 1, &(sdx_feed){"x", x}, 1, NULL, &y))
        fail_msg("%s", sdx_error(cx));
    const struct sdx_segment *s = session->graph.runner.plans;
    for (int32_t i = 0; i < s->list.count; i++)
        if (strncmp(s->list.steps[i].kernel, "conv", 4) == 0) kernel = s->list.steps[i].kernel;
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(y);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    sdx_context_destroy(cx);
    unlink(path);
    return kernel;
}

static char *read_file(size_t *size)
{
    static char text[FILE_MOST];
    FILE *f = fopen(file, "rb");
    if (!f) fail_msg("no file %s", file);
    *size = fread(text, 1, sizeof text - 1, f);
    text[*size] = 0;
    fclose(f);
    return text;
}

static void write_file(const char *text, size_t size)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
}

/* Is it complete, with so many choices? */
static void assert_valid(int count)
{
    size_t size;
    char *text = read_file(&size), expected[64];
    char *end = strstr(text, "\nend ");
    assert_non_null(end);
    snprintf(expected, sizeof expected, "end %d %016llx\n", count,
             (unsigned long long)sdx_hash_bytes(text, (size_t)(end + 1 - text), 1));
    assert_string_equal(end + 1, expected);
}

static int set_up(void **state)
{
    (void)state;
    char model[100], command[200];
    snprintf(folder, sizeof folder, "/tmp/sdx_tune_%ld", (long)getpid());
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) return -1;
    setenv("XDG_CACHE_HOME", folder, 1);
    sdx_machine_cpu(model, sizeof model);
    assert_true(model[0] != 0);
    snprintf(file, sizeof file, "%s/sardonyx/tune-%s-%s-", folder, SDX_VERSION_STRING,
             sdx_cpu_set_name(sdx_cpu_best()));
    for (const char *c = model; *c; c++) {
        const size_t n = strlen(file);
        const bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= 'a' && *c <= 'z') || *c == '.';
        if (plain || file[n - 1] != '-')
            snprintf(file + n, sizeof file - n, "%c", plain ? *c : '-');
    }
    strncat(file, ".txt", sizeof file - strlen(file) - 1);
    logged[0] = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* The recorded way, whichever that is, is the one that runs, and nothing is measured again. */
static void test_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *way, *kernel;
    } ways[] = {{"block", "conv_block_direct"},
                {"winograd_2", "conv_block_winograd_2"},
                {"winograd_4", "conv_block_winograd_4"},
                {"winograd_6", "conv_block_winograd_6"},
                {"plain", "conv_f32"}};
    assert_non_null(run_tuned(20));
    assert_string_equal(logged, "");
    assert_valid(1);
    size_t size;
    char head[2000], *text = read_file(&size), *tab = strchr(text, '\t');
    assert_non_null(tab);
    assert_contains(text, "Conv 32x32x1x0 in 1x20x20 out 1x18x18 kernel 1x3x3 stride");
    snprintf(head, sizeof head, "%.*s", (int)(tab + 1 - text), text);
    for (int i = 0; i < SDX_COUNT_OF(ways); i++) {
        char forged[3000];
        int n = snprintf(forged, sizeof forged, "%s%s\n", head, ways[i].way);
        n += snprintf(forged + n, sizeof forged - (size_t)n, "end 1 %016llx\n",
                      (unsigned long long)sdx_hash_bytes(forged, (size_t)n, 1));
        write_file(forged, (size_t)n);
        assert_string_equal(run_tuned(20), ways[i].kernel);
        assert_string_equal(read_file(&size), forged);
    }
    assert_string_equal(logged, "");
}

/* Each fault in one line that names the file; the run goes on and the file is valid again. */
static void test_broken(void **state)
{
    (void)state;
    assert_non_null(run_tuned(20));
    size_t size;
    char good[FILE_MOST], *text = read_file(&size);
    memcpy(good, text, size + 1);
    for (int turn = 0; turn < 6; turn++) {
        char bad[FILE_MOST];
        size_t n = size;
        memcpy(bad, good, size + 1);
        if (turn == 0) n = 0;
        if (turn == 1) n -= 5;
        if (turn == 2) bad[size / 2] ^= 1;
        if (turn == 3) bad[14] = '9'; /* the format */
        if (turn == 4) memset(bad, 0, n);
        if (turn == 5) bad[n++] = 'x';
        write_file(bad, n);
        logged[0] = 0;
        assert_non_null(run_tuned(20));
        assert_contains(logged, file);
        assert_contains(logged, turn == 3 ? "is ignored: it is of another version or CPU"
                                          : "is ignored: it is broken");
        assert_valid(1);
    }
    logged[0] = 0;
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_non_null(run_tuned(20));
    assert_contains(logged, "it is ignored");
    assert_contains(logged, "choices are not kept: ");
    assert_int_equal(rmdir(file), 0);
}

/* Processes that tune at once: what each has measured is there. */
static void test_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            bool ok = run_tuned(10 + i) && run_tuned(14) && !logged[0];
            _exit(ok ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_valid(PROCESSES + 1);
}

/* Nothing can be written: the session runs, choices last as long as it does. */
static void test_no_folder(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    assert_non_null(run_tuned(20));
    assert_contains(logged, "choices are not kept: cannot make");
    setenv("XDG_CACHE_HOME", "relative", 1);
    const char *home = getenv("HOME");
    char *before = home ? strdup(home) : NULL;
    unsetenv("HOME");
    logged[0] = 0;
    assert_non_null(run_tuned(20));
    assert_contains(logged, "choices are not kept: neither XDG_CACHE_HOME nor HOME is set");
    if (before) setenv("HOME", before, 1);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
