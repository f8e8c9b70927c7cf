# SPDX-License-Identifier: Apache-2.0
"""Types of onnxruntime.quantization for calibration that programs name or derive from."""
import abc
import enum

from sardonyx import _later


class CalibrationMethod(enum.Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Gives the inputs to calibrate with, one dict a call of get_next(), then None."""

    @abc.abstractmethod
    def get_next(self):
        """The next {input name: array}, or None at the end."""

    def __iter__(self):
        return self

    def __next__(self):
        item = self.get_next()
        if item is None:
            raise StopIteration
        return item

    def __len__(self):
        raise NotImplementedError

    def set_range(self, start_index, end_index):
        raise NotImplementedError


_later.fill(__name__, globals())
