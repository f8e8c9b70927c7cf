/* SPDX-License-Identifier: Apache-2.0
 * Threads this process may use: cgroup quotas read from made-up trees, affinity, SDX_THREADS. */
#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char top[64];

static void put(const char *relative, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", top, relative);
    for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/sdx_test_threads_XXXXXX");
    return mkdtemp(top) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static void version_2(void **state)
{
    (void)state;
    assert_int_equal(sdx_threads_quota(top), 0); /* nothing there */
    put("proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(sdx_threads_quota(top), 0);
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(sdx_threads_quota(top), 0);
    put("sys/fs/cgroup/a/b/cpu.max", "350000 100000\n");
    assert_int_equal(sdx_threads_quota(top), 4);
    put("sys/fs/cgroup/a/cpu.max", "150000 100000\n"); /* a parent may be tighter */
    assert_int_equal(sdx_threads_quota(top), 2);
    put("sys/fs/cgroup/cpu.max", "1000 100000\n");
    assert_int_equal(sdx_threads_quota(top), 1);
    put("sys/fs/cgroup/cpu.max", "broken\n");
    assert_int_equal(sdx_threads_quota(top), 2);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_int_equal(sdx_threads_quota(top), 3);
    put("proc/self/cgroup", "0::/not/seen/from/here\n"); /* a container's view */
    assert_int_equal(sdx_threads_quota(top), 3);
}

static void version_1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/g\n1:name=systemd:/g\n");
    put("sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(sdx_threads_quota(top), 0);
    put("sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "500001\n");
    assert_int_equal(sdx_threads_quota(top), 6);
    put("proc/self/cgroup", "5:cpuset:/g\n4:cpuacct:/g\n");
    assert_int_equal(sdx_threads_quota(top), 0);
}

static void process_limits(void **state)
{
    (void)state;
    unsetenv("SDX_THREADS");
    int all = sdx_threads_available();
    assert_true(all >= 1);
    setenv("SDX_THREADS", "1", 1);
    assert_int_equal(sdx_threads_available(), 1);
    static const char *const useless[] = {"", "0", "-3", "many", "100000"};
    for (int i = 0; i < SDX_COUNT_OF(useless); i++) {
        setenv("SDX_THREADS", useless[i], 1);
        assert_int_equal(sdx_threads_available(), all);
    }
    unsetenv("SDX_THREADS");
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sdx_threads_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(sdx_threads_available(), all);
}

static void clock_rises(void **state)
{
    (void)state;
    int64_t before = sdx_clock_ns();
    for (int i = 0; i < 1000; i++) {
        int64_t now = sdx_clock_ns();
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(process_limits),
        cmocka_unit_test(clock_rises),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
