/* SPDX-License-Identifier: Apache-2.0
 * Options of a verb, as a table: reading, checking, help text. */
#ifndef SDX_CLI_ARGS_H
#define SDX_CLI_ARGS_H

#include "cli.h"

enum sdx_cli_option_kind {
    SDX_CLI_FLAG,   /* bool */
    SDX_CLI_INT,    /* long, in [least, most] */
    SDX_CLI_NUMBER, /* double, in [least, most] */
    SDX_CLI_TEXT,   /* const char *; the argument's memory */
    SDX_CLI_LIST,   /* struct sdx_cli_list; may be given several times */
    SDX_CLI_SIZE    /* size_t: bytes, with K, M or G behind */
};

struct sdx_cli_list {
    int count, capacity;
    const char **items;
};

struct sdx_cli_option {
    const char *name; /* with the two dashes */
    enum sdx_cli_option_kind kind;
    void *target;
    const char *argument; /* as the help names it; NULL for flags */
    const char *help;
    double least, most; /* both 0: no limits */
};

/* Reads `argv` by the table `options` (which ends with a NULL name) and those of every verb into
 * `cli`; what is no option goes to `files`, of which there must be `least` to `most` (most 0: any
 * number). Returns -1 to go on, or an exit code when the verb is over: --help, or wrong usage. */
int sdx_cli_args(const struct sdx_cli_verb *verb, struct sdx_cli *cli,
                 const struct sdx_cli_option *options, int argc, char **argv,
                 struct sdx_cli_list *files, int least, int most);

/* "sardonyx: VERB: ..." and where help is; returns SDX_CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int sdx_cli_usage(const struct sdx_cli_verb *verb,
                                                        const char *format, ...);

void sdx_cli_list_add(struct sdx_cli_list *list, const char *item);
void sdx_cli_list_free(struct sdx_cli_list *list);

#endif
