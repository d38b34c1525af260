#!/usr/bin/env python3
"""A TCP relay that delays each direction, as a network between two sites does: the kernel here has no netem.

    tests/bench/delayed_relay.py LISTEN TARGET MILLISECONDS

LISTEN and TARGET are host:port. Bytes leave as fast as they came, MILLISECONDS later, however many are on their way.
"""

import asyncio
import sys


async def forward(reader, writer, delay):
    """Copies one direction until its end."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.Queue()

    async def send():
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    data = b"-"
    while data:
        data = await reader.read(1 << 18)
        waiting.put_nowait((loop.time() + delay, data))
    await sending


async def main(listen, target, milliseconds):
    async def relay(reader, writer):
        host, port = target.rsplit(":", 1)
        there_reader, there_writer = await asyncio.open_connection(host, port, limit=1 << 20)
        try:
            await asyncio.gather(forward(reader, there_writer, milliseconds / 1000),
                                 forward(there_reader, writer, milliseconds / 1000))
        except OSError:
            pass  # one of the two is gone
        finally:
            writer.close()
            there_writer.close()

    host, port = listen.rsplit(":", 1)
    server = await asyncio.start_server(relay, host, int(port), limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
