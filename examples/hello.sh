#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A first job: several processes that work side by side. sbatch examples/hello.sh
#SBATCH --job-name=hello
#SBATCH --ntasks=2
#SBATCH --time=5
#SBATCH --output=hello-%j.out

echo "job $SLURM_JOB_ID ($SLURM_JOB_NAME) runs on $SLURM_JOB_NODELIST in partition $SLURM_JOB_PARTITION as $(id -un)"
echo "it has $SLURM_CPUS_ON_NODE CPU(s) there and was submitted from $SLURM_SUBMIT_DIR"

count_primes() { # FROM TO
    local n d found=0
    for ((n = $1; n < $2; n++)); do
        for ((d = 2; d * d <= n; d++)); do
            ((n % d == 0)) && continue 2
        done
        ((n > 1)) && ((++found))
    done
    echo "process $BASHPID: $found primes from $1 to $2"
}

for part in 0 1 2 3; do
    count_primes $((part * 5000)) $(((part + 1) * 5000)) &
done
wait
echo "all four processes are done"
