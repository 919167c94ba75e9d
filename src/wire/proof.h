/* SPDX-License-Identifier: Apache-2.0
 *
 * What is signed on the two boundaries between controller and agent, and how the proof travels. Texts only; the
 * signatures themselves are io/cred's. Both sides build the same text from what they see, so that a proof for one
 * node, job, start, user, method, time or body fits no other.
 *
 * The proof is one metadata header:
 *   controller → agent   spur-launch: EXPIRES_UNIX.SIGNATURE_HEX
 *   agent → controller   spur-node: NAME.SENT_UNIX_MS.NONCE_HEX.SIGNATURE_HEX
 *                        (a node name may hold dots: the last three count)
 *
 * A third one travels through the client: the controller signs a step_ticket (wire/messages.h), srun hands it to the
 * agent in an OPEN frame (wire/stream.h) together with its signature.
 */
#ifndef SPUR_WIRE_PROOF_H
#define SPUR_WIRE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* A client's credential of munge, and what it is made over: a printf format that takes the method's path. */
#define PROOF_MUNGE_HEADER "spur-munge"
#define PROOF_MUNGE_PAYLOAD "spur-munge-v1\n%s\n"

#define PROOF_SIGNATURE_SIZE 64
#define PROOF_NONCE_SIZE 8
#define PROOF_LAUNCH_SECS 120   /* a launch credential is good for */
#define PROOF_TICKET_SECS 600   /* a step ticket is good for */
#define PROOF_NODE_SKEW_MS 300000 /* a report's time may differ from the controller's by */

/* "spur-launch-v1\nPATH\nNODE\nJOB\nSTART\nUID\nEXPIRES\nBODY_HASH_HEX\n" */
void proof_launch_text(const char *path, const char *node, uint32_t job_id, uint32_t start_no, uint32_t uid,
                       int64_t expires_unix, const uint8_t body_hash[32], struct str *out);
void proof_launch_print(int64_t expires_unix, const uint8_t sig[PROOF_SIGNATURE_SIZE], struct str *out);
int proof_launch_parse(const char *header, int64_t *out_expires_unix, uint8_t out_sig[PROOF_SIGNATURE_SIZE]);

/* "spur-ticket-v2\nNODE\nTICKET_HASH_HEX\n": the hash is BLAKE2b-256 of the ticket's bytes as they travel. (v1 was signed
 * without the node, which stood in the ticket.) */
void proof_ticket_text(const char *node, const uint8_t ticket_hash[32], struct str *out);

/* "spur-node-v1\nPATH\nNODE\nSENT_MS\nNONCE_HEX\nBODY_HASH_HEX\n" */
void proof_node_text(const char *path, const char *node, int64_t sent_ms, const uint8_t nonce[PROOF_NONCE_SIZE],
                     const uint8_t body_hash[32], struct str *out);
void proof_node_print(const char *node, int64_t sent_ms, const uint8_t nonce[PROOF_NONCE_SIZE],
                      const uint8_t sig[PROOF_SIGNATURE_SIZE], struct str *out);
struct proof_node {
    char name[256];
    int64_t sent_ms;
    uint8_t nonce[PROOF_NONCE_SIZE];
    uint8_t sig[PROOF_SIGNATURE_SIZE];
};
int proof_node_parse(const char *header, struct proof_node *out); /* 0 or E_BAD_PROOF */

#endif
