# SPDX-License-Identifier: Apache-2.0
"""gRPC's own client against io/rpc alone: the echo server of the unit tests, which does on request what a controller rarely does."""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", ROOT / "build"))
SERVER = BUILD / "tests/unit/io_rpc/echo_server"
ECHO = "/spur.test.Echo/"


class Server:
    def __init__(self, *addresses):
        if not SERVER.exists():
            pytest.skip(f"{SERVER} is not built")
        self.process = subprocess.Popen([SERVER, "--descriptors", SERVER.parent / "echo.pb", *addresses], stdout=subprocess.PIPE, text=True)
        self.ports = [int(self.process.stdout.readline().split()[1]) for _ in addresses]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=30)


@pytest.fixture
def server(tmp_path):
    s = Server("[::]:0", f"unix:{tmp_path}/socket")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0


@pytest.fixture(params=["ipv4", "name", "unix"])
def channel(request, server, tmp_path):
    target = {"ipv4": f"127.0.0.1:{server.ports[0]}", "name": f"localhost:{server.ports[0]}", "unix": f"unix:{tmp_path}/socket"}[request.param]
    with grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]) as c:
        yield c


def metadata(**kw):
    return [(k.replace("_", "-"), str(v)) for k, v in kw.items()]


def refused(call):
    with pytest.raises(grpc.RpcError) as e:
        r = call()
        list(r) if hasattr(r, "__iter__") and not isinstance(r, bytes) else r
    return e.value


@pytest.mark.parametrize("size", [0, 1, 100, 16379, 100_000, 8 << 20])
def test_unary(channel, size):
    data = os.urandom(size)
    assert channel.unary_unary(ECHO + "Unary")(data, timeout=30) == data


def test_many_at_once(channel):
    unary = channel.unary_unary(ECHO + "Unary")
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert list(pool.map(lambda i: int(unary(b"%d" % i, timeout=60)), range(5000))) == list(range(5000))


def test_errors_and_texts(channel):
    unary = channel.unary_unary(ECHO + "Unary")
    e = refused(lambda: unary(b"", metadata=metadata(fail=51, text="no such partition: 100% sure")))
    assert e.code() == grpc.StatusCode.INVALID_ARGUMENT and e.details() == "no such partition: 100% sure"
    assert dict(e.trailing_metadata())["spur-error"] == "51"
    e = refused(lambda: unary(b"", metadata=metadata(fail=50, bytes=1)))
    assert e.code() == grpc.StatusCode.NOT_FOUND and e.details() == "1\n2\t100% é"


def test_trailers(channel):
    call = channel.unary_unary(ECHO + "Unary").future(b"x", metadata=metadata(trailer="back: to you"))
    assert call.result() == b"x" and dict(call.trailing_metadata())["echoed"] == "back: to you"


def test_deadlines(channel):
    unary = channel.unary_unary(ECHO + "Unary")
    began = time.monotonic()
    assert refused(lambda: unary(b"", metadata=metadata(never=1), timeout=0.3)).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert 0.2 < time.monotonic() - began < 10
    assert unary(b"in time", metadata=metadata(sleep_ms=50), timeout=20) == b"in time"
    stream = channel.unary_stream(ECHO + "Numbers")
    assert refused(lambda: stream(b"", metadata=metadata(count=3, never=1), timeout=0.3)).code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_cancel(channel):
    call = channel.unary_unary(ECHO + "Unary").future(b"", metadata=metadata(never=1))
    time.sleep(0.05)
    call.cancel()
    assert channel.unary_unary(ECHO + "Unary")(b"after", timeout=20) == b"after"


def test_server_stream(channel):
    got = list(channel.unary_stream(ECHO + "Numbers")(b"", metadata=metadata(count=500, size=10000), timeout=60))
    assert len(got) == 500 and got[0] == bytes([500 & 255]) * 10000 and got[-1] == b"\1" * 10000


def test_slow_reader(channel):
    stream = channel.unary_stream(ECHO + "Numbers")(b"", metadata=metadata(count=3000, size=10000), timeout=60)
    n = 0
    for message in stream:
        if n % 1000 == 0:
            time.sleep(0.2)
        n += 1
    assert n == 3000


def test_both_ways(channel):
    sent = [os.urandom(i * 37) for i in range(300)]
    assert list(channel.stream_stream(ECHO + "Chat")(iter(sent), timeout=60)) == sent
    assert list(channel.stream_stream(ECHO + "Chat")(iter([]), timeout=60)) == []


