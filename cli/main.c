/* SPDX-License-Identifier: Apache-2.0
 * The `sardonyx` program: finds the verb and runs it. What the verbs share is here too. */
#include "args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUMMARY(name, word, summary) const char sdx_cli_summary_##name[] = summary;
SDX_CLI_VISION_VERBS(SUMMARY)
#undef SUMMARY

static const struct sdx_cli_verb *const verbs[] = {
#ifdef SDX_CLI_VISION_PROGRAM
#define VERB(name, word, summary) &sdx_cli_verb_##name,
    SDX_CLI_VISION_VERBS(VERB)
#else
#define VERB(name) &sdx_cli_verb_##name,
    SDX_CLI_VERBS(VERB)
#endif
#undef VERB
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

/* Verbs of the other program; empty in that itself and where it is not built. */
static const struct other_verb {
    const char *name, *summary;
} others[] = {
#ifdef SDX_CLI_VISION
#define OTHER(name, word, summary) {word, sdx_cli_summary_##name},
    SDX_CLI_VISION_VERBS(OTHER)
#undef OTHER
#endif
        {NULL, NULL}};

char *sdx_cli_clean(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) sdx_cli_no_memory();
    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char)*p < 32 || *p == 127) *p = ' ';
    return copy;
}

void sdx_cli_no_memory(void)
{
    fputs("sardonyx: out of memory\n", stderr);
    _exit(SDX_CLI_FAILED);
}

int sdx_cli_fail(const struct sdx_cli *cli, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    char *line = sdx_cli_clean(length >= 0 ? text : "out of memory");
    if (length >= 0) free(text);
    fflush(stdout);
    /* A progress bar may stand on the line. */
    fprintf(stderr, "%ssardonyx: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", line);
    if (cli->json) {
        json_t *value = json_string(line);
        json_t *object = json_object();
        json_object_set_new(object, "error", value != NULL ? value : json_string("unprintable"));
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(object);
    }
    free(line);
    return SDX_CLI_FAILED;
}

static void print_log(sdx_log_level level, const char *area, const char *text, void *user)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    (void)user;
    char *line = sdx_cli_clean(text);
    fprintf(stderr, "sardonyx: %s: %s: %s\n", names[level & 3], area, line);
    free(line);
}

int sdx_cli_start(struct sdx_cli *cli)
{
    bool known = cli->cpu == NULL;
    for (int i = 0; !known && sdx_cpu_set(i, NULL); i++)
        known = strcmp(cli->cpu, sdx_cpu_set(i, NULL)) == 0;
    if (!known) {
        (void)sdx_cli_fail(cli, "--cpu: \"%s\" is not the name of an instruction set", cli->cpu);
        return SDX_CLI_USAGE;
    }
    if (cli->cpu != NULL && setenv("SDX_CPU", cli->cpu, 1) != 0)
        return sdx_cli_fail(cli, "--cpu: cannot set SDX_CPU");
    sdx_context_options options;
    sdx_context_options_init(&options);
    options.threads = (int)cli->threads;
    options.memory_limit = cli->memory_limit;
    options.log = print_log;
    options.log_level = cli->verbose ? SDX_LOG_DEBUG : SDX_LOG_WARNING;
    cli->cx = sdx_context_create(&options);
    if (cli->cx == NULL) return sdx_cli_fail(cli, "no memory for a context");
    return SDX_CLI_OK;
}

void sdx_cli_end(struct sdx_cli *cli)
{
    sdx_context_destroy(cli->cx);
    cli->cx = NULL;
}

int sdx_cli_open(const struct sdx_cli *cli, const char *path, sdx_model **model)
{
    if (sdx_model_open(cli->cx, path, NULL, model) != SDX_OK) {
        const char *why = sdx_error(cli->cx);
        if (strstr(why, path) != NULL) return sdx_cli_fail(cli, "%s", why);
        return sdx_cli_fail(cli, "%s: %s", path, why);
    }
    return SDX_CLI_OK;
}

int sdx_cli_session_options(const struct sdx_cli_verb *verb, const char *level,
                            sdx_session_options *options)
{
    static const struct {
        const char *name;
        sdx_level level;
    } levels[] = {{"none", SDX_LEVEL_NONE},
                  {"basic", SDX_LEVEL_BASIC},
                  {"extended", SDX_LEVEL_EXTENDED},
                  {"all", SDX_LEVEL_ALL}};
    sdx_session_options_init(options);
    if (level == NULL) return SDX_CLI_OK;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(level, levels[i].name) == 0) {
            options->level = levels[i].level;
            return SDX_CLI_OK;
        }
    return sdx_cli_usage(verb, "--level: '%.60s' is not none, basic, extended or all", level);
}

