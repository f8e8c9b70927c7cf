# SPDX-License-Identifier: Apache-2.0
"""sdx_tracknet_* against the recorded tracks of the published module, and against its re-creation."""
import numpy as np
import pytest
from onnx import helper

import track_golden
import track_models
import tracknet_original
import vision_library

MISMATCH = "Model metadata mismatch: expected "


@pytest.fixture()
def make():
    """TrackNet(...) and Inpaint(...) that end with the test."""
    made = []

    def make_one(kind, *arguments, **options):
        made.append(kind(*arguments, **options))
        return made[-1]

    yield make_one
    for module in made:
        module.close()


@pytest.mark.parametrize("index", range(track_golden.COUNT))
def test_recorded(index, shared, make, tmp_path):
    """X, Y and Visibility of every frame."""
    def tracknet(*arguments, **options):
        return make(vision_library.TrackNet, *arguments, **options)

    def inpaint(*arguments):
        return make(vision_library.Inpaint, *arguments)

    def resize(image, width, height):
        return vision_library.resize_area(vision_library.load(), image, width, height)

    track_golden.check(shared / "tracknet", index, tmp_path, tracknet, inpaint, resize)


ORIGINAL = [
    # bg_mode, seq_len, eval_mode, width, median, warm-up, ids
    ("", 1, "weight", 512, None, 0, None),
    ("", 5, "weight", 1024, None, 0, None),
    ("", 4, "nonoverlap", 512, None, 0, None),
    ("subtract", 3, "average", 1024, "given", 0, None),
    ("subtract", 4, "weight", 512, None, 4, None),
    ("subtract_concat", 2, "weight", 1024, None, 3, None),
    ("subtract_concat", 4, "average", 512, "given", 0, None),
    ("concat", 3, "weight", 1024, None, 6, None),
    ("concat", 4, "weight", 512, "given", 0, None),
    ("concat", 2, "average", 512, "float", 0, None),
    ("", 3, "weight", 512, None, 0, [7, 8, 9, 20, 21, 22, 23, 5, 6, 7, 7, 7, 8]),
    ("", 3, "average", 512, None, 0, [2 * i for i in range(13)]),
]


