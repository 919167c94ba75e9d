/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/react/call.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/proof.h"

#define CALL_TIMEOUT_MS 10000u

void react_call(struct room *r, const struct node *node, enum wire_method m, const void *request, uint32_t job_id,
                uint32_t start_no, uint32_t uid, host_reply_fn done, void *arg) {
    const struct wire_method_info *method = wire_method(m);
    struct buf body = {0};
    rec_encode(method->request(), request, &body);
    uint8_t hash[32], sig[CRED_SIGNATURE_SIZE];
    int64_t expires = room_now_unix(r) + PROOF_LAUNCH_SECS;
    auto_str text = {0}, header = {0};
    cred_hash(body.p, body.n, hash);
    proof_launch_text(method->path, node->name, job_id, start_no, uid, expires, hash, &text);
    cred_sign(&r->launch_key, text.p, text.n, sig);
    str_add(&header, "spur-launch: ");
    proof_launch_print(expires, sig, &header);
    str_addc(&header, '\n');
    char address[300];
    bool is_v6 = strchr(node->address, ':') != NULL;
    snprintf(address, sizeof(address), is_v6 ? "[%s]:%u" : "%s:%u", node->address, node->port);
    r->host->send(r->host->impl, address, method->path, header.p, body, CALL_TIMEOUT_MS, done, arg);
}