def test_a_conversation(channel):
    answers, go = [], threading.Semaphore(1)

    def questions():
        for i in range(50):
            go.acquire()
            yield b"%d" % i

    for answer in channel.stream_stream(ECHO + "Chat")(questions(), timeout=60):
        answers.append(int(answer))
        go.release()
    assert answers == list(range(50))


def test_what_is_not_there(channel):
    assert refused(lambda: channel.unary_unary("/nowhere/Nothing")(b"")).code() == grpc.StatusCode.UNIMPLEMENTED
    assert refused(lambda: channel.unary_unary(ECHO + "Nothing")(b"x" * 1_000_000)).code() == grpc.StatusCode.UNIMPLEMENTED


def test_too_large(channel):
    unary = channel.unary_unary(ECHO + "Unary")
    assert refused(lambda: unary(b"x" * (9 << 20))).code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused(lambda: unary(b"", metadata=[(f"x{i}", "y" * 1000) for i in range(50)])).code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert unary(b"still", timeout=20) == b"still"


def test_compression_is_refused(channel):
    unary = channel.unary_unary(ECHO + "Unary")
    e = refused(lambda: unary(b"x" * 1000, compression=grpc.Compression.Gzip))
    assert e.code() == grpc.StatusCode.UNIMPLEMENTED
    assert unary(b"still", timeout=20) == b"still"


def test_drain_loses_no_call(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.ports[0]}") as c:
        unary = c.unary_unary(ECHO + "Unary")
        calls = [unary.future(b"%d" % i, metadata=metadata(sleep_ms=400)) for i in range(50)]
        assert unary(b"all are there", timeout=20)
        server.process.send_signal(signal.SIGTERM)
        assert [int(c.result(timeout=20)) for c in calls] == list(range(50))
    assert server.process.wait(timeout=20) == 0


def test_health(server):
    health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2", reason="grpcio-health-checking is not installed")
    from grpc_health.v1 import health_pb2_grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.ports[0]}") as c:
        stub = health_pb2_grpc.HealthStub(c)
        state = health_pb2.HealthCheckResponse
        for service in ("", "spur.test.Echo", "grpc.health.v1.Health"):
            assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status == state.SERVING
        assert refused(lambda: stub.Check(health_pb2.HealthCheckRequest(service="spur.test.Ech"))).code() == grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="spur.test.Echo"), timeout=60)
        unknown = stub.Watch(health_pb2.HealthCheckRequest(service="nothing"), timeout=60)
        assert next(watch).status == state.SERVING and next(unknown).status == state.SERVICE_UNKNOWN
        server.process.send_signal(signal.SIGUSR1)
        assert next(watch).status == state.NOT_SERVING
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status == state.NOT_SERVING
        server.process.send_signal(signal.SIGTERM)
        assert refused(lambda: next(watch)).code() == grpc.StatusCode.UNAVAILABLE
        assert server.process.wait(timeout=20) == 0


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(server, version):
    pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database", reason="grpcio-reflection is not installed")
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha import reflection_pb2
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    with grpc.insecure_channel(f"127.0.0.1:{server.ports[0]}") as c:
        if version == "v1alpha":
            db = ProtoReflectionDescriptorDatabase(c)
            assert {"spur.test.Echo", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= set(db.get_services())
            pool = DescriptorPool(db)
            assert [m.name for m in pool.FindServiceByName("spur.test.Echo").methods] == ["Unary", "Numbers", "Chat"]
            assert pool.FindMessageTypeByName("spur.test.Echoed.Inner").fields_by_name["text"].number == 1
            assert pool.FindMessageTypeByName("spur.test.words.Word")
            with pytest.raises(KeyError):
                pool.FindMessageTypeByName("spur.test.Nothing")
        ask = c.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                              request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                              response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
        question = reflection_pb2.ServerReflectionRequest
        answers = list(ask(iter([question(host="h", list_services=""), question(file_by_filename="echo.proto"),
                                 question(file_containing_symbol="spur.test.Echo.Chat"), question(file_by_filename="no"),
                                 question(all_extension_numbers_of_type="spur.test.Echoed"), question()]), timeout=20))
        assert answers[0].valid_host == "h" and answers[0].original_request.host == "h"
        assert "spur.test.Echo" in [s.name for s in answers[0].list_services_response.service]
        assert len(answers[1].file_descriptor_response.file_descriptor_proto) == 2  # with what it imports
        assert answers[1].file_descriptor_response == answers[2].file_descriptor_response
        assert [a.error_response.error_code for a in answers[3:]] == [5, 5, 12]
