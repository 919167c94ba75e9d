# SPDX-License-Identifier: Apache-2.0
"""Certificates of a test, made by the openssl command.

    ca = Authority(tmp_path / "ca")
    pair = ca.issue(tmp_path / "node")          # node.pem, node.key; for localhost and 127.0.0.1
    pair.cert, pair.key, ca.pem
"""
import os
import pathlib
import subprocess
import time


def openssl(*arguments, **how):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, **how).stdout


class Pair:
    def __init__(self, stem):
        self.cert, self.key = pathlib.Path(f"{stem}.pem"), pathlib.Path(f"{stem}.key")

    def take_the_place_of(self, other):
        """As a tool that renews certificates does: each file is exchanged whole."""
        for mine, theirs in ((self.cert, other.cert), (self.key, other.key)):
            new = theirs.with_suffix(theirs.suffix + ".new")
            new.write_bytes(mine.read_bytes())
            os.rename(new, theirs)


class Authority:
    def __init__(self, stem, name="test authority"):
        self.pair = Pair(stem)
        self.pem = self.pair.cert
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", f"/CN={name}",
                "-keyout", self.pair.key, "-out", self.pair.cert)

    def issue(self, stem, names=("DNS:localhost", "IP:127.0.0.1"), days=7, until=None):
        """days negative: it has run out. until: a moment (seconds since 1970) at which it will have."""
        pair, request, extra = Pair(stem), pathlib.Path(f"{stem}.csr"), pathlib.Path(f"{stem}.ext")
        extra.write_text(f"subjectAltName={','.join(names)}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=spur", "-keyout", pair.key, "-out", request)
        if until:
            self._issue_between(pair, request, extra, time.time() - 3600, until)
        elif days > 0:
            openssl("x509", "-req", "-in", request, "-CA", self.pem, "-CAkey", self.pair.key, "-CAcreateserial", "-days", days, "-extfile", extra,
                    "-out", pair.cert)
        else:
            self._issue_between(pair, request, extra, time.time() - 30 * 86400, time.time() + days * 86400)
        return pair

    def _issue_between(self, pair, request, extra, begin, end):
        """`x509` of OpenSSL 3.0 knows no dates; `ca` does."""
        home = pathlib.Path(f"{pair.cert}.ca")
        home.mkdir()
        (home / "index.txt").write_text("")
        (home / "serial").write_text("01\n")
        (home / "ca.conf").write_text(f"[ca]\ndefault_ca=c\n[c]\ndatabase={home}/index.txt\nserial={home}/serial\nnew_certs_dir={home}\n"
                                      "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
        openssl("ca", "-batch", "-config", home / "ca.conf", "-in", request, "-cert", self.pem, "-keyfile", self.pair.key, "-extfile", extra,
                "-startdate", asn1(begin), "-enddate", asn1(end), "-out", pair.cert)


def asn1(moment):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(moment))


def lines(mode, pair, ca=None, verify=None):
    """The table [tls] of a spur.conf."""
    out = f'\n[tls]\nmode = "{mode}"\n'
    if pair:
        out += f'cert_file = "{pair.cert}"\nkey_file = "{pair.key}"\n'
    if ca:
        out += f'ca_file = "{ca.pem}"\n'
    if verify:
        out += f'verify = "{verify}"\n'
    return out
