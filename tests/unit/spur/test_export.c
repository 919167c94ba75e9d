/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment that goes with a job: --export in all its forms, and what stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "spur/sbatch.h"

static const char *const plain[] = {"A=1", "B=2 x", "PATH=/bin", "SBATCH_QOS=q", "SLURM_CONF=/c", "SPUR_CONTROLLER_ADDR=h:1",
                              "SPUR_PARTITION=p", "CUDA_VISIBLE_DEVICES=0", "SLURM_HINT=x", "EMPTY=", NULL};
static const char *const in_job[] = {"A=1", "SLURM_JOB_ID=5", "SPUR_JOB_ID=5", "SLURM_MEM_PER_CPU=100", "SPUR_MEM_PER_NODE=7",
                               "SLURMD_NODENAME=n1", "SPUR_OOM_KILL_STEP=0", "SLURM_CONF=/c", "SPUR_JWT=t",
                               "CUDA_VISIBLE_DEVICES=0", "GPU_DEVICE_ORDINAL=0", "SQUEUE_FORMAT=%i", NULL};

/* What goes, one variable a line. */
static void check(const char *export, const char *const *env, const char *want, bool minimal) {
    struct cli c = {.prog = "sbatch"};
    struct sbatch s = {.c = &c, .export = export};
    auto_buf out = {0};
    auto_str text = {0};
    sbatch_env(&s, env, &out);
    for (size_t i = 0; i < out.n; i++)
        str_addc(&text, out.p[i] ? (char)out.p[i] : '\n');
    assert_string_equal(str_text(&text), want);
    assert_true(s.spec.env_minimal == minimal);
    arena_fini(&c.arena);
}

#define ALL                                                                                                            \
    "A=1\nB=2 x\nPATH=/bin\nSBATCH_QOS=q\nSLURM_CONF=/c\nSPUR_CONTROLLER_ADDR=h:1\nSPUR_PARTITION=p\n"                 \
    "CUDA_VISIBLE_DEVICES=0\nSLURM_HINT=x\nEMPTY=\n"

static void all(void **state) {
    check(NULL, plain, ALL, false);
    check("ALL", plain, ALL, false);
    check("all", plain, ALL, false);
}

static void nothing(void **state) {
    check("NONE", plain, "SLURM_EXPORT_ENV=NONE\nSLURM_GET_USER_ENV=1\n", true);
    check("NIL", plain, "SLURM_EXPORT_ENV=NIL\n", true);
    check("", plain, "SLURM_EXPORT_ENV=\nSLURM_GET_USER_ENV=1\n", true);
}

static void lists(void **state) {
    check("A,C=x y", plain, "A=1\nC=x y\nSLURM_EXPORT_ENV=A,C=x y\nSLURM_GET_USER_ENV=1\n", true);
    check("A,BAD", plain, "A=1\nSLURM_EXPORT_ENV=A,BAD\nSLURM_GET_USER_ENV=1\n", true);
    check("X=1,X=2", plain, "X=2\nSLURM_EXPORT_ENV=X=1,X=2\nSLURM_GET_USER_ENV=1\n", true);
    check("X='a,b',Y=\"c,d\"", plain, "X=a,b\nY=c,d\nSLURM_EXPORT_ENV=X='a,b',Y=\"c,d\"\nSLURM_GET_USER_ENV=1\n", true);
    check("X=a=b", plain, "X=a=b\nSLURM_EXPORT_ENV=X=a=b\nSLURM_GET_USER_ENV=1\n", true);
}

static void all_and_more(void **state) {
    const char *const env[] = {"A=1", "AB=3", NULL};
    check("ALL,A=2", env, "AB=3\nA=2\nSLURM_EXPORT_ENV=ALL,A=2\n", false);
    check("A=2,ALL,BAD", env, "AB=3\nA=2\nSLURM_EXPORT_ENV=A=2,ALL,BAD\n", false);
}

static void the_outer_job_stays_behind(void **state) {
    check(NULL, in_job, "A=1\nSLURM_CONF=/c\nSPUR_JWT=t\nSQUEUE_FORMAT=%i\n", false);
}

/* What has no name, or no value, is no variable. */
static void oddities(void **state) {
    const char *const env[] = {"=x", "NOVALUE", "A=1", "BASH_FUNC_f%%=() {  echo\n}", NULL};
    check(NULL, env, "A=1\nBASH_FUNC_f%%=() {  echo\n}\n", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all),          cmocka_unit_test(nothing),
        cmocka_unit_test(lists),        cmocka_unit_test(all_and_more),
        cmocka_unit_test(the_outer_job_stays_behind), cmocka_unit_test(oddities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
