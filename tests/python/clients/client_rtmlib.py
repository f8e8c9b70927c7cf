# SPDX-License-Identifier: Apache-2.0
"""rtmlib's detectors and pose estimators on pictures, through the module onnxruntime.

    client_rtmlib.py RECORD REAL ZOO PICTURES     folders; what is absent there is left out
"""
import sys
from pathlib import Path

import cv2
from client_kit import finish, record
from rtmlib import YOLOX, RTMDet, RTMPose

real, zoo, pictures = map(Path, sys.argv[2:5])
images = {name: cv2.imread(str(pictures / name)) for name in ("bus.jpg", "zidane.jpg", "human-pose.jpeg")
          if (pictures / name).is_file()}
settings = {"backend": "onnxruntime", "device": "cpu"}
boxes = {}
detectors = ((RTMDet, real / "rtmdet_nano_person_e2e", (320, 320)), (YOLOX, real / "yolox_nano", (416, 416)))
for kind, folder, size in detectors:
    if (folder / "model.onnx").is_file():
        detector = kind(str(folder / "model.onnx"), model_input_size=size, **settings)
        for name, image in images.items():
            boxes[name] = detector(image)
            record(f"{folder.name} {name}", boxes[name])
for name in ("rtmpose_s", "rtmpose_t26"):
    path = zoo / name / "model.onnx"
    if path.is_file():
        pose = RTMPose(str(path), model_input_size=(192, 256), **settings)
        for image_name, image in images.items():
            record(f"{name} {image_name}", pose(image, bboxes=[[50, 50, 300, 400]]))
            record(f"{name} {image_name} raw", pose.inference(pose.preprocess(image, [0, 0, 200, 300])[0]))
finish()
