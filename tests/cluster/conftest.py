# SPDX-License-Identifier: Apache-2.0
import os
import signal

import pytest

import spurtest


def pytest_configure():
    """Ended from outside (timeout(1)), tests end what they started."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", 143))


def pytest_collection_modifyitems(items):
    needs_root = pytest.mark.skip(reason="needs root")
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(needs_root)


def made(request, **how):
    cluster = spurtest.Cluster(**how)
    request.node.stash.setdefault(KEY, []).append(cluster)
    return cluster


KEY = pytest.StashKey()


@pytest.fixture
def new_cluster(request):
    """new_cluster(nodes=…, …): started, and ended with the test."""
    clusters = []

    def make(start=True, **how):
        cluster = made(request, **how)
        clusters.append(cluster)
        return cluster.start() if start else cluster

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def cluster(new_cluster):
    """One controller and one agent of its own."""
    return new_cluster()


@pytest.fixture(scope="module")
def shared(request):
    """One controller and two agents for all tests of a file that leave no trace on each other."""
    with made(request, nodes=2, **getattr(request.module, "SHARED", {})) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _nothing_of_the_test_before(request):
    """srun and salloc end before their job has left its nodes: a test that names the node it expects waits for that."""
    if "shared" in request.fixturenames:
        c = request.getfixturevalue("shared")
        spurtest.wait_for(lambda: not c.run("squeue -h -t CG -o %i").stdout, what="the jobs of the test before to leave their nodes")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    for node in (item, item.getparent(pytest.Module)):
        for cluster in node.stash.get(KEY, []) if node else []:
            if cluster.root.exists():
                report.sections.append(("daemons", cluster.logs()))
