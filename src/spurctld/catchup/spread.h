/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk between members, for spread.c (out), take.c (in) and want.c (asked for).
 */
#ifndef SPUR_SPURCTLD_CATCHUP_SPREAD_H
#define SPUR_SPURCTLD_CATCHUP_SPREAD_H

#include "io/blob/blob.h"
#include "spurctld/catchup/inside.h"

#define BULK_PART_BYTES (384u << 10) /* of one message */

static inline uint64_t bulk_key(const struct blob_hash *h) {
    uint64_t k;
    __builtin_memcpy(&k, h->b, sizeof(k));
    return k;
}

/* want.c */
struct want;
struct want *want_new(struct catchup *c);
void want_stop(struct want *w);
void want_free(struct want *w);
void want_blob(struct want *w, const struct blob_hash *h); /* nothing where it is here, or asked for already */

/* take.c: large blobs that come in parts */
struct taking_in;
struct taking_in *taking_in_new(struct catchup *c);
void taking_in_free(struct taking_in *t);

struct want *spread_want(const struct spread *s);
struct taking_in *spread_taking(const struct spread *s);

#endif
