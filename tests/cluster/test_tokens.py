# SPDX-License-Identifier: Apache-2.0
"""A submit that is repeated after a broken connection makes one job, also when the controller was restarted in between."""
import socket
import subprocess
import threading

import pytest

from spurtest import wait_for


class Proxy:
    """Between a command and the controller. While `swallow` is set, what the controller says is not passed on; cut()
    then breaks all connections. The command sees a connection that died with its request under way."""

    def __init__(self, port):
        self.target = port
        self.swallow = True
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.connections.append((near, far))
            threading.Thread(target=self.pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, True), daemon=True).start()

    def pump(self, source, sink, from_controller):
        swallowing = self.swallow and from_controller
        try:
            while data := source.recv(65536):
                if not swallowing:
                    sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink) if not swallowing else ():
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.swallow = False
        for pair in self.connections:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.cut()
        self.listener.close()


def token(c, **run):
    return c.run("scontrol token", **run).stdout.strip().split("=", 1)[1]


@pytest.mark.parametrize("restart", ["none", "kill", "term"])
def test_a_submit_whose_reply_is_cut_off_makes_one_job(new_cluster, restart):
    c = new_cluster(nodes=0, auth_lines='jwt_key = "a key for tests that is long enough"\n')
    proxy = Proxy(c.port)
    try:
        env = {**c.tcp_env(token(c)), "SPUR_CONTROLLER_ADDR": f"127.0.0.1:{proxy.port}"}
        p = subprocess.Popen(["sbatch", "--parsable", "-H", "--wrap", "true"], env=env, cwd=c.work, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        made = wait_for(c.queue, what="the job to be there before its reply")
        assert p.poll() is None
        if restart == "kill":
            c.ctld.restart()
        elif restart == "term":
            c.ctld.kill(15)
            c.ctld.start()
        proxy.cut()
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
        assert [int(out)] == list(made)
        assert list(c.queue()) == [int(out)]
    finally:
        proxy.close()


def test_two_submits_are_two_jobs(new_cluster):
    c = new_cluster(nodes=0)
    assert c.submit("-H", "--wrap", "true") != c.submit("-H", "--wrap", "true")
    assert len(c.queue()) == 2


def test_a_controller_that_comes_late_is_waited_for(new_cluster):
    """The command tries again for a while; it does not make two jobs of it."""
    c = new_cluster(nodes=0)
    c.ctld.kill()
    p = subprocess.Popen(["sbatch", "--parsable", "-H", "--wrap", "true"], env=c.env, cwd=c.work, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    try:
        c.ctld.start()
        out, err = p.communicate(timeout=60)
    finally:
        p.kill()
    if p.returncode == 0:
        assert list(c.queue()) == [int(out)]
    else:
        assert "Unable to contact slurm controller" in err and c.queue() == {}
