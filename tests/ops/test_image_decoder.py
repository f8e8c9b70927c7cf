# SPDX-License-Identifier: Apache-2.0
"""ImageDecoder: kinds of pictures that the standard's cases leave out, against Pillow, which the
operator's reference uses; broken pictures; a missing module."""
import io

import numpy
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

SAVED = [
    ("BMP", "RGB", {}), ("BMP", "L", {}), ("BMP", "P", {}), ("BMP", "1", {}), ("BMP", "RGBA", {}),
    ("PNG", "RGB", {}), ("PNG", "L", {}), ("PNG", "P", {}), ("PNG", "1", {}), ("PNG", "RGBA", {}),
    ("PNG", "LA", {}), ("PPM", "RGB", {}), ("PPM", "L", {}), ("PPM", "1", {}),
    ("JPEG", "RGB", {"quality": 90}), ("JPEG", "RGB", {"subsampling": 0}), ("JPEG", "L", {}),
    ("JPEG", "RGB", {"subsampling": 1, "progressive": True}), ("JPEG", "CMYK", {}),
    ("TIFF", "RGB", {}), ("TIFF", "RGB", {"compression": "tiff_lzw"}), ("TIFF", "L", {}),
    ("TIFF", "RGB", {"compression": "tiff_deflate"}), ("TIFF", "P", {}), ("TIFF", "RGBA", {}),
    ("TIFF", "1", {"compression": "group4"}), ("WEBP", "RGB", {}), ("WEBP", "RGB", {"lossless": True}),
    ("WEBP", "RGBA", {"lossless": True}), ("JPEG2000", "RGB", {}), ("JPEG2000", "L", {}),
    ("JPEG2000", "RGB", {"irreversible": True, "quality_layers": [20]}),
    ("JPEG2000", "RGBA", {"no_jp2": True}),
]


def save_model(folder, pixels):
    channels = 1 if pixels == "Grayscale" else 3
    graph = helper.make_graph(
        [helper.make_node("ImageDecoder", ["file"], ["image"], pixel_format=pixels)], "decoder",
        [helper.make_tensor_value_info("file", TensorProto.UINT8, ["N"])],
        [helper.make_tensor_value_info("image", TensorProto.UINT8, ["H", "W", channels])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
              str(folder / "model.onnx"))


def save_case(folder, pixels, encoded, decoded):
    (folder / "test_data_set_0").mkdir(parents=True)
    save_model(folder, pixels)
    arrays = {"input_0": numpy.frombuffer(encoded, numpy.uint8), "output_0": decoded}
    for name, value in arrays.items():
        proto = numpy_helper.from_array(numpy.ascontiguousarray(value))
        (folder / "test_data_set_0" / f"{name}.pb").write_bytes(proto.SerializeToString())


def test_against_pillow(sardonyx, tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = numpy.random.default_rng(0)
    y, x = numpy.mgrid[0:29, 0:35]
    smooth = numpy.stack([x * 7 % 256, y * 8, (x + y) * 4], axis=-1) + rng.integers(0, 9, (29, 35, 3))
    source = image.fromarray(numpy.clip(smooth, 0, 255).astype(numpy.uint8))
    for i, (kind, mode, options) in enumerate(SAVED):
        file = io.BytesIO()
        source.convert(mode).save(file, kind, **options)
        opened = image.open(io.BytesIO(file.getvalue()))
        rgb = numpy.array(opened.convert("RGB"))
        gray = numpy.array((opened if opened.mode in ("L", "LA", "1") else opened.convert("RGB"))
                           .convert("L"))[..., None]
        for pixels, decoded in (("RGB", rgb), ("BGR", rgb[:, :, ::-1]), ("Grayscale", gray)):
            save_case(tmp_path / f"{i}_{kind}_{mode}_{pixels}", pixels, file.getvalue(), decoded)
    # Mode and kind in a folder's name tell which one differs.
    sardonyx("test", *sorted(tmp_path.iterdir()), "--atol", "0", "--rtol", "0")


@pytest.mark.parametrize("encoded", (b"", b"nothing", b"BM" + 60 * b"\xff", b"P6 3 2 255\n\0\1", b"P5 1",
                                     b"P6 1000000 1000000 255\n" + bytes(50),
                                     b"\x89PNG\r\n\x1a\n" + bytes(40), b"\xff\xd8\xff\xe0" + bytes(40),
                                     b"II*\0\x08\0\0\0\xff\xff", b"RIFF\x10\0\0\0WEBPVP8 "))
def test_broken(encoded, sardonyx, tmp_path):
    """As the standard says: an empty picture."""
    for pixels, channels in (("RGB", 3), ("Grayscale", 1)):
        save_case(tmp_path / pixels, pixels, encoded, numpy.zeros((0, 0, channels), numpy.uint8))
    sardonyx("test", *sorted(tmp_path.iterdir()))


def test_missing_module(sardonyx, tmp_path):
    save_case(tmp_path / "a", "RGB", b"P5 1 1 255\n7", numpy.full((1, 1, 3), 55, numpy.uint8))
    sardonyx("test", tmp_path / "a")
    for place in ("/nowhere/libsardonyx_codecs.so", "libsardonyx_codecs.so"):
        done = sardonyx("test", tmp_path / "a", env={"SDX_CODECS": place}, code=None)
        assert "ImageDecoder needs its codecs: SDX_CODECS is" in done.out + done.err and done.code != 0
