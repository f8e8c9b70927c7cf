# SPDX-License-Identifier: Apache-2.0
"""Pictures as arrays."""
from . import _sardonyx

__all__ = ["resize_area"]


def resize_area(image, width, height):
    """The image with each pixel the mean of the area that it covers.

    image: uint8 [H, W] or [H, W, C], C from 1 to 4. Returns uint8 [height, width] or
    [height, width, C]: equal to OpenCV's resize(image, (width, height), interpolation=INTER_AREA) in
    every bit, also where the picture becomes larger. ValueError: another type or shape.
    """
    return _sardonyx._resize_area(image, width, height)
