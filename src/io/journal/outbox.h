/* SPDX-License-Identifier: Apache-2.0
 *
 * From the journal's thread to its owner.
 */
#ifndef SPUR_IO_JOURNAL_OUTBOX_H
#define SPUR_IO_JOURNAL_OUTBOX_H

#include "io/journal/journal.h"

enum out_kind { OUT_ENTRY, OUT_REFUSED, OUT_LEADER, OUT_SNAPSHOT, OUT_RESTORE, OUT_NOTICE, OUT_STATUS, OUT_REACHED, OUT_CHANGED };
struct outbox;
struct outbox *outbox_new(struct loop *owner_loop, const struct journal_owner *owner);
/* Journal's thread: add to the batch of this turn; outbox_flush hands it over with one post. */
void out_entry(struct outbox *o, uint64_t index, uint64_t term, const void *p, size_t n, void *tag);
void out_refused(struct outbox *o, void *tag, int code, const char *why);
void out_leader(struct outbox *o, bool is_leader, uint64_t term);
void out_snapshot(struct outbox *o, uint64_t index);
void out_restore(struct outbox *o, uint64_t index, const void *manifest, size_t n);
void out_notice(struct outbox *o, bool is_problem, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void out_status(struct outbox *o, const struct journal_status *s);
void out_reached(struct outbox *o, uint64_t index); /* unless the batch ends with an entry or a word of it */
void out_changed(struct outbox *o, journal_changed_fn fn, void *arg, int code, const char *why);
void outbox_flush(struct outbox *o);
/* Owner's thread. */
void outbox_deliver(struct outbox *o); /* calls back for all that was flushed */
void outbox_deliver_state(struct outbox *o); /* restores and entries only, up to the first of another kind */
int outbox_restore_error(struct outbox *o, struct err *e); /* what on_restore returned, if it failed */
void outbox_opened(struct outbox *o);  /* from now on a failed on_restore ends the process */
void outbox_restored(struct outbox *o, int code); /* what on_restore had left pending */
void outbox_close(struct outbox *o);   /* nothing is delivered any more; the journal's share of it is given up */

#endif
