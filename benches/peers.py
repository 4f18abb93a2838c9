"""What certifying a row costs, beside what a user would otherwise do, on the same rows, in one run, on one core:

- plain Python: the definition as one would write it down, with math.exp and math.fsum;
- numpy in float64: stable argsort, exp, cumsum. Neither exact sums nor a certified boundary;
- the oracle, on each instruction set that this machine has.

The three take turns, so that what disturbs one disturbs all. From the repository's root, with numpy installed:

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE python3 benches/peers.py
"""

import array
import json
import math
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy

ROUNDS = 7
KINDS = ["flat", "sharp", "peaked", "smollm2-135m-49152", "gemma3-270m-262144"]
ISAS = ["AVX-512", "AVX2", "portable"]
P = struct.unpack("<f", struct.pack("<f", 0.95))[0]


def plain_python(logits):
    """The count of the nucleus, and its four sums."""
    if not logits or not all(map(math.isfinite, logits)):
        raise ValueError("not a row")
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    largest = logits[order[0]]
    weights = [math.exp(logits[token] - largest) for token in order]
    normalizer = math.fsum(weights)
    target = P * normalizer
    total = compensation = 0.0
    for index, weight in enumerate(weights):
        following = total + weight
        if abs(total) >= abs(weight):
            compensation += (total - following) + weight
        else:
            compensation += (weight - following) + total
        total = following
        if total + compensation >= target:
            count = index + 1
            break
    else:
        raise ValueError("ambiguous")
    prefix, before = math.fsum(weights[:count]), math.fsum(weights[: count - 1])
    if not before < target <= prefix:
        raise ValueError("ambiguous")
    return count, normalizer, target, prefix, before


def numpy_float64(logits):
    """The count of the nucleus, from cumulative sums that are rounded at each step."""
    wide = logits.astype(numpy.float64)
    order = numpy.argsort(-wide, kind="stable")
    weights = numpy.exp(wide[order] - wide[order[0]])
    sums = numpy.cumsum(weights)
    return int(numpy.searchsorted(sums, P * sums[-1])) + 1


def timed(work, *arguments):
    """Milliseconds of processor time: what other programs take meanwhile does not count against a peer."""
    start = time.process_time()
    result = work(*arguments)
    return (time.process_time() - start) * 1e3, result


class Oracle:
    """The example program, and the timings it gives."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the oracle's side has ended")
        return json.loads(line)


def measure(oracle, kind, folder):
    file = os.path.join(folder, kind)
    tokens = oracle.ask("write", kind, file)["tokens"]
    floats = array.array("f")
    with open(file, "rb") as row:
        floats.frombytes(row.read())
    listed, vector = floats.tolist(), numpy.array(floats, dtype=numpy.float32)
    times = {"python": [], "numpy": []}
    for _ in range(ROUNDS):
        took, (count, *_sums) = timed(plain_python, listed)
        times["python"].append(took)
        for _ in range(3):
            took, approximate = timed(numpy_float64, vector)
            times["numpy"].append(took)
        for isa in ISAS:
            answer = oracle.ask("time", kind, isa, 100 if isa != "portable" else 20)
            if answer["nucleus"] is None:
                continue
            if answer["count"] != count:
                sys.exit(f"{kind}: the oracle keeps {answer['count']} tokens, plain Python {count}")
            for what in ("nucleus", "weights", "order"):
                times.setdefault((isa, what), []).append(answer[what][0])
    note = "" if approximate == count else f" (numpy: {approximate})"
    return tokens, f"{count}{note}", {name: (statistics.median(all), min(all)) for name, all in times.items()}


def cpu():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")


def main():
    subprocess.run(["cargo", "build", "--release", "--quiet", "--example", "oracle_peer"], check=True)
    program = os.path.join("target", "release", "examples", "oracle_peer")
    cores = sorted(os.sched_getaffinity(0))
    print(f"{cpu()}, {len(cores)} cores, {platform.system()} {platform.machine()}; Python {platform.python_version()}, "
          f"numpy {numpy.__version__}; load {os.getloadavg()[0]:.1f}")
    print("\nMedian milliseconds a row (least in parentheses), one core; ratios of medians\n")
    print("| row | tokens | kept | plain Python | numpy | oracle | | x Python | x numpy |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        os.sched_setaffinity(0, cores[:1])
        oracle = Oracle(program)
        for kind in KINDS:
            tokens, kept, times = measure(oracle, kind, folder)
            shown = [f"{times[peer][0]:.1f} ({times[peer][1]:.1f})" for peer in ("python", "numpy")]
            for isa in ISAS:
                if (isa, "nucleus") not in times:
                    continue
                median, least = times[isa, "nucleus"]
                ratios = [f"{times[peer][0] / median:.0f}" for peer in ("python", "numpy")]
                print(f"| {kind} | {tokens} | {kept} | {' | '.join(shown)} | {isa} | {median:.3f} ({least:.3f}) | "
                      f"{' | '.join(ratios)} |")
            isa = next(isa for isa in ISAS if (isa, "nucleus") in times)
            # The row is read twice; the weights are written once and read once.
            copied = oracle.ask("copy", 12 * tokens, 50)["time"][0]
            total, weights, order = (times[isa, what][0] for what in ("nucleus", "weights", "order"))
            parts.append(f"| {kind} | {total:.3f} | {weights:.3f} | {total - weights:.3f} | {copied:.3f} | {order:.3f} |")
        oracle.process.stdin.close()
        os.sched_setaffinity(0, cores)
    print("\nWhere the time goes, the fastest instruction set, milliseconds\n")
    print("| row | all | maximum and exp | sums, histogram, boundary | copying as many bytes | an order of the kept |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(parts))
    oracle = Oracle(program)
    pairs = [[oracle.ask("workers", count, 9)["time"][0] for count in (1, 2)] for _ in range(ROUNDS)]
    ratio = statistics.median(one / two for one, two in pairs)
    print(f"\nTwo workers over one, 192 rows of {151936} tokens: {ratio:.2f} "
          f"({min(one for one, _ in pairs):.1f} ms and {min(two for _, two in pairs):.1f} ms); "
          f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
