#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/vision/golden: what OpenCV and Pillow make of small pictures.

    make_golden.py [DIR]      (pip install opencv-python-headless pillow==11.3.0 numpy)

Pillow after 12 may resize in the vertical first, which rounds differently; 11 never does.

A file NAME.golden holds: width height channels of the source, of the result (six little-endian
int32), the source's bytes, the result's bytes. Sources are noise over a slope: every place counts.
"""
import os
import struct
import sys

import cv2
import numpy as np
from PIL import Image

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "golden")
SIZES = [((13, 9), (29, 21)), ((40, 30), (17, 11)), ((32, 24), (16, 12)), ((20, 20), (20, 7)),
         ((5, 7), (64, 3)), ((37, 53), (31, 31)), ((1, 1), (4, 3)), ((100, 4), (10, 8))]


# Of area averaging: cells, blocks (2 x 2 rounds in another way), one axis as it is, larger, tiny.
AREA_SIZES = [((45, 31), (17, 12)), ((32, 24), (16, 12)), ((36, 28), (12, 7)), ((30, 20), (30, 7)),
              ((21, 30), (40, 13)), ((13, 9), (29, 21)), ((60, 60), (1, 1)), ((49, 98), (1, 2))]


def picture(rng, w, h, channels):
    slope = np.linspace(0, 200, w)[None, :, None] * np.ones((h, 1, channels))
    return (slope + rng.integers(0, 56, (h, w, channels))).astype(np.uint8)


def write(name, source, result):
    source, result = np.atleast_3d(source), np.atleast_3d(result)
    with open(os.path.join(OUT, name + ".golden"), "wb") as f:
        for a in (source, result):
            f.write(struct.pack("<3i", a.shape[1], a.shape[0], a.shape[2]))
        f.write(source.tobytes() + result.tobytes())


def main():
    os.makedirs(OUT, exist_ok=True)
    rng = np.random.default_rng(7)
    for i, ((w, h), (ow, oh)) in enumerate(SIZES):
        for channels in (1, 3):
            source = picture(rng, w, h, channels)
            flat = source if channels == 3 else source[:, :, 0]
            write(f"bilinear_{i}_{channels}", source, cv2.resize(flat, (ow, oh), interpolation=cv2.INTER_LINEAR))
            result = np.asarray(Image.fromarray(flat).resize((ow, oh), Image.Resampling.BILINEAR))
            write(f"antialias_{i}_{channels}", source, result)
    rgb = picture(rng, 16, 12, 3)
    write("grey", rgb, np.asarray(Image.fromarray(rgb).convert("L")))
    # The same picture in each format; lossy ones are compared with a tolerance.
    smooth = cv2.resize(picture(rng, 6, 4, 3), (48, 32), interpolation=cv2.INTER_CUBIC)
    image = Image.fromarray(smooth)
    image.save(os.path.join(OUT, "smooth.png"))
    image.save(os.path.join(OUT, "smooth.bmp"))
    image.save(os.path.join(OUT, "smooth.jpg"), quality=95, subsampling=0)
    image.save(os.path.join(OUT, "smooth.webp"), lossless=True)
    Image.fromarray(np.dstack([smooth, np.full((32, 48), 128, np.uint8)])).save(os.path.join(OUT, "alpha.png"))
    image.quantize(16).save(os.path.join(OUT, "palette.png"))
    write("palette", smooth, np.asarray(image.quantize(16).convert("RGB")))
    Image.fromarray(smooth[:, :, 0]).save(os.path.join(OUT, "grey.png"))
    write("smooth", smooth, smooth)
    write("smooth_jpg", smooth, np.asarray(Image.open(os.path.join(OUT, "smooth.jpg")).convert("RGB")))
    # Whole ways from a picture to an input: torchvision's Resize(18) and CenterCrop(16); Ultralytics'
    # LetterBox((32, 32)); YOLOX's preproc. Written out here with the same calls that those make.
    source = picture(rng, 40, 30, 3)
    small = np.asarray(Image.fromarray(source).resize((24, 18), Image.Resampling.BILINEAR))
    write("way_crop", source, small[1:17, 4:20])
    source = picture(rng, 50, 37, 3)
    r = min(32 / 37, 32 / 50)
    w, h = round(50 * r), round(37 * r)
    dw, dh = (32 - w) / 2, (32 - h) / 2
    small = cv2.resize(source, (w, h), interpolation=cv2.INTER_LINEAR)
    write("way_letterbox", source, cv2.copyMakeBorder(
        small, round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1), cv2.BORDER_CONSTANT,
        value=(114, 114, 114)))
    padded = np.full((32, 32, 3), 114, np.uint8)
    w, h = int(50 * r), int(37 * r)
    padded[:h, :w] = cv2.resize(source, (w, h), interpolation=cv2.INTER_LINEAR)
    write("way_corner", source, padded)
    # What a camera writes: the sensor's picture and how to turn it, for each orientation.
    turn = {1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
            5: lambda a: a.transpose(1, 0, 2), 6: lambda a: np.rot90(a), 7: lambda a: np.rot90(a, 2).transpose(1, 0, 2),
            8: lambda a: np.rot90(a, -1)}
    for orientation, stored in turn.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        turned = Image.fromarray(np.ascontiguousarray(stored(smooth)))
        for ending, options in (("jpg", {"quality": 95, "subsampling": 0}), ("png", {}), ("webp", {"lossless": True})):
            if ending == "jpg" or orientation == 6:
                turned.save(os.path.join(OUT, f"turned_{orientation}.{ending}"), exif=exif, **options)
    rng = np.random.default_rng(70)
    for i, ((w, h), (ow, oh)) in enumerate(AREA_SIZES):
        for channels in range(1, 5):
            source = picture(rng, w, h, channels)
            flat = source if channels > 1 else source[:, :, 0]
            write(f"area_{i}_{channels}", source, cv2.resize(flat, (ow, oh), interpolation=cv2.INTER_AREA))


if __name__ == "__main__":
    main()
