# SPDX-License-Identifier: Apache-2.0
"""Several partitions over the same nodes: in which order a job tries and shows them, and how many share a CPU in each; tasks of arrays
as srun --jobid names them; licences that are configured away under a job."""
from spurtest import Cluster, wait_for

TIERS = ('\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "low"\npriority_tier = 1\n'
         '\n[[partitions]]\nname = "high"\npriority_tier = 100\n')
SHARED = ('\n[[partitions]]\nname = "own"\ndefault = true\n\n[[partitions]]\nname = "two"\nover_subscribe = "FORCE:2"\n'
          '\n[[partitions]]\nname = "three"\nover_subscribe = "FORCE:3"\n')


def shown(c, job):
    """In which partitions it is, by three ways of asking."""
    return {c.job(job)["Partition"], c.run(f"squeue -h -j {job} -o %P").stdout.strip(), c.run(f"sacct -n -X -P -j {job} -o Partition").stdout.strip()}


def test_a_job_in_several_partitions_lists_them_by_tier():
    with Cluster(nodes=1, cpus=1, conf=TIERS) as c:
        first = c.submit("-p", "high", "--wrap", "sleep 600")
        c.wait_state(first, "RUNNING")
        job = c.submit("-p", "low,high,debug", "--wrap", "sleep 600")
        array = c.submit("-p", "low,high", "--array", "0-1", "--wrap", "sleep 600")
        one = c.submit("-p", "low", "--wrap", "true")
        assert shown(c, job) == {"high,low,debug"}
        assert c.job(array)["Partition"] == "high,low"
        assert shown(c, one) == {"low"}
        c.run("scontrol update partitionname=low prioritytier=200")
        assert shown(c, job) == {"low,high,debug"}
        c.run("scontrol update partitionname=low prioritytier=1")
        c.run(f"scancel {first} {array} {one}")
        c.wait_state(job, "RUNNING")
        assert shown(c, job) == {"high"}
        c.ctld.restart()
        assert shown(c, job) == {"high"}


def test_each_partition_counts_its_own_who_share_cpus():
    with Cluster(nodes=1, cpus=1, conf=SHARED) as c:
        two = [c.submit("-p", "two", "--mem", "1", "--wrap", "sleep 600") for _ in range(3)]
        three = [c.submit("-p", "three", "--mem", "1", "--wrap", "sleep 600") for _ in range(4)]
        for job in two[:2] + three[:3]:
            c.wait_state(job, "RUNNING")
        assert c.job(two[2])["JobState"] == c.job(three[3])["JobState"] == "PENDING"
        wait_for(lambda: c.job(two[2])["Reason"] == "Resources")
        own = c.submit("-p", "own", "--mem", "1", "--wrap", "true")
        c.run(f"scancel {two[0]}")
        c.wait_state(two[2], "RUNNING")  # the place of one of its own; a task of the others' doesn't help
        assert c.job(three[3])["JobState"] == c.job(own)["JobState"] == "PENDING"
        c.run("scancel -p two")
        c.run("scancel -p three")
        c.wait_state(own, "COMPLETED")


def test_srun_goes_into_the_task_that_is_named():
    with Cluster(nodes=1, cpus=2) as c:
        array = c.submit("--array", "0-3%2", "--mem", "1", "--wrap", "sleep 600")
        tasks = {}
        for n in (0, 1):
            tasks[n] = wait_for(lambda: c.run(f"squeue -h -r -t R -j {array}_{n} -o %A").stdout.strip())
            c.wait_state(int(tasks[n]), "RUNNING")
            for name in (f"{array}_{n}", tasks[n]):
                got = c.run(f"srun --jobid={name} --overlap printenv SLURM_JOB_ID SLURM_ARRAY_TASK_ID")
                assert got.stdout.split()[0] == tasks[n] and not got.stderr
        for name, why in ((f"{array}_3", "Job is pending execution"), (f"{array}_7", "Invalid job id specified")):
            got = c.run(f"srun --jobid={name} --overlap true", check=False)
            assert (got.returncode, got.stderr) == (1, f"srun: error: Unable to confirm allocation for job {name}: {why}\n")


def config(c):
    return c.conf_path


def test_a_licence_that_is_configured_away_holds_who_is_queued_again():
    with Cluster(nodes=1, conf="\n[licenses]\nmatlab = 5\n") as c:
        job, other = (c.submit("-L", ask, "--wrap", "sleep 600") for ask in ("matlab:3", "matlab:1"))
        for id in (job, other):
            c.wait_state(id, "RUNNING")
        config(c).write_text(config(c).read_text().replace("matlab = 5", "matlab = 2"))
        c.run("scontrol reconfigure")
        c.run(f"scontrol requeue {job} {other}")
        wait_for(lambda: c.job(job)["Reason"] == "license_request_no_longer_valid", 30)
        assert c.job(job)["JobState"] == "PENDING" and c.job(job)["Priority"] == "0"
        c.wait_state(other, "RUNNING", timeout=60)
        config(c).write_text(config(c).read_text().replace("matlab = 2", "matlab = 5"))
        c.run("scontrol reconfigure")
        c.run(f"scontrol release {job}")
        c.wait_state(job, "RUNNING", timeout=60)
