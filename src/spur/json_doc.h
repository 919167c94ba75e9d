/* SPDX-License-Identifier: Apache-2.0
 *
 * --json: the document around what a command lists, in the shape of Slurm's data_parser v0.0.45.
 */
#ifndef SPUR_SPUR_JSON_DOC_H
#define SPUR_SPUR_JSON_DOC_H

#include "spur/cli.h"
#include "spur/json.h"

/* The argument of --json: NULL and "v0.0.45" are that; "list" prints what there is. false: done, with an exit code. */
bool json_doc_version(const struct cli *c, const char *version, int *exit_code);
void json_doc_begin(struct json *w);
/* "meta", "errors", "warnings", and the end. */
void json_doc_end(struct json *w, const struct cli *c, const char *cluster);
/* Gives out what is written so far when it is much. */
void json_doc_flush(struct json *w);

#endif
