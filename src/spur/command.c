/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/command.h"

static const struct command commands[] = {
#define COMMAND(verb, slurm, group, descriptor, doc)                                                                   \
    {#verb, #slurm, #group, doc, cmd_##descriptor, cmd_##descriptor##_options},
#define OWN(verb, group, descriptor, doc) {#verb, NULL, #group, doc, cmd_##descriptor, cmd_##descriptor##_options},
#define ALIAS(name, verb)
#define KEYWORD(name, verb)
#define NOT_YET(verb, slurm)
#include "spur/commands.def"
#undef COMMAND
#undef OWN
#undef ALIAS
#undef KEYWORD
#undef NOT_YET
};

struct other {
    const char *name, *of;
    enum { OTHER_ALIAS, OTHER_KEYWORD, OTHER_NOT_YET } kind;
};
static const struct other others[] = {
#define COMMAND(verb, slurm, group, descriptor, doc)
#define OWN(verb, group, descriptor, doc)
#define ALIAS(name, verb) {#name, #verb, OTHER_ALIAS},
#define KEYWORD(name, verb) {#name, #verb, OTHER_KEYWORD},
#define NOT_YET(verb, slurm) {#verb, #slurm, OTHER_NOT_YET},
#include "spur/commands.def"
#undef COMMAND
#undef OWN
#undef ALIAS
#undef KEYWORD
#undef NOT_YET
};

size_t command_count(void) {
    return ARRAY_LEN(commands);
}

const struct command *command_at(size_t i) {
    return &commands[i];
}

const struct command *command_slurm(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (str_eq(commands[i].slurm, name))
            return &commands[i];
    return NULL;
}

const struct command *command_find(const char *verb, bool *out_is_keyword) {
    *out_is_keyword = false;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (others[i].kind == OTHER_NOT_YET || !str_eq(others[i].name, verb))
            continue;
        *out_is_keyword = others[i].kind == OTHER_KEYWORD;
        verb = others[i].of;
        break;
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (str_eq(commands[i].verb, verb))
            return &commands[i];
    return command_slurm(verb);
}

size_t command_alias_count(void) {
    return ARRAY_LEN(others);
}

const char *command_alias_name(size_t i) {
    return others[i].name;
}

const char *command_alias_of(size_t i) {
    return others[i].kind == OTHER_ALIAS ? others[i].of : NULL;
}

const char *command_not_yet(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (others[i].kind != OTHER_NOT_YET)
            continue;
        if (str_eq(others[i].name, name))
            return others[i].of;
        if (str_eq(others[i].of, name))
            return others[i].name;
    }
    return NULL;
}
