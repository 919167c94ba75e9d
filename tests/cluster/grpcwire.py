# SPDX-License-Identifier: Apache-2.0
"""Spur's gRPC as somebody else speaks it: grpcio and messages made by protoc from proto/spur/v1/spur.proto. And the
proofs of src/wire/proof.h, made here a second time, to play the forger."""
import functools
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
import time

import grpc
import nacl.encoding
import nacl.signing

from spurtest import REPO


@functools.cache
def messages():
    """The module of spur.proto's messages."""
    out = tempfile.mkdtemp(prefix="spur-proto-")
    subprocess.run(["protoc", f"--proto_path={REPO}/proto", f"--python_out={out}", "spur/v1/spur.proto"], check=True)
    sys.path.insert(0, out)
    os.makedirs(f"{out}/spur/v1", exist_ok=True)
    return importlib.import_module("spur.v1.spur_pb2")


class Peer:
    """A channel to one address. call() returns the reply or raises grpc.RpcError."""

    def __init__(self, address, metadata=()):
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)])
        self.metadata = list(metadata)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def call(self, service, name, request=None, metadata=(), timeout=10.0):
        method = messages().DESCRIPTOR.services_by_name[service].methods_by_name[name]
        request = request if request is not None else getattr(messages(), method.input_type.name)()
        reply = getattr(messages(), method.output_type.name)
        unary = self.channel.unary_unary(f"/spur.v1.{service}/{name}", request_serializer=lambda m: m.SerializeToString(deterministic=True),
                                         response_deserializer=reply.FromString)
        return unary(request, metadata=[*self.metadata, *metadata], timeout=timeout)

    def refused(self, *arguments, **more):
        """The status of a call that must fail."""
        try:
            got = self.call(*arguments, **more)
        except grpc.RpcError as e:
            return e.code().name, e.details()
        raise AssertionError(f"it was answered: {got}")


def body_hash(message):
    return hashlib.blake2b(message.SerializeToString(deterministic=True), digest_size=32).hexdigest()


def launch_key(secret, purpose):
    return nacl.signing.SigningKey(hashlib.blake2b(purpose.encode(), key=secret[:64], digest_size=32).digest())


def key_of_file(path):
    return nacl.signing.SigningKey(bytes.fromhex(path.read_text().strip()))


def node_proof(key, path, name, message, sent_ms=None, nonce=None, said_name=None):
    sent_ms = int(time.time() * 1000) if sent_ms is None else sent_ms
    nonce = (nonce or os.urandom(8)).hex()
    text = f"spur-node-v1\n{path}\n{name}\n{sent_ms}\n{nonce}\n{body_hash(message)}\n"
    return [("spur-node", f"{said_name or name}.{sent_ms}.{nonce}.{key.sign(text.encode()).signature.hex()}")]


def launch_proof(key, path, node, job_id, start_no, uid, message, expires=None):
    expires = int(time.time()) + 60 if expires is None else expires
    text = f"spur-launch-v1\n{path}\n{node}\n{job_id}\n{start_no}\n{uid}\n{expires}\n{body_hash(message)}\n"
    return [("spur-launch", f"{expires}.{key.sign(text.encode()).signature.hex()}")]
