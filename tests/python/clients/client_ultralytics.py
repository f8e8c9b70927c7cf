# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' prediction on exported models of the zoo: boxes, keypoints, masks, classes.

    client_ultralytics.py RECORD FOLDER ZOO PICTURES     models go to FOLDER, with the facts of an export
"""
import os
import sys
from pathlib import Path

folder, zoo, pictures = map(Path, sys.argv[2:5])
os.environ.update(YOLO_CONFIG_DIR=str(folder), YOLO_AUTOINSTALL="false", YOLO_OFFLINE="true")
import onnx  # noqa: E402
from client_kit import finish, record  # noqa: E402
from ultralytics import YOLO  # noqa: E402

OTHER_ROWS = {"detect": 4, "pose": 4 + 51, "segment": 4 + 32, "obb": 5, "classify": 0}  # of the first output
MODELS = {"yolo11n": "detect", "yolo11n-pose": "pose", "yolo11n-seg": "segment", "yolo11n-obb": "obb",
          "yolo11n-cls": "classify"}


def exported(name, task):
    """The path of the model with what Ultralytics' export notes in it."""
    model = onnx.load(str(zoo / name / "model.onnx"))
    rows = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value - OTHER_ROWS[task]
    size = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim][2:]
    facts = {"stride": 32, "task": task, "batch": 1, "imgsz": size, "names": {i: f"class{i}" for i in range(rows)}}
    if task == "pose":
        facts["kpt_shape"] = [17, 3]
    onnx.helper.set_model_props(model, {key: str(value) for key, value in facts.items()})
    onnx.save(model, str(folder / f"{name}.onnx"))
    return str(folder / f"{name}.onnx")


for name, task in MODELS.items():
    if not (zoo / name / "model.onnx").is_file():
        continue
    model = YOLO(exported(name, task))
    for picture in ("bus.jpg", "zidane.jpg"):
        found = model.predict(str(pictures / picture), conf=0.001, max_det=20, device="cpu", verbose=False)
        for kind in ("boxes", "keypoints", "masks", "probs", "obb"):
            part = getattr(found[0], kind)
            if part is not None:
                record(f"{name} {picture} {kind}", part.data.numpy())
finish()
