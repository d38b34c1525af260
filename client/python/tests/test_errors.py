"""Typed errors: from real refusals, and from a server that answers what a real one rarely does."""

import asyncio
import pickle
import re
import socket
import threading
import time

import fake_server
import grpc
import numpy as np
import pytest
import wire
from daemon import Daemon, slow_program
from messages import v1

import warpline
from warpline import errors, hints

X = np.ones((4, 5), "f4")


def message(*fields):
    """(number, value): a message by hand, so that these tests share nothing with what they test but wire."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += wire.varint(number << 3) + wire.varint(value % (1 << 64))
        else:
            encoded += wire.length_prefix(number, len(value)) + value
    return encoded


def any_of(name, value):
    return (3, message((1, b"type.googleapis.com/" + name.encode()), (2, value)))


def retry_after(seconds, nanos=0):
    duration = message((1, seconds), (2, nanos))
    return message((1, 8), any_of("google.rpc.RetryInfo", message((1, duration))))


def refuse(context, code, text, details):
    context.set_trailing_metadata((("grpc-status-details-bin", details),))
    context.abort(code, text)


def response(name="transpose"):
    tensor = v1.Tensor(data_type=v1.DATA_TYPE_F32, shape=[1], inline=b"\0\0\x80\x3f")
    return v1.RunResponse(outputs=[v1.NamedTensor(name=name, tensor=tensor)]).SerializeToString()


def test_violations(client):
    with pytest.raises(warpline.InvalidArgument) as caught:
        client.transpose(X, (0, 0), request_id="my-request")
    error = caught.value
    assert error.code is warpline.StatusCode.INVALID_ARGUMENT
    # The client refuses such a call, so that no log has its id.
    assert not error.answered and error.request_id == "" and "my-request" not in str(error)
    assert error.violations[0].field == "perm" and "twice" in error.violations[0].description
    assert isinstance(error, warpline.Error) and error.retry_after is None


def test_permutations_that_are_none_are_refused_as_they_are_given(client):
    for x in (X, X.T, X[:, ::2]):
        with pytest.raises(warpline.InvalidArgument, match="7"):
            client.transpose(x, (0, 7))
        with pytest.raises(warpline.InvalidArgument, match="7"):
            client.reduce(x, "sum", 7)


def test_unknown_keywords_name_the_method(client, daemon):
    x = np.eye(2)
    with pytest.raises(TypeError, match=r"^gemm\(\) got an unexpected keyword argument 'timout'$"):
        client.gemm(x, x, timout=3)

    async def check():
        async with warpline.aio.connect(daemon.address) as c:
            with pytest.raises(TypeError, match=r"^reduce\(\) got an unexpected keyword argument 'dim'$"):
                await c.reduce(x, "sum", dim=1)

    asyncio.run(check())


def test_variants(client):
    with pytest.raises(warpline.InvalidArgument, match="nonesuch") as caught:
        client.reduce(X, "sum", variant="nonesuch", request_id="my-request")
    error = caught.value
    assert error.violations[0].field == "variant"
    assert error.answered and error.request_id == "my-request" and "my-request" in str(error)


def test_types_that_are_not_supported(client):
    with pytest.raises(warpline.InvalidArgument, match="gemm does not take bool"):
        client.gemm(X.astype("?"), X.T.astype("?"))
    with pytest.raises(warpline.InvalidArgument):
        client.reduce(X.astype("c8"), "max")


def test_too_large():
    with Daemon("--max-inline-bytes=4K", "--upload-bytes=0") as small, warpline.connect(small.address) as client:
        with pytest.raises(warpline.ResourceExhausted) as caught:
            client.transpose(np.zeros(4 << 20, "u1"))
        assert caught.value.retry_after is None
        assert client.is_serving()


def test_what_to_do_with_what_is_too_large():
    advice = r": put large arrays on the server first .client.put.*--max-inline-bytes"
    with Daemon("--max-inline-bytes=1M", "--upload-bytes=0") as small, warpline.connect(small.address) as client:
        with pytest.raises(warpline.ResourceExhausted, match=f"larger than max.*{advice}"):
            client.transpose(np.zeros(2 << 20, "u1"))
        p, row, longer = warpline.program(), np.ones((1, 300)), np.ones((1, 400))
        for call in (lambda: client.reduce(np.zeros((1 << 20) + 1, "u1"), "sum"),
                     lambda: client.run(p.add(longer, longer.T)),
                     lambda: client.run(p.add(row, row.T), p.add(row.T, row))):
            with pytest.raises(warpline.InvalidArgument, match=rf"the limit is 1048576 .the server's --max-inline-bytes.{advice} .request"):
                call()


def test_overload_says_when_to_try_again():
    with Daemon("--max-jobs=1", "--lanes=1") as busy, warpline.connect(busy.address, max_retries=0) as client:
        refused, done, end = [], [], time.monotonic() + 30

        def work():
            while not refused and time.monotonic() < end:
                try:
                    done.append(client.transpose(np.zeros((512, 512))))
                except warpline.ResourceExhausted as error:
                    refused.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused and refused[0].retry_after > 0


@pytest.fixture
def free_address():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("retries, tried", [(0, ""), (2, r" \(tried 3 times in \d\.\d s; max_retries=0 fails at once\)")])
def test_no_server(free_address, retries, tried):
    text = (rf"^UNAVAILABLE: no server answers at {free_address}{tried}: start warplined there, or name another\. "
            r"gRPC: failed to connect to all addresses")
    with warpline.connect(free_address, max_retries=retries) as client:
        for call in (lambda: client.transpose(X), client.info, lambda: client.put(X)):
            with pytest.raises(warpline.Unavailable, match=text) as caught:
                call()
    assert not caught.value.answered and not pickle.loads(pickle.dumps(caught.value)).answered

    async def main():
        async with warpline.aio.connect(free_address, max_retries=retries) as client:
            await client.transpose(X)

    with pytest.raises(warpline.Unavailable, match=text):
        asyncio.run(main())


def test_no_server_at_a_socket(tmp_path):
    text = f"no server answers at unix:{tmp_path}/s .tried 2 times in 0.. s; .* gRPC: failed"
    with warpline.connect(f"unix:{tmp_path}/s", max_retries=1) as client:
        with pytest.raises(warpline.Unavailable, match=text):
            client.transpose(X)


@pytest.mark.parametrize("reason, text", [
    ("INTERNAL: ipv4:127.0.0.1:9400: Trying to connect an http1.x server", "is this the metrics port[?] gRPC: "),
    ("UNAVAILABLE: ipv4:127.0.0.1:9400: Failed parsing HTTP/2", "cannot connect to host:1[.] gRPC: "),
    ("UNKNOWN: ipv4:127.0.0.1:9400: Failed to connect to remote host: Connection refused", "no server answers at host:1"),
])
def test_reasons_for_no_connection(reason, text):
    assert re.search(text, hints.unreachable(f"failed to connect to all addresses; last error: {reason}", "host:1", 1, 0))


def test_a_message_without_room_names_the_limit():
    code = warpline.StatusCode.RESOURCE_EXHAUSTED
    assert "the server's --max-inline-bytes" in hints.hinted(code, "Received RST_STREAM with error code 11")
    for refused in ("Received RST_STREAM with error code 0", "Received http2 header with status: 413"):
        assert "a proxy refuses requests of this size" in hints.hinted(code, refused)
    assert "a proxy has ended the call" in hints.hinted(code, "Received RST_STREAM with error code 2")
    assert hints.hinted(code, "Received RST_STREAM with error code 8") == "Received RST_STREAM with error code 8"


def test_other_reasons_for_no_connection():
    assert hints.unreachable("draining", "host:1", 3, 1.0) == "draining"
    unresolved = hints.unreachable("DNS resolution failed for host:1", "host:1", 3, 1.0)
    assert unresolved.startswith("cannot connect to host:1 (tried 3 times in 1.0 s;")
    denied = "failed to connect to all addresses; last error: UNKNOWN: unix:/s: Permission denied"
    assert hints.unreachable(denied, "unix:/s", 1, 0).startswith("this user may not connect to unix:/s: a server makes")


def test_the_metrics_port(daemon):
    with warpline.connect(daemon.metrics, max_retries=1) as client:
        with pytest.raises(warpline.Unavailable, match="speaks HTTP/1, .*: is this the metrics port[?] gRPC: failed"):
            client.info()


def test_timeout(client, daemon):
    slow = slow_program(daemon.backend)
    with pytest.raises(warpline.DeadlineExceeded) as caught:
        client.run(slow, timeout=0.05)
    # The server may have been the first to see it.
    assert caught.value.answered or re.search(r"no answer from .+ in 0\.\d+ s", str(caught.value))
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            client.transpose(X, timeout=timeout)
        with pytest.raises(ValueError, match="timeout"):
            warpline.connect("127.0.0.1:1", timeout=timeout)
    with pytest.raises(TypeError, match="timeout is '5s': a number of seconds"):
        client.transpose(X, timeout="5s")


@pytest.mark.parametrize("name, value", [("alpha", "a"), ("beta", "2"), ("trans_a", "no"), ("trans_b", None)])
def test_products_name_the_argument_of_another_type(client, name, value):
    for gemm in (client.gemm, warpline.program().gemm):
        with pytest.raises(TypeError, match=f"{name} is {value!r}: expected"):
            gemm(X, X, X, **{name: value})


def test_reductions_name_the_argument_of_another_type(client):
    for reduce in (client.reduce, warpline.program().reduce):
        with pytest.raises(TypeError, match="keepdims is 'no': expected True or False"):
            reduce(X, "sum", keepdims="no")


def test_closing_cancels(daemon):
    client = warpline.connect(daemon.address)
    slow = slow_program(daemon.backend)
    daemon.wait_for_requests(0)

    def close():
        daemon.wait_for_requests(1)
        client.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(warpline.Cancelled):
        client.run(slow)
    thread.join()
    for call in (lambda: client.transpose(X), client.info, client.is_serving):
        with pytest.raises(warpline.Cancelled, match="closed"):
            call()


def test_request_ids(client):
    seen = []
    client.transpose(X, request_id="a-1", report=lambda e: seen.append(e.request_id))
    client.transpose(X, report=lambda e: seen.append(e.request_id))
    assert seen[0] == "a-1" and len(seen[1]) == 32
    for bad in ("", "a b", "\n", "é", "x" * 129):
        with pytest.raises(ValueError, match="request_id"):
            client.transpose(X, request_id=bad)


@pytest.mark.parametrize("code, kind", [
    (grpc.StatusCode.INVALID_ARGUMENT, warpline.InvalidArgument), (grpc.StatusCode.INTERNAL, warpline.Internal),
    (grpc.StatusCode.UNIMPLEMENTED, warpline.Unimplemented), (grpc.StatusCode.CANCELLED, warpline.Cancelled),
    (grpc.StatusCode.NOT_FOUND, warpline.NotFound), (grpc.StatusCode.FAILED_PRECONDITION, warpline.FailedPrecondition),
    (grpc.StatusCode.UNAVAILABLE, warpline.Unavailable), (grpc.StatusCode.UNAUTHENTICATED, warpline.Unauthenticated),
    (grpc.StatusCode.DEADLINE_EXCEEDED, warpline.DeadlineExceeded),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, warpline.ResourceExhausted)])
def test_codes(code, kind):
    details = message(
        any_of("google.rpc.BadRequest", message((1, message((1, b"x.shape"), (2, b"too long"), (3, b"why"))),
                                                (1, message((2, b"only text"))))),
        any_of("google.rpc.Unknown", b"\xff"), any_of("google.rpc.RequestInfo", message((1, b"theirs"))))
    with fake_server.serving(lambda m, r, c: refuse(c, code, "text", details)) as address:
        with warpline.connect(address, max_retries=0) as client, pytest.raises(kind) as caught:
            client.transpose(X)
    error = caught.value
    assert type(error) is kind and error.code is warpline.StatusCode[code.name] and error.message == "text"
    assert error.request_id == "theirs" and str(error) == f"{code.name}: text (request theirs)"
    assert error.violations == [("x.shape", "too long"), ("", "only text")]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error) and copy.violations == error.violations


@pytest.mark.parametrize("kind, usual", [(warpline.InvalidArgument, ValueError), (warpline.DeadlineExceeded, TimeoutError),
                                         (warpline.Unavailable, ConnectionError)])
def test_some_are_what_python_has_for_it(kind, usual):
    code = next(code for code, each in errors._CLASSES.items() if each is kind)
    with pytest.raises(usual) as caught:
        raise errors.of_code(code, "text", "id", [warpline.FieldViolation("x", "why")], 0.5)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert type(error) is kind and str(error) == f"{code.name}: text (request id)"
        assert error.args == (code, "text", "id", [("x", "why")], 0.5) and error.retry_after == 0.5


def test_delays_are_not_negative():
    attempts = []

    def answer(method, request, context):
        attempts.append(method)
        if len(attempts) == 1:
            refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "full", retry_after(-1, -1))
        return response()

    with fake_server.serving(answer) as address, warpline.connect(address, max_retries=1) as client:
        assert client.transpose(X).tolist() == [1] and len(attempts) == 2
        attempts.clear()
        with warpline.connect(address, max_retries=0) as once, pytest.raises(warpline.ResourceExhausted) as caught:
            once.transpose(X)
    assert caught.value.retry_after == 0


def test_details_that_cannot_be_read_are_left_out():
    with fake_server.serving(lambda m, r, c: refuse(c, grpc.StatusCode.INTERNAL, "text", b"\x1a\xff")) as address:
        with warpline.connect(address) as client, pytest.raises(warpline.Internal) as caught:
            client.transpose(X, request_id="ours")
    assert caught.value.request_id == "ours" and caught.value.violations == []


@pytest.mark.parametrize("answer", [b"\x0a\x05", b"", b"\x08\x01", message((1, b""))])
def test_responses_that_are_none(answer):
    expect_no_response(lambda m, r, c: answer)


@pytest.mark.parametrize("tensor", [
    b"", message((1, b"")),  # no element type
    message((1, 13), (2, 1), (2, -1)), message((1, 13), (2, 0), *[(2, 1)] * 70),
    message((1, 13), (2, 0), *[(2, 1 << 62)] * 2)])
def test_results_that_are_none(tensor):
    def answer(method, request, context):
        name = v1.RunRequest.FromString(request).program.outputs[0]
        return message((1, message((1, name.encode()), (2, tensor))))

    expect_no_response(answer)


def expect_no_response(answer):
    with fake_server.serving(answer) as address, warpline.connect(address) as client:
        for call in (lambda: client.transpose(X), lambda: client.reduce(X.T, "sum", 0),
                     lambda: client.run(warpline.program().input(X).sum())):
            with pytest.raises(warpline.Internal, match="response"):
                call()


@pytest.mark.parametrize("answer", [b"\x0a\x05", b"\x08", b"\x0a\x01\xff"])
def test_services_that_answer_nothing_valid(answer):
    async def with_aio(address):
        async with warpline.aio.connect(address) as client:
            for call in (client.info(), client.is_serving()):
                with pytest.raises(warpline.Internal, match="response"):
                    await call

    with fake_server.serving(lambda m, r, c: answer) as address, warpline.connect(address) as client:
        for call in (client.info, client.is_serving):
            with pytest.raises(warpline.Internal, match="response"):
                call()
        asyncio.run(with_aio(address))


def test_results_of_another_rank_are_no_response_to_a_reduction():
    with fake_server.serving(lambda m, r, c: response("reduce")) as address, warpline.connect(address) as client:
        x = np.ones((2, 3, 4)).transpose(2, 0, 1)
        for axis, keepdims in ((0, False), (None, True)):
            with pytest.raises(warpline.Internal, match="response"):
                client.reduce(x, "sum", axis, keepdims=keepdims)
