"""TLS: who gets through, and what the others are told."""

import asyncio
import concurrent.futures
import shutil
import subprocess

import grpc
import numpy as np
import pytest
from daemon import Daemon

import warpline

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates with")


PAST = "20200101000000Z", "20200102000000Z"
HAS_DATES = bool(shutil.which("openssl")) and "-not_after" in subprocess.run(
    ["openssl", "x509", "-help"], capture_output=True, text=True).stderr


class Ca:
    """A CA of the test's own, with the files that it makes."""

    def __init__(self, folder, name):
        self._base = folder / name
        self._key(["-x509", "-days", "2", "-subj", f"/O=Example/CN={name}"], self._base)
        self.file = f"{self._base}.crt"

    def issue(self, name, days=1, names="DNS:localhost,IP:127.0.0.1"):
        """Paths of a certificate and its key."""
        base = self._base.parent / name
        self._key(["-subj", f"/O=Example/CN={name}", "-addext", f"subjectAltName={names}"], base, suffix="csr")
        # Newer versions refuse negative days; Debian 12's has no dates here.
        validity = ["-days", str(days)] if days > 0 or not HAS_DATES else ["-not_before", PAST[0], "-not_after", PAST[1]]
        self._openssl("x509", "-req", "-in", f"{base}.csr", "-CA", self.file, "-CAkey", f"{self._base}.key",
                      "-CAcreateserial", *validity, "-copy_extensions", "copy", "-out", f"{base}.crt")
        return f"{base}.crt", f"{base}.key"

    def _key(self, arguments, base, suffix="crt"):
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *arguments,
                      "-keyout", f"{base}.key", "-out", f"{base}.{suffix}")

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Ca(tmp_path_factory.mktemp("tls"), "ca")


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory):
    return Ca(tmp_path_factory.mktemp("other"), "other")


@pytest.fixture(scope="module")
def alice(ca):
    return ca.issue("alice")


@pytest.fixture(scope="module")
def tls_daemon(ca):
    cert, key = ca.issue("server")
    with Daemon(f"--tls-cert={cert}", f"--tls-key={key}") as running:
        yield running


@pytest.fixture(scope="module")
def mutual_daemon(ca):
    cert, key = ca.issue("server-of-few")
    with Daemon(f"--tls-cert={cert}", f"--tls-key={key}", f"--tls-client-ca={ca.file}") as running:
        yield running


def serving(cert, key):
    """The port of a server of gRPC's with this certificate, which must be stopped, and the server."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    with open(cert, "rb") as chain, open(key, "rb") as private:
        credentials = grpc.ssl_server_credentials([(private.read(), chain.read())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return port, server


def refusal(address, **tls):
    """What the error of a call says."""
    with warpline.connect(address, **tls) as client:
        with pytest.raises(warpline.Unavailable) as error:
            client.info()
    return error.value.message


def transposes(client):
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(client.transpose(x), x.T)
    with client.put(x) as tensor:  # by streams, over several connections
        np.testing.assert_array_equal(tensor.numpy(), x)


def test_the_ca_is_all_that_a_client_needs(tls_daemon, ca):
    with warpline.connect(tls_daemon.address, tls_ca=ca.file) as client:
        transposes(client)


def test_by_environment(tls_daemon, ca, monkeypatch):
    monkeypatch.setenv("WARPLINE_TLS_CA", ca.file)
    with warpline.connect(tls_daemon.address) as client:
        transposes(client)
    with warpline.connect(tls_daemon.address, tls_ca="") as client, pytest.raises(warpline.Unavailable):
        client.info()


def test_a_unix_socket_has_none(unix_daemon, ca, monkeypatch):
    monkeypatch.setenv("WARPLINE_TLS_CA", ca.file)
    with warpline.connect(unix_daemon.address) as client:
        transposes(client)


def test_asynchronously(mutual_daemon, ca, alice):
    async def run():
        x = np.arange(6.0).reshape(2, 3)
        async with warpline.aio.connect(mutual_daemon.address, tls_ca=ca.file, tls_cert=alice[0],
                                        tls_key=alice[1]) as client:
            np.testing.assert_array_equal(await client.transpose(x), x.T)
        async with warpline.aio.connect(mutual_daemon.address) as client:
            with pytest.raises(warpline.Unavailable, match="speaks TLS, and this client does not"):
                await client.transpose(x)

    asyncio.run(run())


def test_the_server_speaks_tls(tls_daemon):
    assert f"the server at {tls_daemon.address} speaks TLS, and this client does not" in refusal(tls_daemon.address)


def test_the_server_does_not_speak_tls(daemon, ca):
    said = refusal(daemon.address, tls_ca=ca.file)
    assert f"the server at {daemon.address} does not speak TLS, and this client was given tls_ca={ca.file}" in said


def test_the_servers_certificate_is_not_trusted(tls_daemon, other_ca):
    said = refusal(tls_daemon.address, tls_ca=other_ca.file)
    assert f"is not trusted by tls_ca={other_ca.file}: unable to get local issuer certificate" in said


@pytest.mark.parametrize("days, names, reason", [
    (-1, "IP:127.0.0.1", "has expired"),
    (1, "IP:127.0.0.9", "is not for 127.0.0.1"),
])
def test_the_servers_certificate_is_no_good(ca, days, names, reason):
    port, server = serving(*ca.issue(f"bad{days}", days, names))
    try:
        assert reason in refusal(f"127.0.0.1:{port}", tls_ca=ca.file)
    finally:
        server.stop(None)


def test_a_client_certificate_is_wanted(mutual_daemon, ca, other_ca, alice):
    with warpline.connect(mutual_daemon.address, tls_ca=ca.file, tls_cert=alice[0], tls_key=alice[1]) as client:
        transposes(client)
    assert "wants a client certificate" in refusal(mutual_daemon.address, tls_ca=ca.file)
    cert, key = other_ca.issue("mallory")
    said = refusal(mutual_daemon.address, tls_ca=ca.file, tls_cert=cert, tls_key=key)
    assert f"does not accept this client's certificate tls_cert={cert}" in said


def test_nobody_is_there(ca):
    assert refusal("127.0.0.1:1", tls_ca=ca.file).startswith("no server answers at 127.0.0.1:1 (tried")


def test_files_that_are_no_good(ca, alice, other_ca, tmp_path):
    def complaint(**tls):
        with pytest.raises(ValueError) as error:
            warpline.connect("127.0.0.1:1", **tls)
        return str(error.value)

    assert complaint(tls_ca="absent.crt") == "tls_ca=absent.crt: No such file or directory"
    assert "holds no certificate in PEM form" in complaint(tls_ca=alice[1])
    assert "needs tls_key" in complaint(tls_ca=ca.file, tls_cert=alice[0])
    assert "needs tls_ca" in complaint(tls_cert=alice[0], tls_key=alice[1])
    key = other_ca.issue("bob")[1]
    assert "is not the key of tls_cert" in complaint(tls_ca=ca.file, tls_cert=alice[0], tls_key=key)
