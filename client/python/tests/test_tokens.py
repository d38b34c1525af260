"""Tokens: who gets through, and the same with every kind of call."""

import asyncio
import os
import subprocess

import grpc
import numpy as np
import pytest
from daemon import Daemon

import warpline


def mint(name):
    """A token, and what the server's file has of it."""
    path = os.environ.get("WARPLINED")
    if not path:
        pytest.skip("set WARPLINED to the daemon's path")
    made = subprocess.run([path, f"--new-token={name}"], check=True, capture_output=True, text=True)
    return made.stderr.strip(), made.stdout


@pytest.fixture(scope="module")
def alice(tmp_path_factory):
    """Her token, and the address of a server that knows nobody else."""
    folder = tmp_path_factory.mktemp("tokens")
    token, table = mint("alice")
    (folder / "tokens.toml").write_text(table)
    with Daemon(f"--tokens={folder}/tokens.toml", f"--listen=unix:{folder}/socket") as daemon:
        yield token, daemon.address


def test_every_kind_of_call_bears_the_token(alice):
    token, address = alice
    x = np.arange(6.0).reshape(2, 3)
    with warpline.connect(address, token=token, shared_memory="always") as c:
        assert np.array_equal(c.transpose(x), x.T)
        assert c.info().version
    with warpline.connect(address, token=token, shared_memory="never") as c, c.put(x) as t:
        assert np.array_equal(np.asarray(t.T), x.T)


def test_asyncio_too(alice):
    token, address = alice
    x = np.arange(6.0).reshape(2, 3)

    async def check():
        async with warpline.aio.connect(address, token=token) as c:
            assert np.array_equal(await c.transpose(x), x.T)
            t = await c.put(x)
            assert np.array_equal(await t.numpy(), x)

    asyncio.run(check())


@pytest.mark.parametrize("token", [None, "warpline_guess"])
def test_others_are_refused_at_once(alice, token):
    with warpline.connect(alice[1], token=token) as c:
        assert c.is_serving()
        for call in (lambda: c.transpose(np.zeros((2, 3))), lambda: c.put(np.zeros(3)), c.info):
            with pytest.raises(warpline.Unauthenticated, match=r"connect's token_file= or token=") as refused:
                call()
            assert refused.value.code == warpline.StatusCode.UNAUTHENTICATED and "--token-file" not in str(refused.value)


def test_a_token_may_come_from_a_file(alice, tmp_path, monkeypatch):
    token, address = alice
    file = tmp_path / "alice.token"
    file.write_text(token + "\n")
    with warpline.connect(address, token_file=str(file)) as c:
        assert c.info().version
    monkeypatch.setenv("WARPLINE_TOKEN_FILE", str(file))
    with warpline.connect(address) as c:
        assert c.info().version


def test_what_can_be_no_token_is_told_without_telling_it(tmp_path):
    for token in ("", "two words", "line\nbreak", "ünïcode"):
        with pytest.raises(ValueError, match="printable ASCII") as wrong:
            warpline.connect("localhost", token=token)
        assert not token or token not in str(wrong.value)
    with pytest.raises(ValueError, match="token_file is .*absent"):
        warpline.connect("localhost", token_file=str(tmp_path / "absent"))
    with pytest.raises(ValueError, match="one of the two"):
        warpline.connect("localhost", token="a", token_file="b")
