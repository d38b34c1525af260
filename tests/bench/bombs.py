"""GetInfo beside concurrent gzip bombs: how long it takes at worst.

Usage: bombs.py BIN_DIR [--warplined PATH] [--bombs N] [--mib M] [--rounds R] [--seconds S]. Every bomb is a call
of Transpose whose message is M MiB of zeros, compressed; N of them are in flight from as many connections while
another connection asks GetInfo, one call after the other.
"""

import argparse
import gzip
import statistics
import threading
import time

import http2
import server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--warplined")
    parser.add_argument("--bombs", type=int, default=12)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    arguments = parser.parse_args()
    bomb = gzip.compress(bytes(arguments.mib << 20), 9)
    for _ in range(arguments.rounds):
        daemon = server.warplined(arguments.bin_dir, backend="cpu", program=arguments.warplined)
        stop = time.monotonic() + arguments.seconds
        sent = [0]

        def throw():
            while time.monotonic() < stop:
                try:
                    http2.Connection(daemon.port).call(b"/warpline.v1.KernelService/Transpose", bomb,
                                                       (b"grpc-encoding", b"gzip"))
                    sent[0] += 1
                except OSError:
                    pass

        threads = [threading.Thread(target=throw, daemon=True) for _ in range(arguments.bombs)]
        for thread in threads:
            thread.start()
        probe, times = http2.Connection(daemon.port), []
        while time.monotonic() < stop:
            begin = time.monotonic()
            probe.call(b"/warpline.v1.InfoService/GetInfo", b"")
            times.append(time.monotonic() - begin)
            time.sleep(0.005)
        peak = daemon.peak_memory_mib()
        daemon.kill()
        print(f"{len(times)} calls of GetInfo: median {statistics.median(times) * 1e3:.1f} ms, worst "
              f"{max(times) * 1e3:.0f} ms, beside {sent[0]} bombs; daemon's memory at most {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
