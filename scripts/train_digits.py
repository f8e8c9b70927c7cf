#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Train the model of examples/digits and write everything in that folder.

    scripts/train_digits.py [--out examples/digits] [--epochs 60]

Needs Debian's python3-torch (1.13) and python3-sklearn (for its digits data set: 1797 scans of
8 x 8 pixels, values 0 to 16). Seeds are fixed and one thread is used, so the same versions give the
same files:

    digits.onnx       opset 17, input float[N,1,8,8], output float[N,10], labels and preprocessing
                      in its metadata
    digits_test.npz   the test split: x float32[n,1,8,8] as fed to the model, y int64[n]
    0.png ...   one scan of the test split a digit, 8-bit grey, ink dark as on paper
    README.md         what it is, with the accuracy on the test split
"""
import argparse
import os
import struct
import zlib

import numpy as np
import torch
from sklearn.datasets import load_digits

SEED = 20240817
TEST_SHARE = 0.25

README = """# digits: a model that ships with Sardonyx

A convolutional network of {parameters} parameters that reads handwritten digits, trained by
`scripts/train_digits.py` (PyTorch {torch}, fixed seed) on the digits data set of scikit-learn: 1797
scans of 8 x 8 pixels, from the UCI repository's "Optical Recognition of Handwritten Digits"
(E. Alpaydin, C. Kaynak; CC BY 4.0). A quarter of it, {count} scans, was kept for testing.

Accuracy on the test split: {right} of {count} ({percent:.2f}%)

| file | what it is |
|---|---|
| `digits.onnx` | the model, opset 17: `scan` float[N,1,8,8] to `scores` float[N,10]; names of the classes and the preprocessing are in its metadata |
| `0.png` ... `9.png` | a scan of each digit from the test split, 8 x 8 pixels, dark ink on white |
| `digits_test.npz` | the test split: `x` float32[{count},1,8,8] as fed to the model, `y` int64[{count}] |

Read the scans, from the root of the repository:

    build/sardonyx classify examples/digits/digits.onnx examples/digits/*.png --top 1
    build/sardonyx bench examples/digits/digits.onnx
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 2 * 2, 10))

    def forward(self, x):
        return self.body(x)


def split():
    data = load_digits()
    # Rounded to what an 8-bit picture holds, so that the scans are exactly what was trained on.
    grey = np.rint(data.images * (255 / 16)).astype(np.uint8)
    order = np.random.RandomState(SEED).permutation(len(grey))
    count = int(len(grey) * TEST_SHARE)
    return grey[order[count:]], data.target[order[count:]], grey[order[:count]], data.target[order[:count]]


def to_input(grey):
    return (grey.astype(np.float32) / 255).reshape(-1, 1, 8, 8)


def train(x, y, epochs):
    net = Net()
    x, y = torch.from_numpy(to_input(x)), torch.from_numpy(y.astype(np.int64))
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = (len(x) + 63) // 64
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, epochs=epochs, steps_per_epoch=steps)
    for epoch in range(epochs):
        order, total = torch.randperm(len(x)), 0.0
        for i in range(0, len(x), 64):
            batch = order[i:i + 64]
            # Shifts by up to one pixel: the scans are small and few.
            dx, dy = int(torch.randint(-1, 2, ())), int(torch.randint(-1, 2, ()))
            moved = torch.zeros(len(batch), 1, 10, 10)
            moved[:, :, 1 + dy:9 + dy, 1 + dx:9 + dx] = x[batch]
            loss = torch.nn.functional.cross_entropy(net(moved[:, :, 1:9, 1:9]), y[batch], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss) * len(batch)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {total / len(x):.4f}")
    return net.eval()


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def add_metadata(path, pairs):
    """ModelProto.metadata_props is field 14, a repeated message of key (1) and value (2): protobuf
    messages grow by appending, so no onnx package is needed."""
    with open(path, "ab") as f:
        for key, value in pairs:
            f.write(field(14, field(1, key.encode()) + field(2, value.encode())))


def write_png(path, grey):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    h, w = grey.shape
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "..", "examples", "digits"))
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train_x, train_y, test_x, test_y = split()
    net = train(train_x, train_y, args.epochs)
    with torch.no_grad():
        found = net(torch.from_numpy(to_input(test_x))).argmax(1).numpy()
    right = int((found == test_y).sum())
    print(f"test split: {right} of {len(test_y)}")

    os.makedirs(args.out, exist_ok=True)
    model = os.path.join(args.out, "digits.onnx")
    torch.onnx.export(net, torch.zeros(1, 1, 8, 8), model, opset_version=17, input_names=["scan"],
                      output_names=["scores"], dynamic_axes={"scan": {0: "N"}, "scores": {0: "N"}})
    add_metadata(model, [("sardonyx.labels", ",".join(str(i) for i in range(10))),
                         ("sardonyx.scale", repr(1 / 255)), ("sardonyx.mean", "0"), ("sardonyx.std", "1"),
                         ("sardonyx.fit", "stretch"),
                         ("sardonyx.invert", "1")])
    np.savez_compressed(os.path.join(args.out, "digits_test.npz"), x=to_input(test_x), y=test_y.astype(np.int64))
    for digit in range(10):
        first = int(np.flatnonzero((test_y == digit) & (found == digit))[0])
        write_png(os.path.join(args.out, f"{digit}.png"), 255 - test_x[first])
    parameters = sum(p.numel() for p in net.parameters())
    with open(os.path.join(args.out, "README.md"), "w") as f:
        f.write(README.format(parameters=parameters, torch=torch.__version__.split("+")[0], count=len(test_y),
                              right=right, percent=100 * right / len(test_y)))


if __name__ == "__main__":
    main()
