#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A made-up badminton rally as pictures, with where the ball is in each: the same for the same seed.

    examples/ball/rally.py --seed 1 --frames 200 --video rally.mp4 --csv rally.csv

Two players at the sides of a hall, a net, lights, and a ball that flies between them in arcs, is
blurred by its speed, leaves the picture at the top of high ones and is hidden by a pillar. The video
is written by ffmpeg (`apt install ffmpeg`), the table has the columns Frame, X, Y, Visibility, in
pixels; 0, 0, 0 where the ball is not to be seen.
"""
import argparse
import csv
import subprocess
import sys

import numpy as np


class Rally:
    """Pictures of `width` x `height` pixels; sizes in the code are those of 640 x 360."""

    def __init__(self, seed, width=640, height=360):
        self.random = np.random.default_rng(seed)
        self.width, self.height = width, height
        self.unit = height / 360
        self.pillar = width * self.random.uniform(0.42, 0.58)
        self.hall = self.make_hall()
        self.players = [0.12 * width, 0.88 * width]

    def make_hall(self):
        """The still part of the picture, float [H, W, 3]."""
        random, width, height = self.random, self.width, self.height
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        wall = random.uniform(40, 110, 3) + 25 * (y[..., None] / height)
        floor = random.uniform(60, 150, 3) - 20 * (x[..., None] / width)
        hall = np.where(y[..., None] > 0.72 * height, floor, wall)
        coarse = random.integers(0, 26, (height // 10 + 1, width // 10 + 1, 1))
        hall += np.kron(coarse, np.ones((10, 10, 1)))[:height, :width]  # people, far away
        for _ in range(7):  # lights and signs, some as bright as the ball
            left, top = random.uniform(0, width), random.uniform(0, 0.5 * height)
            size = self.unit * random.uniform(2, 9)
            hall[(abs(x - left) < size) & (abs(y - top) < 0.5 * size)] = random.uniform(180, 255)
        for line in (0.78, 0.9):
            hall[abs(y - line * height) < 1.2 * self.unit] = 225
        net = (abs(x - 0.5 * width) < 1.5 * self.unit) & (y > 0.45 * height) & (y < 0.8 * height)
        hall[net] = 200
        hall[abs(x - self.pillar) < 5 * self.unit] = random.uniform(30, 70, 3)
        return hall

    def new_flight(self, side):
        """An arc from the player at `side` to the other one."""
        random, height = self.random, self.height
        begin = self.players[side] + self.unit * random.uniform(-6, 6)
        end = self.players[1 - side] + self.width * random.uniform(-0.06, 0.06)
        ends = height * random.uniform(0.45, 0.6), height * random.uniform(0.45, 0.65)
        top = height * random.choice([-0.12, 0.08, 0.2, 0.35])
        steps = int(random.uniform(14, 34))
        return {"side": side, "from": begin, "to": end, "ends": ends, "top": top, "steps": steps}

    @staticmethod
    def place(flight, at):
        """Where the ball is after `at` steps: drag shortens the second half of the way."""
        s = at / flight["steps"]
        first, last = flight["ends"]
        rise = 4 * s * (1 - s) * (0.5 * (first + last) - flight["top"])
        x = flight["from"] + (flight["to"] - flight["from"]) * (1 - (1 - s) ** 1.4)
        return x, first * (1 - s) + last * s - rise

    def draw_player(self, image, side, step):
        x, unit = self.players[side], self.unit

        def box(left, top, wide, tall, colour):
            x0, y0 = int(max(0, x + left * unit)), int(max(0, top))
            image[y0:int(top + tall * unit), x0:int(max(0, x + (left + wide) * unit))] = colour
        foot, swing = 0.86 * self.height, 4 * np.sin(0.7 * step + side)
        box(-9, foot - 62 * unit, 18, 34, [(40, 60, 200), (190, 90, 40)][side])
        box(-6, foot - 76 * unit, 12, 14, (120, 160, 205))
        box(-8 + swing, foot - 28 * unit, 6, 24, (60, 50, 45))
        box(2 - swing, foot - 28 * unit, 6, 24, (60, 50, 45))
        box(-9 + swing, foot - 4 * unit, 8, 4, (245, 245, 245))  # shoes
        box(1 - swing, foot - 4 * unit, 8, 4, (245, 245, 245))
        box(6 if side == 0 else -10, foot - (70 + swing) * unit, 4, 30, (215, 215, 220))  # racket

    def draw_ball(self, image, begin, end):
        """A disc that moved from `begin` to `end` while the picture was taken."""
        (x0, y0), (x1, y1) = begin, end
        radius = 2.6 * self.unit
        left, top = (int(max(0, min(a, b) - 4 - radius)) for a, b in ((x0, x1), (y0, y1)))
        right, bottom = (int(max(0, max(a, b) + 5 + radius)) for a, b in ((x0, x1), (y0, y1)))
        part = image[top:bottom, left:right]
        y, x = np.mgrid[top:top + part.shape[0], left:left + part.shape[1]].astype(np.float32)
        length = max(1e-6, (x1 - x0) ** 2 + (y1 - y0) ** 2)
        along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1)
        away = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
        cover = np.clip(radius + 0.5 - away, 0, 1)[..., None]
        cover *= min(1.0, 0.55 + 2.5 * radius / (2 * radius + length ** 0.5))  # blur dims it
        part += cover * (np.array([205.0, 250.0, 250.0]) - part)

    def frames(self, count):
        """Yields (BGR uint8 [H, W, 3], x, y in pixels, whether the ball is to be seen) `count`
        times. The place is the middle of the blur: the shutter is open for half a step."""
        random, at = self.random, 0
        flight = self.new_flight(int(random.integers(0, 2)))
        for step in range(count):
            image = self.hall + random.integers(-5, 6, self.hall.shape)
            for side, home in enumerate((0.12 * self.width, 0.88 * self.width)):
                drift = random.uniform(-3, 3) * self.unit
                self.players[side] += drift + 0.05 * (home - self.players[side])
                self.draw_player(image, side, step)
            before, now = self.place(flight, max(0.0, at - 0.5)), self.place(flight, at)
            x, y = 0.5 * (before[0] + now[0]), 0.5 * (before[1] + now[1])
            hidden = abs(x - self.pillar) < 5 * self.unit
            if not hidden:
                self.draw_ball(image, before, now)
            visible = not hidden and 0 <= x < self.width and 0 <= y < self.height
            yield np.clip(image, 0, 255).astype(np.uint8), x, y, visible
            at += 1
            if at > flight["steps"]:
                flight, at = self.new_flight(1 - flight["side"]), 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--rate", type=int, default=25, help="frames a second")
    parser.add_argument("--video", required=True, metavar="FILE")
    parser.add_argument("--csv", required=True, metavar="FILE")
    args = parser.parse_args()
    rally = Rally(args.seed)
    writer = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "bgr24",
         "-s", f"{rally.width}x{rally.height}", "-r", str(args.rate), "-i", "-", "-c:v", "libx264",
         "-crf", "23", "-preset", "slow", "-pix_fmt", "yuv420p", args.video], stdin=subprocess.PIPE)
    with open(args.csv, "w", newline="", encoding="ascii") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["Frame", "X", "Y", "Visibility"])
        for i, (image, x, y, visible) in enumerate(rally.frames(args.frames)):
            writer.stdin.write(image.tobytes())
            table.writerow([i, round(x), round(y), 1] if visible else [i, 0, 0, 0])
    writer.stdin.close()
    return writer.wait()


if __name__ == "__main__":
    sys.exit(main())
