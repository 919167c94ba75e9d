/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of srun --multi-prog: what is taken has words for each of the tasks.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/srun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static FILE *quiet;
    if (!quiet) {
        quiet = fopen("/dev/null", "we");
        must(quiet);
        stderr = quiet; /* libFuzzer writes to the descriptor */
    }
    if (n < 1 || n > 4096)
        return 0;
    struct cli c = {.prog = "fuzz"};
    struct srun s = {.job.c = &c, .exit_error = 1};
    const struct stream_words *words = NULL;
    uint32_t n_tasks = data[0] % 33;
    char path[32];
    int fd = memfd_create("multi", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data + 1, n - 1) == (ssize_t)(n - 1));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (srun_multi_read(&s, path, n_tasks, &words) == 0)
        for (uint32_t i = 0; i < n_tasks; i++)
            must(words[i].n_words > 0 && words[i].words[0]);
    close(fd);
    arena_fini(&c.arena);
    return 0;
}
