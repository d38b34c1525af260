"""TLS of a client: its configuration files, and a diagnosis of failed handshakes."""

import os
import re
import socket
import ssl
import time
from typing import NamedTuple

import grpc

from warpline import errors

# Timeout of the diagnosis of a server that gRPC could not connect to, in seconds.
_LONGEST = 2.0


class Files(NamedTuple):
    """Paths of PEM files: the CAs that may have signed the server's certificate, and the client's own."""

    ca: str
    cert: str
    key: str


class FileCredentials(grpc.ChannelCredentials):  # type: ignore[misc]  # grpc has no type hints
    """gRPC channel credentials that remember their files."""

    def __init__(self, files: Files) -> None:
        """Reads the files. Raises ValueError with the argument, the file and the reason if a file cannot be used."""
        _context(files)
        contents = [_read(name, path) if path else None for name, path in zip(_NAMES, files)]
        super().__init__(grpc.ssl_channel_credentials(contents[0], contents[2], contents[1])._credentials)
        self.files = files


_NAMES = ("tls_ca", "tls_cert", "tls_key")


def credentials_for(target: str, credentials: grpc.ChannelCredentials | None, tls_ca: str | None,
                    tls_cert: str | None, tls_key: str | None) -> grpc.ChannelCredentials | None:
    """The credentials from connect's arguments; None: no TLS. Raises the ValueError of FileCredentials."""
    given = (tls_ca, tls_cert, tls_key)
    if credentials is not None:
        for name, path in zip(_NAMES, given):
            if path:
                raise ValueError(f"{name} is {path!r}, but `credentials` are given too: one of the two")
        return credentials
    files = Files(*(os.environ.get(f"WARPLINE_{name.upper()}", "") if path is None else os.fspath(path)
                    for name, path in zip(_NAMES, given)))
    # A unix socket cannot be intercepted, and the server does not use TLS there.
    if not any(files) or target.startswith(("unix:", "unix-abstract:")):
        return None
    return FileCredentials(files)


def explained(error: errors.Error, target: str, credentials: grpc.ChannelCredentials | None,
              seconds: float) -> errors.Error:
    """Puts a sentence about the TLS problem before the error's message, if TLS is why gRPC could not connect. Otherwise
    returns the error itself. Connects to the server once more for this, for at most two seconds."""
    if "failed to connect" not in error.message:
        return error
    if credentials is not None and not isinstance(credentials, FileCredentials):
        return error
    problem = _problem(target, credentials.files if credentials is not None else None, min(seconds, _LONGEST))
    return errors.reworded(error, f"{problem} (gRPC: {error.message})") if problem else error


def _read(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"{name} is {path!r}: {error.strerror}") from None


def _context(files: Files) -> ssl.SSLContext:
    """The TLS context of a client that trusts only the CAs. Raises the ValueError of FileCredentials."""
    if bool(files.cert) != bool(files.key):
        raise ValueError(f"tls_cert is {files.cert!r} and tls_key is {files.key!r}: both, or neither")
    if not files.ca:
        raise ValueError(f"tls_cert is {files.cert!r}: it needs tls_ca, the CA of the server's certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    # Accept an intermediate CA without its root, as gRPC does.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _read("tls_ca", files.ca)
    try:
        context.load_verify_locations(files.ca)
    except ssl.SSLError:
        raise ValueError(f"tls_ca is {files.ca!r}: it holds no certificate in PEM form") from None
    if files.cert:
        _read("tls_cert", files.cert)
        _read("tls_key", files.key)
        try:
            context.load_cert_chain(files.cert, files.key, password="")
        except ssl.SSLError as error:
            reason = ("it is not the key of the certificate" if error.reason == "KEY_VALUES_MISMATCH" else
                      "the two files hold no certificate and private key in PEM form without a pass phrase")
            raise ValueError(f"tls_key is {files.key!r}, tls_cert is {files.cert!r}: {reason}") from None
    return context


def _address(target: str) -> tuple[str, int] | None:
    """Host and port of a target; None for names that only gRPC understands."""
    match = re.fullmatch(r"(?:dns:(?:///)?)?(?:\[([^\]]+)\]|([^\[\]:/]+)):(\d+)", target)
    return (match[1] or match[2], int(match[3])) if match else None


def _problem(target: str, files: Files | None, seconds: float) -> str:
    """A sentence about the TLS problem; "" if none is found."""
    address = _address(target)
    if address is None or seconds <= 0:
        return ""
    server = f"the server at {address[0]}:{address[1]}"
    end = time.monotonic() + seconds
    try:
        with socket.create_connection(address, seconds) as connection:
            connection.settimeout(max(end - time.monotonic(), 0.01))
            return _ask_plain(connection, server) if files is None else _ask(connection, address[0], server, files)
    except (OSError, ValueError):
        return ""


def _ask_plain(connection: socket.socket, server: str) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        context.wrap_socket(connection).close()
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return ""
    return (f"{server} speaks TLS, and this client does not: it needs the CA that has signed the server's "
            "certificate, as tls_ca ($WARPLINE_TLS_CA)")


def _ask(connection: socket.socket, host: str, server: str, files: Files) -> str:
    refused = (f"{server} does not accept this client's certificate tls_cert={files.cert}" if files.cert else
               f"{server} ends the connection after the TLS handshake, as servers do that want a client certificate: "
               "tls_cert and tls_key ($WARPLINE_TLS_CERT, $WARPLINE_TLS_KEY)")
    try:
        secured = _context(files).wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        return f"the certificate of {server} is not trusted by tls_ca={files.ca}: {error.verify_message}"
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return refused
        if error.reason != "WRONG_VERSION_NUMBER":
            return ""  # Other errors, such as a connection closed without an alert: full servers do that too.
        return (f"{server} does not speak TLS, and this client was given tls_ca={files.ca}: leave that out "
                "($WARPLINE_TLS_CA), or start the server with --tls-cert and --tls-key")
    with secured:
        if secured.selected_alpn_protocol() != "h2":
            return f"{server} speaks TLS but not HTTP/2: is this the port of its metrics?"
        try:
            # With TLS 1.3, a server rejects the client's certificate only after the handshake. A server that accepts
            # the client sends data at once.
            return "" if secured.recv(1) else refused
        except TimeoutError:
            return ""
        except (ssl.SSLError, ConnectionError):
            return refused
