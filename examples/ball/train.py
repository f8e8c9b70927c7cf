#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network of TrackNet's shape on made-up rallies and writes it as ONNX.

    examples/ball/train.py [--steps 1500] [--out examples/ball/ball.onnx]

Needs PyTorch (`apt install python3-torch`). Input [N, 12, 288, 512]: the median of the video and three
frames, RGB / 255 (background mode "concat", seq_len 3); output [N, 3, 288, 512]: for each frame how
sure each pixel is to be the ball. The loss is the weighted cross entropy of TrackNetV3 (Chen and Wang,
"TrackNetV3", 2023). The rallies to learn from have seeds from 100 on; that of the shipped clip is 1.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from rally import Rally  # noqa: E402  (beside this file)

WIDTH, HEIGHT, FRAMES, RADIUS = 512, 288, 3, 2.5
LEAST = 0.4  # what is below is no ball
CROP = (128, 160)  # height and width of what is learnt from: a seventh of a picture


def block(channels_in, channels, stride=1):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
        nn.ReLU(), nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels),
        nn.ReLU())


class Network(nn.Module):
    """Encoder and decoder with bridges, half of the resolution inside."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = block(12, 16, 2), block(16, 32), block(32, 48)
        self.up2, self.up1 = block(80, 32), block(48, 16)
        self.head = nn.Sequential(nn.Conv2d(16, 4 * FRAMES, 3, 1, 1), nn.PixelShuffle(2))
        self.pool, self.twice = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)

    def forward(self, x):
        fine = self.down1(x)
        middle = self.down2(self.pool(fine))
        coarse = self.down3(self.pool(middle))
        middle = self.up2(torch.cat([self.twice(coarse), middle], 1))
        fine = self.up1(torch.cat([self.twice(middle), fine], 1))
        return torch.sigmoid(self.head(fine))


class Sure(nn.Module):
    """What is exported: 0 where the network is not sure, so that no maximum means no ball."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return torch.relu(self.network(x) - LEAST) / (1 - LEAST)


def make_rally(seed, count):
    """(median [3, H, W], frames [count, 3, H, W] uint8 RGB, places [count, 3]: x, y, visible)."""
    frames, places = [], []
    for image, x, y, visible in Rally(seed, WIDTH, HEIGHT).frames(count):
        frames.append(image[:, :, ::-1].transpose(2, 0, 1))
        places.append((x, y, visible))
    frames = np.stack(frames)
    return np.median(frames[::3], 0).astype(np.uint8), frames, np.array(places)


def sample(rally, random):
    """A crop of three neighbouring frames, mostly around the ball, and its heat maps."""
    median, frames, places = rally
    first = int(random.integers(0, len(frames) - FRAMES + 1))
    x, y, _ = places[first + 1]
    if random.random() < 0.3:
        x, y = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
    tall, wide = CROP
    left = int(np.clip(x - random.uniform(0.1, 0.9) * wide, 0, WIDTH - wide))
    top = int(np.clip(y - random.uniform(0.1, 0.9) * tall, 0, HEIGHT - tall))
    part = np.concatenate([median[None], frames[first:first + FRAMES]])
    part = part[:, :, top:top + tall, left:left + wide].reshape(-1, tall, wide)
    rows, columns = np.mgrid[top:top + tall, left:left + wide]
    heat = np.stack([seen * (np.hypot(columns - cx, rows - cy) <= RADIUS)
                     for cx, cy, seen in places[first:first + FRAMES]])
    return part.astype(np.float32) / 255, heat.astype(np.float32)


def loss_of(found, wanted):
    found = found.clamp(1e-6, 1 - 1e-6)
    return -((1 - found) ** 2 * wanted * found.log()
             + found ** 2 * (1 - wanted) * (1 - found).log()).mean()


def field(number, data):
    """A field of bytes of a protobuf message: shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def add_metadata(path, pairs):
    """Entries of ModelProto.metadata_props (field 14): messages that follow each other are one."""
    with open(path, "ab") as file:
        for key, value in pairs.items():
            file.write(field(14, field(1, key.encode()) + field(2, value.encode())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--rallies", type=int, default=24)
    parser.add_argument("--out", default=str(HERE / "ball.onnx"))
    args = parser.parse_args()
    torch.manual_seed(7)
    random = np.random.default_rng(7)
    rallies = [make_rally(100 + i, 45) for i in range(args.rallies)]
    network = Network()
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, args.steps)
    mean = 0.0
    for step in range(args.steps):
        parts, heats = zip(*(sample(rallies[int(random.integers(len(rallies)))], random)
                             for _ in range(8)))
        loss = loss_of(network(torch.from_numpy(np.stack(parts))),
                       torch.from_numpy(np.stack(heats)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        mean += 0.02 * (loss.item() - mean)
        if step % 50 == 49:
            print(f"step {step + 1} of {args.steps}: loss {mean * 1e3:.3f}e-3", flush=True)
    torch.onnx.export(Sure(network).eval(), torch.zeros(1, 12, HEIGHT, WIDTH), args.out, opset_version=13,
                      input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}})
    add_metadata(args.out, {"model_name": "TrackNet", "seq_len": str(FRAMES), "bg_mode": "concat",
                            "batch_mode": "dynamic", "batch_size": "1"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
