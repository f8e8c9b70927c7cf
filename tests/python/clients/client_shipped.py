# SPDX-License-Identifier: Apache-2.0
"""Packages whose models, or operators, come in their wheels: Magika, NudeNet, Piper's diacritics for
Arabic, and the custom operators of onnxruntime-extensions.

    client_shipped.py RECORD PICTURES FILE...     Magika names the type of each FILE
"""
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from client_kit import finish, record
from magika import Magika
from nudenet import NudeDetector
from onnx import TensorProto as T
from onnx import helper
from onnxruntime_extensions import get_library_path
from piper.tashkeel import TashkeelDiacritizer

pictures, files = Path(sys.argv[2]), [Path(word) for word in sys.argv[3:]]


def types_of_files():
    magika = Magika()
    texts = [b"", b"a", b"#!/bin/sh\necho hi\n" * 20, b'{"a": 1}' * 40, bytes(range(256)) * 20]
    found = [(f"text {i}", magika.identify_bytes(text)) for i, text in enumerate(texts)]
    found += [(f"file {path.name}", magika.identify_path(path)) for path in files]
    found += [(f"batch {i}", item) for i, item in enumerate(magika.identify_paths(files))]
    for name, item in found:
        record(name, [str(item.output.label), item.score])


def detections():
    detector = NudeDetector()
    names = [str(pictures / name) for name in ("bus.jpg", "faces_1.jpg", "human-pose.jpeg")]
    names = [name for name in names if Path(name).is_file()]
    for name in names:
        record(f"detect {Path(name).name}", detector.detect(name))
    record("detect all", detector.detect_batch(names, batch_size=2) if names else [])


def diacritics():
    tashkeel = TashkeelDiacritizer()
    for text in ("\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
                 "\u0643\u062a\u0628 \u0627\u0644\u0648\u0644\u062f \u0627\u0644\u062f\u0631\u0633 2"):
        record(f"diacritics {text}", [tashkeel.diacritize(text), tashkeel(text, 0.5)])


def custom(op, inputs, outputs, dtype, **feeds):
    """Runs one operator of the library; inputs and outputs are names."""
    values = [[helper.make_tensor_value_info(name, kind, None) for name in names.split()]
              for names, kind in ((inputs, dtype), (outputs, dtype))]
    node = helper.make_node(op, inputs.split(), outputs.split(), domain="ai.onnx.contrib")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    model = helper.make_model(helper.make_graph([node], op, *values), opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    record(f"operator {op}", session.run(None, feeds))


types_of_files()
detections()
diacritics()
custom("StringUpper", "x", "y", T.STRING, x=np.array(["abc", "Def"], object))
custom("StringConcat", "x z", "y", T.STRING, x=np.array(["a", "b"], object), z=np.array(["c", "d"], object))
custom("StringRegexReplace", "x p r", "y", T.STRING, x=np.array(["abc", "bcd"], object), p=np.array(["b"], object),
       r=np.array(["ZZ"], object))
custom("NegPos", "x", "a b", T.FLOAT, x=np.array([1, -2, 3], np.float32))
custom("Inverse", "x", "y", T.FLOAT, x=np.array([[2, 1], [1, 3]], np.float32))
finish()
