/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptions of the messages of catchup.h.
 */
#include "wire/catchup.h"

#define REC_SELF file_info
REC_DEFINE(file_info, FILE_INFO_FIELDS)
#undef REC_SELF

#define REC_SELF manifest_request
REC_DEFINE(manifest_request, MANIFEST_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF manifest_reply
REC_DEFINE(manifest_reply, MANIFEST_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF history_copy_request
REC_DEFINE(history_copy_request, HISTORY_COPY_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF piece_request
REC_DEFINE(piece_request, PIECE_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF piece_reply
REC_DEFINE(piece_reply, PIECE_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF blob_part
REC_DEFINE(blob_part, BLOB_PART_FIELDS)
#undef REC_SELF

#define REC_SELF blobs_request
REC_DEFINE(blobs_request, BLOBS_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF blobs_reply
REC_DEFINE(blobs_reply, BLOBS_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF store_blobs_request
REC_DEFINE(store_blobs_request, STORE_BLOBS_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF store_blobs_reply
REC_DEFINE(store_blobs_reply, STORE_BLOBS_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF digest_request
REC_DEFINE(digest_request, DIGEST_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF digest_reply
REC_DEFINE(digest_reply, DIGEST_REPLY_FIELDS)
#undef REC_SELF
