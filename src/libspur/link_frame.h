/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of a link: what is said, and what to make of what was heard.
 */
#ifndef SPUR_LIBSPUR_LINK_FRAME_H
#define SPUR_LIBSPUR_LINK_FRAME_H

#include "libspur/link.h"

enum link_dealt {
    LINK_TAKEN,
    LINK_NOT_TAKEN, /* the caller has no room: the same frame again later */
    LINK_BROKEN,    /* nonsense: connect anew */
    LINK_LATER,     /* the node asks to come again */
    LINK_GONE,      /* the link is over */
};

void link_frame_open(struct link *l);
enum link_dealt link_frame_deal(struct link *l, const struct stream_header *h, const uint8_t *p);
void link_frame_wishes(struct link *l); /* signals and the like that wait */
bool link_frame_input(struct link *l);  /* one frame of input, or its end; false: nothing to send now */

#endif
