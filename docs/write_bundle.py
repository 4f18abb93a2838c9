#!/usr/bin/env python3
"""Writes evidence bundles for nucleus-gate with the standard library alone; bundle.md says what they hold.

    python3 docs/write_bundle.py FOLDER [--broken]

writes a whole small project into the new FOLDER: inputs, a stock and a patch bundle, and a matrix that pins them.
"""
import difflib
import hashlib
import inspect
import json
import math
import random
import shutil
import struct
import sys
from pathlib import Path


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def pack(code, values):
    """Little-endian bytes of fp32 ("f") or u32 ("I") values. Bytes (such as numpy's tobytes()) stay as they are."""
    return values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{code}", *values)


def safetensors(metadata, tensors):
    """A safetensors file. metadata: strings by key; tensors: (dtype, shape, bytes) by name."""
    header, end = {"__metadata__": metadata}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def inputs_file(logits, p):
    """The inputs of a case: logits, fp32 [batch, vocab], row-major; p, fp32 [batch]."""
    logits, p = pack("f", logits), pack("f", p)
    batch = len(p) // 4
    shape = [batch, len(logits) // 4 // batch]
    return safetensors({}, {"logits": ("F32", shape, logits), "p": ("F32", [batch], p)})


def case_file(case, logits, p, output, dispatch, repeat_differs=None, company_differs=None):
    """The evidence of a case: the masked logits that the kernel returned, and how it was launched."""
    logits, p, output = pack("f", logits), pack("f", p), pack("f", output)
    batch = len(p) // 4
    vocab = len(logits) // 4 // batch
    metadata = {"case": case, "batch": str(batch), "vocab": str(vocab), "logits_sha256": sha256(logits),
                "p_sha256": sha256(p), "output_sha256": sha256(output), "dispatch": json.dumps(dispatch)}
    tensors = {"output": ("F32", [batch, vocab], output)}
    for name, counts in [("repeat_differs", repeat_differs), ("company_differs", company_differs)]:
        if counts is not None:
            tensors[name] = ("U32", [batch], pack("I", counts))
    return safetensors(metadata, tensors)


def write_bundle(folder, subject, cases):
    """Writes the new folder and returns the bundle's digest. cases: evidence files by case name."""
    subject = {"schema": "nucleus-gate/subject/v1", **subject, "cases": list(cases)}
    files = {f"{case}.safetensors": data for case, data in cases.items()}
    files["subject.json"] = json.dumps(subject, indent=1).encode()
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sha256("".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode())


# The example: two kernels in plain Python.

def stock(logits, p):
    """Masks by value: every token that ties with the last one needed stays."""
    if p >= 1:
        return logits
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    weight = [math.exp(logit - max(logits)) for logit in logits]
    target, mass, kept = p * math.fsum(weight), 0.0, 0
    while mass < target:
        mass, kept = mass + weight[order[kept]], kept + 1
    least = logits[order[kept - 1]]
    return [logit if logit >= least else -math.inf for logit in logits]


def patch(logits, p):
    """Masks by rank: of the tokens that tie with the last one needed, the lowest stay."""
    if p >= 1:
        return logits
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    weight = [math.exp(logit - max(logits)) for logit in logits]
    target, mass, kept = p * math.fsum(weight), 0.0, 0
    while mass < target:
        mass, kept = mass + weight[order[kept]], kept + 1
    keep = set(order[:kept])
    return [logit if token in keep else -math.inf for token, logit in enumerate(logits)]


def broken(logits, p):
    """The patch, with one token too many masked on each row."""
    output = patch(logits, p)
    if p < 1:
        output[output.index(min(value for value in output if value > -math.inf))] = -math.inf
    return output


MATRIX = """matrix "example" schema=1 {{
    subject "stock" bundle="evidence/stock" \\
        bundle-sha256="{stock_bundle}" {{
        source "kernels/stock.py" sha256="{stock_source}"
    }}
    subject "patch" bundle="evidence/patch" \\
        bundle-sha256="{patch_bundle}" \\
        patch-sha256="{patch_diff}" {{
        source "kernels/patch.py" sha256="{patch_source}"
    }}
    case "ties-64" kind="ordinary" {{
        file "inputs/ties-64.safetensors" \\
            sha256="{inputs}"
        disabled 3
        input logits-sha256="{logits}" \\
            p-sha256="{p}"
    }}
}}
"""


def example(root, new):
    # Inputs: 4 rows of 64 logits, rounded so that some tie. p = 1 on the last row: top-p is off there.
    vocab, draw = 64, random.Random(1)
    logits = [round(4 * draw.gauss(0, 2)) / 4 for _ in range(4 * vocab)]
    p = list(struct.unpack("<4f", struct.pack("<4f", 0.5, 0.9, 0.99, 1.0)))
    inputs = inputs_file(logits, p)
    digests = {"inputs": sha256(inputs), "logits": sha256(pack("f", logits)), "p": sha256(pack("f", p))}
    for folder in ["policies", "matrices", "inputs", "kernels"]:
        (root / folder).mkdir(parents=True)
    (root / "inputs/ties-64.safetensors").write_bytes(inputs)
    shutil.copy(Path(__file__).parent.parent / "policies/any-dispatch.kdl", root / "policies")

    sources = {"stock": inspect.getsource(stock), "patch": inspect.getsource(new)}
    lines = [text.splitlines(keepends=True) for text in sources.values()]
    diff = "".join(difflib.unified_diff(*lines, "stock.py", "patch.py")).encode()
    (root / "kernels/patch.diff").write_bytes(diff)
    digests["patch_diff"] = sha256(diff)
    harness = {"name": "write_bundle.py", "sha256": sha256(Path(__file__).read_bytes())}

    for name, kernel in [("stock", stock), ("patch", new)]:
        source = sources[name].encode()
        (root / f"kernels/{name}.py").write_bytes(source)
        digests[f"{name}_source"] = sha256(source)
        subject = {"name": name, "description": kernel.__doc__, "engine": "example", "engine_version": "1",
                   "sources": [{"path": f"kernels/{name}.py", "sha256": sha256(source)}],
                   "device": {"name": "CPU"}, "runtime": {"python": sys.version.split()[0]}, "harness": harness}
        if name == "patch":
            subject["patch_of"] = {"subject": "stock", "patch_sha256": sha256(diff)}

        # What a harness does: run the batch, run it again, and count the tokens of each row that differ.
        rows = [kernel(logits[row * vocab:(row + 1) * vocab], p[row]) for row in range(4)]
        again = [kernel(logits[row * vocab:(row + 1) * vocab], p[row]) for row in range(4)]
        differs = [sum(a != b for a, b in zip(*pair)) for pair in zip(rows, again)]
        dispatch = {"path": "python", "kernels": [kernel.__name__], "grid": []}
        evidence = case_file("ties-64", logits, p, sum(rows, []), dispatch, repeat_differs=differs)
        digests[f"{name}_bundle"] = write_bundle(root / "evidence" / name, subject, {"ties-64": evidence})

    (root / "matrices/example.kdl").write_text(MATRIX.format(**digests))


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--broken"]
    if len(folders) != 1 or folders[0].startswith("-"):
        sys.exit(__doc__)
    if Path(folders[0]).exists():
        sys.exit(f"{folders[0]} exists")
    example(Path(folders[0]), broken if "--broken" in sys.argv[1:] else patch)