bool sdx_cli_make_folder(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL) sdx_cli_no_memory();
    bool ok = true;
    for (char *p = copy + 1; ok; p++) {
        if (*p != '/' && *p != '\0') continue;
        char held = *p;
        *p = '\0';
        struct stat info;
        ok = mkdir(copy, 0777) == 0 || (stat(copy, &info) == 0 && S_ISDIR(info.st_mode));
        *p = held;
        if (held == '\0') break;
    }
    int why = errno;
    free(copy);
    errno = why;
    return ok;
}

/* A value with three digits and a unit's letter. */
static const char *with_unit(double value, double base, const char *end)
{
    static char ring[8][32];
    static int at;
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    char *text = ring[at++ % 8];
    int unit = 0;
    while (value >= base && unit < 5) {
        value /= base;
        unit++;
    }
    int digits = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    const char *letter = base == 1024 && unit == 1 ? "K" : units[unit];
    snprintf(text, sizeof ring[0], "%.*f %s%s", digits, value, letter, end);
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == ' ') text[length - 1] = '\0';
    return text;
}

const char *sdx_cli_bytes(double bytes)
{
    return with_unit(bytes, 1024, "B");
}

const char *sdx_cli_count(double count)
{
    return with_unit(count, 1000, "");
}

double sdx_cli_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void print_help(FILE *to)
{
    fprintf(to, "Usage: sardonyx VERB [arguments]\n\n"
                "Load, check, run and measure ONNX models.\n\nVerbs:\n");
    for (int i = 0; i < VERB_COUNT; i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    for (int i = 0; others[i].name != NULL; i++)
        fprintf(to, "  %-10s %s\n", others[i].name, others[i].summary);
    fprintf(to, "\n  sardonyx VERB --help     options and examples of a verb\n"
                "  sardonyx --version       version, instruction set\n\n"
                "Examples:\n"
                "  sardonyx info model.onnx\n"
                "  sardonyx run model.onnx --input x=random --out results\n"
                "  sardonyx bench model.onnx --threads 4 --json\n"
#ifdef SDX_CLI_VISION
                "  sardonyx detect yolov8n.onnx street.jpg --out annotated\n"
#endif
                "\nExit codes: 0 done, 1 failed or faults found, 2 wrong usage.\n");
}

static int print_version(bool json)
{
    if (json)
        printf("{\"version\":\"%s\",\"cpu\":\"%s\"}\n", sdx_version(), sdx_cpu_name());
    else
        printf("sardonyx %s (%s)\n", sdx_version(), sdx_cpu_name());
    return SDX_CLI_OK;
}

/* Results that could not be written are no success. */
static int close_stdout(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sardonyx: writing to stdout failed\n");
        return code == SDX_CLI_OK ? SDX_CLI_FAILED : code;
    }
    return code;
}

/* Becomes sardonyx-vision, which stands beside this program; argv[1] is one of its verbs. Returns
 * only when it is not there. */
static int run_other(char **argv)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    while (length > 0 && length < (ssize_t)sizeof path && path[length - 1] != '/')
        length--;
    static const char name[] = "sardonyx-vision";
    if (length <= 0 || (size_t)length + sizeof name > sizeof path) length = 0;
    memcpy(path + length, name, sizeof name);
    execvp(path, argv); /* without a folder: wherever programs are */
    fprintf(stderr, "sardonyx: cannot start %s, which has the verb %s: %s\n", path, argv[1],
            strerror(errno));
    return SDX_CLI_FAILED;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "sardonyx: no verb given (see sardonyx --help)\n");
        return SDX_CLI_USAGE;
    }
    const char *word = argv[1];
    bool topic = strcmp(word, "help") == 0 && argc > 2;
    if (strcmp(word, "--version") == 0)
        return close_stdout(print_version(argc > 2 && strcmp(argv[2], "--json") == 0));
    if (!topic &&
        (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)) {
        print_help(stdout);
        return close_stdout(SDX_CLI_OK);
    }
    if (topic) word = argv[2];
    for (int i = 0; i < VERB_COUNT; i++)
        if (strcmp(word, verbs[i]->name) == 0) {
            char *ask[] = {"--help"};
            return close_stdout(topic ? verbs[i]->run(verbs[i], 1, ask)
                                      : verbs[i]->run(verbs[i], argc - 2, argv + 2));
        }
    char ask[] = "--help", *help[] = {argv[0], argv[argc > 2 ? 2 : 1], ask, NULL};
    for (int i = 0; others[i].name != NULL; i++)
        if (strcmp(word, others[i].name) == 0) return run_other(topic ? help : argv);
    char *clean = sdx_cli_clean(word);
    fprintf(stderr, "sardonyx: unknown verb '%.100s' (see sardonyx --help)\n", clean);
    free(clean);
    return SDX_CLI_USAGE;
}
