# SPDX-License-Identifier: Apache-2.0
"""gRPC's own client against a real controller: calls, errors, deadlines, health, reflection, many at once."""
import concurrent.futures
import os
import pathlib
import sys
import time

import grpc
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from grpcwire import Peer, messages  # noqa: E402
from spurtest import Cluster  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, auth_lines='jwt_key = "a key for tests that is long enough"\n') as c:
        yield c


@pytest.fixture(params=["socket", "tcp"])
def peer(request, cluster):
    c = cluster
    if request.param == "socket":
        address, metadata = f"unix:{c.socket}", []
    else:
        token = c.run("scontrol token").stdout.strip().split("=", 1)[1]
        address, metadata = f"127.0.0.1:{c.port}", [("authorization", f"Bearer {token}")]
    with Peer(address, metadata) as p:
        yield p


def submit(peer, **spec):
    m = messages()
    spec = {"name": "client", "hold": True, "work_dir": "/tmp", **spec}
    return peer.call("Controller", "Submit", m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(**spec), script=b"#!/bin/sh\ntrue\n",
                                                             env=b"A=1\0"))


def test_submit_look_cancel(peer):
    m = messages()
    job = submit(peer).job_id
    assert [j.job.id for j in peer.call("Controller", "Jobs", m.JobsRequest(job_ids=[job])).jobs] == [job]
    results = peer.call("Controller", "Cancel", m.CancelRequest(token=os.urandom(16), job_ids=[job, 99999999])).results
    assert {r.job_id: r.error != 0 for r in results} == {job: False, 99999999: True}


def test_a_job_runs_and_is_waited_for(cluster, peer):
    m = messages()
    job = submit(peer, hold=False, work_dir=str(cluster.work)).job_id
    end = time.monotonic() + 60
    while not (reply := peer.call("Controller", "Wait", m.WaitRequest(job_id=job), timeout=40)).is_over:
        assert time.monotonic() < end
    assert reply.job.id == job and reply.job.wait_status == 0


def test_the_same_token_is_the_same_job(peer):
    m = messages()
    request = m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(name="once", hold=True, work_dir="/tmp"), script=b"#!/bin/sh\n")
    first = peer.call("Controller", "Submit", request)
    again = peer.call("Controller", "Submit", request)
    assert (first.job_id, first.sluid) == (again.job_id, again.sluid)


def test_errors_are_statuses(peer):
    m = messages()
    code, text = peer.refused("Controller", "Jobs", m.JobsRequest(job_ids=[99999999]))
    assert code == "NOT_FOUND" and "Invalid job id" in text
    code, text = peer.refused("Controller", "Submit", m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(partition="nopart", work_dir="/tmp"),
                                                                      script=b"#!/bin/sh\n"))
    assert code in ("INVALID_ARGUMENT", "NOT_FOUND") and "partition" in text


def test_an_unknown_method_is_unimplemented(peer):
    unary = peer.channel.unary_unary("/spur.v1.Controller/Nonsense")
    with pytest.raises(grpc.RpcError) as e:
        unary(b"", timeout=10)
    assert e.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_bytes_that_are_no_message(peer):
    for method in messages().DESCRIPTOR.services_by_name["Controller"].methods:
        unary = peer.channel.unary_unary(f"/spur.v1.Controller/{method.name}", request_serializer=lambda b: b)
        with pytest.raises(grpc.RpcError) as e:
            unary(b"\xff\xff\xff\xff\xff", metadata=peer.metadata, timeout=10)
        # INTERNAL is what gRPC's own servers say of bytes that they can't decode.
        assert e.value.code() == grpc.StatusCode.INTERNAL and "record" in e.value.details() or method.name == "Ping", method.name


def test_a_deadline_is_kept(peer):
    m = messages()
    job = submit(peer).job_id
    began = time.monotonic()
    code, _ = peer.refused("Controller", "Wait", m.WaitRequest(job_id=job), timeout=0.3)
    assert code == "DEADLINE_EXCEEDED" and time.monotonic() - began < 5


def test_a_message_that_is_too_large_is_refused(peer):
    m = messages()
    big = m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(name="big", hold=True, work_dir="/tmp"), script=b"#!/bin/sh\n" + b"#" * 30_000_000)
    code, _ = peer.refused("Controller", "Submit", big)
    assert code in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "OUT_OF_RANGE", "FAILED_PRECONDITION")
    assert submit(peer).job_id  # and it goes on


def test_many_at_once(cluster, peer):
    m = messages()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        ids = list(pool.map(lambda _: submit(peer).job_id, range(500)))
    assert len(set(ids)) == 500
    there = {j.job.id for j in peer.call("Controller", "Jobs", m.JobsRequest()).jobs}
    assert set(ids) <= there


def test_health(cluster):
    health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2", reason="grpcio-health-checking is not installed")
    from grpc_health.v1 import health_pb2_grpc

    with grpc.insecure_channel(f"127.0.0.1:{cluster.port}") as channel:
        got = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert got.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection(cluster):
    pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database", reason="grpcio-reflection is not installed")
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    with grpc.insecure_channel(f"127.0.0.1:{cluster.port}") as channel:
        db = ProtoReflectionDescriptorDatabase(channel)
        assert {"spur.v1.Controller", "grpc.health.v1.Health"} <= set(db.get_services())
        service = DescriptorPool(db).FindServiceByName("spur.v1.Controller")
    want = messages().DESCRIPTOR.services_by_name["Controller"]
    assert [x.name for x in service.methods] == [x.name for x in want.methods]
