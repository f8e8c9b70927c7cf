/* SPDX-License-Identifier: Apache-2.0
 * What all verbs of the `sardonyx` program share: the table of verbs, options, errors, output.
 *
 * A verb's run function gets the arguments after its name and returns the exit code: 0 done, 1 it
 * failed or found faults, 2 wrong usage. Results go to stdout, everything else to stderr. With
 * --json the last line of stdout is one object. */
#ifndef SDX_CLI_CLI_H
#define SDX_CLI_CLI_H

#include <sardonyx/sardonyx.h>

#include <jansson.h>

enum { SDX_CLI_OK = 0, SDX_CLI_FAILED = 1, SDX_CLI_USAGE = 2 };

struct sdx_cli_verb {
    const char *name;
    const char *usage;    /* arguments behind the name */
    const char *summary;  /* one line */
    const char *examples; /* lines, each begun by two spaces */
    int (*run)(const struct sdx_cli_verb *verb, int argc, char **argv);
};

/* One verb a file: cli/verb_<name>.c. */
#define SDX_CLI_VERBS(X)                                                                           \
    X(info)                                                                                        \
    X(check)                                                                                       \
    X(infer)                                                                                       \
    X(run)                                                                                         \
    X(test)                                                                                        \
    X(bench)                                                                                       \
    X(profile)                                                                                     \
    X(compile)                                                                                     \
    X(convert)                                                                                     \
    X(providers)                                                                                   \
    X(ops)
/* Verbs of pictures, with their summaries. They are in a program of their own, sardonyx-vision,
 * which this one becomes for them: what they link takes longer to load than most models to run. */
#define SDX_CLI_VISION_VERBS(X)                                                                    \
    X(classify, "classify",                                                                        \
      "Say what is in a picture. Preprocessing is ImageNet's unless the model's metadata tells.")  \
    X(detect, "detect",                                                                            \
      "Find objects: YOLOv5, v8, v9, v10, 11 and YOLOX models. Boxes are x0,y0,x1,y1 in pixels.")  \
    X(track_ball, "track-ball",                                                                    \
      "Follow a ball through a video, a camera or a stream, with TrackNetV3's models.")
#define SDX_CLI_DECLARE(name) extern const struct sdx_cli_verb sdx_cli_verb_##name;
#define SDX_CLI_DECLARE_VISION(name, word, summary)                                                \
    extern const struct sdx_cli_verb sdx_cli_verb_##name;                                          \
    extern const char sdx_cli_summary_##name[];
SDX_CLI_VERBS(SDX_CLI_DECLARE)
SDX_CLI_VISION_VERBS(SDX_CLI_DECLARE_VISION)
#undef SDX_CLI_DECLARE
#undef SDX_CLI_DECLARE_VISION

/* Options that every verb has, and what is made from them. */
struct sdx_cli {
    bool json;
    bool verbose;
    long threads;        /* 0: the library's choice */
    const char *cpu;     /* NULL: no mask */
    size_t memory_limit; /* bytes; 0: none */
    sdx_context *cx;
};

/* Sets SDX_CPU and makes the context: call once, after the options were read. Prints and returns
 * SDX_CLI_FAILED on failure. */
int sdx_cli_start(struct sdx_cli *cli);
void sdx_cli_end(struct sdx_cli *cli);

/* Prints "sardonyx: ..." as one line on stderr (and {"error": ...} on stdout with --json); returns
 * SDX_CLI_FAILED. */
__attribute__((format(printf, 2, 3))) int sdx_cli_fail(const struct sdx_cli *cli,
                                                       const char *format, ...);

/* Ends the program with exit code 1: for small memory that could not be had. */
_Noreturn void sdx_cli_no_memory(void);

/* Opens and says why when it cannot; `path` is named in the message. */
int sdx_cli_open(const struct sdx_cli *cli, const char *path, sdx_model **model);

/* Options of a session from --level's text (NULL: all); returns SDX_CLI_USAGE for an unknown one.
 */
int sdx_cli_session_options(const struct sdx_cli_verb *verb, const char *level,
                            sdx_session_options *options);

/* Makes a folder and those above it; false with errno set. */
bool sdx_cli_make_folder(const char *path);

/* `text` with control characters made blank, so that it stays one line of a terminal. Caller frees.
 */
char *sdx_cli_clean(const char *text);

/* "1.5 MB" and "3.2 G" into a small static ring of buffers. */
const char *sdx_cli_bytes(double bytes);
const char *sdx_cli_count(double count);

/* Milliseconds of a clock that only goes forward. */
double sdx_cli_now_ms(void);

#endif