@pytest.mark.parametrize("mode,seq_len,weighing,width,median,warmup,ids", ORIGINAL)
def test_against_original(mode, seq_len, weighing, width, median, warmup, ids, make, tmp_path):
    """Every track and every heat map, twice with a reset between."""
    path = track_models.tracknet(tmp_path / "tracknet.onnx", seq_len, mode)
    background, frames = track_models.rally(width, width * 288 // 512, 13, 13)
    given = None
    if median is not None:
        given = background
        if mode == "concat":
            given = tracknet_original.shrink(background, 512, 288).transpose(2, 0, 1)
        if median == "float":
            given = (given + np.float32(0.25)).astype(np.float32)
    options = dict(eval_mode=weighing, median=given, median_warmup=warmup)
    ours = make(vision_library.TrackNet, path, seq_len, mode, **options)
    original = tracknet_original.TrackNet(path, seq_len, mode, **options)
    for _ in range(2):
        for i, image in enumerate(frames):
            wanted = original.push(image, ids and ids[i])
            assert ours.push(image, ids and ids[i]) == wanted
            if wanted is not None:
                assert np.abs(ours.heat - original.heat).max() <= 1e-4
        ours_heats, heats = [], []
        found = ours.flush(each=lambda: ours_heats.append(ours.heat.copy()))
        assert found == original.flush(each=lambda: heats.append(original.heat))
        assert all(np.abs(a - b).max() <= 1e-4 for a, b in zip(ours_heats, heats))
        ours.reset()
        original.reset()
    for key in ("push_calls", "outputs"):
        assert ours.stats[key] == original.stats[key]
    assert all(ours.stats[key] >= 0 for key in ("t_preprocess", "t_forward", "t_post", "t_median"))


def test_stream_goes_on_after_flush(make, tmp_path):
    """flush empties the window; ids go on counting; a track needs a whole window again."""
    path = track_models.tracknet(tmp_path / "tracknet.onnx", 3, "")
    _, frames = track_models.rally(512, 288, 5, 4)
    module = make(vision_library.TrackNet, path, 3, "")
    rows = [module.push(image) for image in frames]
    assert [row and row["Frame"] for row in rows] == [None, None, 0, 1, 2]
    assert [row["Frame"] for row in module.flush()] == [3, 4]
    assert module.flush() == []
    rows = [module.push(image) for image in frames]
    assert [row and row["Frame"] for row in rows] == [None, None, 5, 6, 7]


def test_no_ball(make, tmp_path):
    """A heat map without anything above 0 gives no place."""
    nodes = [helper.make_node("Slice", ["frames", "zero", "two", "one"], ["some"]),
             helper.make_node("Mul", ["some", "nought"], ["heat"])]
    path = tmp_path / "dark.onnx"
    track_models.save(path, "dark", nodes, [("frames", [1, 6, 288, 512])],
                      [("heat", [1, 2, 288, 512])],
                      {"nought": 0, "zero": np.array([0]), "two": np.array([2]), "one": np.array([1])}, {})
    module = make(vision_library.TrackNet, path, 2, "")
    image = np.full((288, 512, 3), 9, np.uint8)
    assert [module.push(image), module.push(image)] == [
        None, {"Frame": 0, "X": 0, "Y": 0, "Visibility": 0}]


def refused(make, error, text, kind, *arguments, **options):
    with pytest.raises(error) as caught:
        make(kind, *arguments, **options)
    assert str(caught.value) == text


def test_metadata(make, tmp_path):
    told = {"model_name": "TrackNet", "seq_len": 4, "bg_mode": "concat", "batch_mode": "dynamic",
            "batch_size": 1}
    path = track_models.tracknet(tmp_path / "told.onnx", 4, "concat", told)
    kind = vision_library.TrackNet
    make(kind, path, 4, "concat", median_warmup=1)
    refused(make, ValueError, f"{MISMATCH}seq_len=8, got 4. Model={path}", kind, path, 8, "concat")
    refused(make, ValueError, f"{MISMATCH}bg_mode='subtract', got 'concat'. Model={path}", kind, path,
            4, "subtract")
    refused(make, ValueError, f"model input 'frames' has 15 channels, bg_mode='' with seq_len=4 needs "
            f"12. Model={path}", kind, path, 4, "")
    bad = track_models.tracknet(tmp_path / "bad.onnx", 4, "", {"seq_len": "many"})
    refused(make, ValueError, f"{MISMATCH}seq_len=4, got many. Model={bad}", kind, bad, 4, "")
    filler = track_models.inpaintnet(tmp_path / "filler.onnx", 6, {"seq_len": 6})
    refused(make, ValueError, f"{MISMATCH}seq_len=5, got 6. Model={filler}", vision_library.Inpaint,
            filler, 5, None, (1, 1))


def test_seq_len_and_mode_of_the_model(make, tmp_path):
    """0 and NULL: from the metadata, else from the shapes."""
    module = make(vision_library.Module, "tracknet")
    module.library.sdx_tracknet_bg_mode.restype = vision_library.ctypes.c_char_p
    for mode, told in (("subtract", {}), ("concat", {"seq_len": 5, "bg_mode": "concat"}), ("", {})):
        path = track_models.tracknet(tmp_path / "model.onnx", 5, mode, told)
        options = vision_library.TrackNetOptions()
        module.library.sdx_tracknet_options_init(vision_library.ctypes.byref(options))
        module.call("open", module.context, str(path).encode(),
                    vision_library.ctypes.byref(options),
                    vision_library.ctypes.byref(module.handle))
        assert module.library.sdx_tracknet_seq_len(module.handle) == 5
        assert module.library.sdx_tracknet_bg_mode(module.handle).decode() == mode
        module.library.sdx_tracknet_destroy(module.handle)
        module.handle = vision_library.ctypes.c_void_p()


def test_bad_models(make, tmp_path):
    kind, missing = vision_library.TrackNet, tmp_path / "missing.onnx"
    refused(make, ValueError, f"ONNX model file not found: {missing}", kind, missing, 8, "")
    refused(make, ValueError, f"ONNX model file not found: {missing}", vision_library.Inpaint, missing,
            8, None, (1, 1))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x0a\xffno model")
    for path in (broken, tmp_path):
        with pytest.raises(ValueError) as caught:
            make(kind, path, 8, "")
        assert str(path) in str(caught.value)
    path = track_models.tracknet(tmp_path / "model.onnx", 3, "")
    refused(make, ValueError, "Invalid eval_mode: 'best'", kind, path, 3, "", eval_mode="best")
    refused(make, ValueError, "Invalid bg_mode: 'divide'", kind, path, 3, "divide")
    refused(make, ValueError, "seq_len must be positive", kind, path, -1, "")
    batch = track_models.tracknet(tmp_path / "batch.onnx", 3, "", batch=4)
    refused(make, ValueError, f"the model's input is float[4,9,288,512], expected float[1,9,288,512]. "
            f"Model={batch}", kind, batch, 3, "")
    filler = track_models.inpaintnet(tmp_path / "filler.onnx", 4)
    with pytest.raises(ValueError, match="the model's input is float.batch,4,2., expected"):
        make(kind, filler, 4, "")
    with pytest.raises(ValueError, match=r"the model is \(float\[batch,9,288,512\], missing\)"):
        make(vision_library.Inpaint, path, 3, None, (1, 1))


def test_bad_frames(make, tmp_path):
    path = track_models.tracknet(tmp_path / "model.onnx", 2, "subtract")
    frame = np.zeros((288, 512, 3), np.uint8)
    module = make(vision_library.TrackNet, path, 2, "subtract")
    with pytest.raises(RuntimeError) as caught:
        module.push(frame)
    assert str(caught.value) == ("bg_mode='subtract' needs median. Pass median=... or set "
                                 "median_warmup>0.")
    assert module.stats["push_calls"] == 1
    module = make(vision_library.TrackNet, path, 2, "subtract", median_warmup=2)
    assert module.push(frame) is None
    with pytest.raises(ValueError, match="the frame is 256 x 288, those before it 512 x 288"):
        module.push(frame[:, :256])
    assert module.push(frame) is None and module.push(frame) is not None
    with pytest.raises(ValueError, match="the frame is 512 x 144, the median 512 x 288"):
        module.push(frame[:144])
    assert module.push(frame) is not None
    with pytest.raises(ValueError, match="a frame of 0 x 288 cannot be taken"):
        module.push(frame[:, :0])


def test_other_sizes_on_the_way(make, tmp_path):
    """The first frame fixes the scale; later ones may have another size."""
    path = track_models.tracknet(tmp_path / "model.onnx", 2, "")
    _, small = track_models.rally(512, 288, 6, 5)
    _, large = track_models.rally(1024, 576, 6, 5)
    ours = make(vision_library.TrackNet, path, 2, "")
    original = tracknet_original.TrackNet(path, 2, "")
    for image in (large[0], small[1], small[2], large[3], small[4], large[5]):
        assert ours.push(image) == original.push(image)


@pytest.mark.parametrize("device", [None, "cpu", "cuda", "cuda:0"])
def test_device(device, make, tmp_path):
    """CUDA where it starts, else the engine; the tracks are the same."""
    path = track_models.tracknet(tmp_path / "model.onnx", 2, "")
    _, frames = track_models.rally(512, 288, 3, 5)
    module = make(vision_library.TrackNet, path, 2, "", device=device)
    provider = module.library.sdx_tracknet_provider
    provider.restype = vision_library.ctypes.c_char_p
    names = {b"CPUExecutionProvider"} | ({b"CUDAExecutionProvider"} if device != "cpu" else set())
    assert provider(module.handle) in names
    assert [row and row["Frame"] for row in map(module.push, frames)] == [None, 0, 1]


def test_inpaint_window(make, tmp_path):
    """A model with a fixed batch gives what one of any batch gives; reset empties the window."""
    tracks = [{"Frame": i, "X": 40 * i, "Y": 700 - 30 * i, "Visibility": int(i % 3 != 1)}
              for i in range(12)]
    rows = []
    for batch in ("batch", 4):
        path = track_models.inpaintnet(tmp_path / f"filler_{batch}.onnx", 4, batch=batch)
        module = make(vision_library.Inpaint, path, 4, "cpu", (2.5, 2.5))
        for row in tracks[:5]:
            module.push(row)
        module.reset()
        assert module.flush() == []
        rows.append([module.push(row) for row in tracks])
        assert module.flush() == [row if row["Visibility"] and row["X"] else
                                  {"Frame": row["Frame"], "X": 0, "Y": 0, "Visibility": 0}
                                  for row in tracks[-4:]]
        assert module.stats["push_calls"] == 17 and module.stats["outputs"] == 11
    assert rows[0] == rows[1] and rows[0][:3] == [None] * 3
    assert [row["Frame"] for row in rows[0][3:]] == list(range(9))
    assert all(row["Visibility"] for row in rows[0][3:])
