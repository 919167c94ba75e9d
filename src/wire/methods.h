/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of RPCs as data.
 */
#ifndef SPUR_WIRE_METHODS_H
#define SPUR_WIRE_METHODS_H

#include "base/rec.h"

enum wire_method {
#define METHOD(service, name, request, reply) WIRE_##service##_##name,
#include "wire/methods.def"
#undef METHOD
    WIRE_N_METHODS
};

struct wire_method_info {
    const char *service; /* "Controller" */
    const char *name;    /* "Submit" */
    const char *path;    /* "/spur.v1.Controller/Submit" */
    const struct rec_desc *(*request)(void);
    const struct rec_desc *(*reply)(void);
};

const struct wire_method_info *wire_method(enum wire_method m);

#endif
