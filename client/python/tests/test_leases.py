"""Leases, renewed while somebody has the tensor, and dropped when nobody has: with the server of these tests."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import grpc
import numpy as np
import pytest
from tensor_server import abort
from test_tensors import wait_until

import warpline
from messages import v1

CODE = grpc.StatusCode


@pytest.fixture
def c(fake):
    # Leases are short here, and machines slow at times.
    fake.slack = 30
    with warpline.connect(fake.address) as client:
        yield client


def test_renewal_outlives_failures(fake, c):
    t = c.put(np.ones(3), ttl=1)
    fake.faults["Renew"] = [abort(CODE.UNAVAILABLE), abort(CODE.UNAVAILABLE)]
    wait_until(lambda: fake.count("Renew") >= 5)
    assert t.numpy().tolist() == [1, 1, 1]


def test_what_the_server_has_lost_is_not_renewed_for_ever(fake, c):
    t, other = c.put(np.ones(3), ttl=0.4), c.put(np.ones(3), ttl=0.4)
    del fake.stored[t.id]
    # Of two, one is left: renewals of both would come in pairs.
    wait_until(lambda: fake.count("Renew") >= 2)
    fake.asked.clear()
    seen = []
    find = fake.find
    fake.find = lambda id, context: (seen.append(id), find(id, context))[1]
    wait_until(lambda: len(seen) >= 4)
    assert set(seen) == {other.id}


def test_a_tensor_that_is_attached_is_not_renewed_unless_asked(fake, c):
    with warpline.connect(fake.address) as owner:
        t = owner.put(np.ones(3), ttl=0.4)
        t.release()
    attached = c.tensor(t.id, renew=True)
    wait_until(lambda: fake.count("Renew") >= 6)
    assert attached.numpy().tolist() == [1, 1, 1]
    attached.release()
    # Nobody renews it now, and a look at the list does not.
    fake.slack = 0
    wait_until(lambda: not c.tensors() or c.tensors()[0].ttl < 0)
    with pytest.raises(warpline.NotFound):
        attached.numpy()


def test_two_objects_of_one_tensor(fake, c):
    """That one of them goes does not end the renewal for the other."""
    t = c.put(np.ones(3), ttl=0.4)
    attached = c.tensor(t.id, renew=True)
    del attached
    gc.collect()
    count = fake.count("Renew")
    wait_until(lambda: fake.count("Renew") >= count + 4)
    assert t.numpy().sum() == 3


def test_many_are_dropped_at_once(fake, c):
    tensors = [c.put(np.ones(1)) for _ in range(150)]
    assert len(fake.stored) == 150
    del tensors
    gc.collect()
    wait_until(lambda: not fake.stored)


def test_closing_ends_the_thread_and_drops(fake):
    client = warpline.connect(fake.address)
    t, released = client.put(np.ones(1)), client.put(np.ones(1))
    released.release()
    client.close()
    assert set(fake.stored) == {released.id}
    assert not any(thread.name == "warpline-leases" for thread in threading.enumerate())
    del t  # Posts to nobody.


def test_clients_that_nobody_closes(fake):
    client = warpline.connect(fake.address)
    t = client.put(np.ones(1))
    gone = weakref.ref(client)
    del client, t
    gc.collect()
    assert gone() is None
    wait_until(lambda: not fake.stored)
    wait_until(lambda: not any(thread.name == "warpline-leases" for thread in threading.enumerate()))


def test_the_with_block_of_a_tensor_may_outlast_its_client(fake):
    client = warpline.connect(fake.address)
    with client.put(np.ones(1)) as t, client.tensor(t.id):
        client.close()
    assert not fake.stored
    t.drop()


def test_an_error_in_the_with_block_does_not_wait_for_the_server(fake):
    with warpline.connect(fake.address) as client:
        with pytest.raises(RuntimeError, match="mine"), client.put(np.ones(1)) as t:
            fake.faults["Drop"] = [abort(CODE.UNAVAILABLE)] * 9
            raise RuntimeError("mine")
        wait_until(lambda: fake.count("Drop") == 1)
        assert not t._lease.owned
        fake.faults.clear()


def test_closing_when_there_is_no_server_any_more(fake):
    client = warpline.connect(fake.address)
    t = client.put(np.ones(1))
    fake.faults["Drop"] = [abort(CODE.UNAVAILABLE)]
    client.close()
    assert set(fake.stored) == {t.id}


@pytest.mark.parametrize("how", ["os._exit(0)", "sys.exit()"])
def test_children_drop_nothing_of_their_parents(fake, how):
    """Nor does a script, which closes nothing, leave anything behind at its end."""
    script = f"""
import gc, os, sys, numpy as np, warpline
c = warpline.connect("{fake.address}")
t, u, v = c.put(np.ones(2)), c.put(np.ones(3)), c.put(np.ones(4))
child = os.fork()
if not child:
    with v:
        u.drop()
    del t
    gc.collect()
    {how}
assert os.waitpid(child, 0)[1] == 0
assert t.numpy().sum() + u.numpy().sum() + v.numpy().sum() == 9
print(len(c.tensors()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "GRPC_VERBOSITY": "NONE"})
    assert done.returncode == 0 and done.stdout == "3\n", done.stderr
    assert not fake.stored
