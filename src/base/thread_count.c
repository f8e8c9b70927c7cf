/* SPDX-License-Identifier: Apache-2.0
 * How many threads this process may use, and the clock. Quotas: cgroup v2 cpu.max and v1
 * cpu.cfs_quota_us / cpu.cfs_period_us, of the process's group and of every group above it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread_pool.h"
#include "base/str.h"

enum { PATH_LONGEST = 1024, THREADS_MOST = 1024 };

static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool ok = fgets(line, size, file) != NULL;
    fclose(file);
    return ok;
}

/* quota / period, rounded up; 0: no limit. */
static int64_t quota_cpus(long long quota, long long period)
{
    return quota > 0 && period > 0 ? quota / period + (quota % period != 0) : 0;
}

static int64_t read_quota_v2(const char *folder)
{
    char path[PATH_LONGEST + 64], line[128];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    return sscanf(line, "%lld %lld", &quota, &period) == 2 ? quota_cpus(quota, period) : 0;
}

static int64_t read_quota_v1(const char *folder)
{
    char path[PATH_LONGEST + 64], line[128];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    long long quota = atoll(line);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line)) return 0;
    return quota_cpus(quota, atoll(line));
}

/* The least quota of `group` below `mount` and of the groups above it. A container often sees only
 * the top of its own tree: groups that are not there say nothing. */
static int64_t least_quota(const char *mount, const char *group,
                           int64_t (*read_quota)(const char *))
{
    char folder[PATH_LONGEST];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || length >= PATH_LONGEST) return 0;
    size_t top = strlen(mount);
    int64_t least = 0;
    for (;;) {
        int64_t cpus = read_quota(folder);
        if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
        char *slash = strrchr(folder + top, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

/* Is "cpu" one of the comma-separated controllers? */
static bool names_cpu(const char *controllers, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t end = i;
        while (end < length && controllers[end] != ',')
            end++;
        if (sdx_str_is((struct sdx_str){controllers + i, end - i}, "cpu")) return true;
        i = end;
    }
    return false;
}

int sdx_threads_quota(const char *root)
{
    char path[PATH_LONGEST], mount[PATH_LONGEST], line[PATH_LONGEST];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int64_t least = 0;
    while (fgets(line, sizeof line, file) != NULL) { /* "ID:controllers:/group" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        size_t length = (size_t)(group - controllers - 1);
        int64_t cpus = 0;
        if (length == 0) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
            cpus = least_quota(mount, group + 1, read_quota_v2);
        } else if (names_cpu(controllers + 1, length)) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
            cpus = least_quota(mount, group + 1, read_quota_v1);
        }
        if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
    }
    fclose(file);
    return least > THREADS_MOST ? THREADS_MOST : (int)least;
}

static int count_affinity(void)
{
#if defined(__linux__)
    cpu_set_t few;
    if (sched_getaffinity(0, sizeof few, &few) == 0) return CPU_COUNT(&few);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > THREADS_MOST ? THREADS_MOST : (int)online;
}

int sdx_threads_available(void)
{
    int threads = count_affinity();
    int quota = sdx_threads_quota("");
    if (quota > 0 && quota < threads) threads = quota;
    int64_t asked;
    if (sdx_parse_i64(sdx_str(getenv("SDX_THREADS")), &asked) && asked > 0 && asked < threads)
        threads = (int)asked;
    return threads < 1 ? 1 : threads;
}

int64_t sdx_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
