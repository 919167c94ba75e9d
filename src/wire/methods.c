/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/methods.h"

#include "base/mem.h"
#include "wire/messages.h"

static const struct wire_method_info methods[] = {
#define METHOD(service, name, request, reply)                                                                          \
    {#service, #name, "/spur.v1." #service "/" #name, request##_rec, reply##_rec},
#include "wire/methods.def"
#undef METHOD
};

const struct wire_method_info *wire_method(enum wire_method m) {
    must((unsigned)m < WIRE_N_METHODS);
    return &methods[m];
}
