/* SPDX-License-Identifier: Apache-2.0
 * libsardonyx_vision: pictures in, answers out. Reading and writing of pictures, the resizing and
 * padding that models were trained with, the heads of detectors, drawing.
 *
 * Rules: as in sardonyx.h. A picture is rows of 8-bit values without padding, top row first; colour
 * is R, G, B. Coordinates are in pixels, x to the right, y down; a box is [x0, x1) x [y0, y1).
 * A function that can fail returns sdx_status and leaves one line of text in *fault.
 */
#ifndef SARDONYX_VISION_H
#define SARDONYX_VISION_H

#include <sardonyx/sardonyx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call given it failed: one line, without a full stop. */
typedef struct sdx_vision_fault {
    char text[4608]; /* a path fits in */
} sdx_vision_fault;

/* Whether FFmpeg may write its messages to stderr; it does unless told not to. Holds for the whole
 * process. */
SDX_API void sdx_vision_log(bool on);

/* ---- pictures -------------------------------------------------------------------------------- */

typedef struct sdx_image {
    int width, height;
    int channels;    /* 1: grey, 3: R G B; 2 and 4 can be resized, not read, written or drawn on */
    uint8_t *pixels; /* height * width * channels bytes, owned by the picture */
} sdx_image;

/* A black picture. The caller ends it with sdx_image_deinit, which accepts a zeroed one. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_init(sdx_image *image, int width, int height,
                                                 int channels, sdx_vision_fault *fault);
SDX_API void sdx_image_deinit(sdx_image *image);
/* Reads PNG, JPEG, WebP or BMP (told from the bytes, not the name) into 1 or 3 channels, upright:
 * an Exif orientation is applied. Transparency is dropped; grey is 0.299 R + 0.587 G + 0.114 B. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_load(const char *path, int channels, sdx_image *out,
                                                 sdx_vision_fault *fault);
SDX_API SDX_MUST_CHECK sdx_status sdx_image_decode(const void *bytes, size_t size, int channels,
                                                   sdx_image *out, sdx_vision_fault *fault);
/* Writes the format that the name's ending says: .png .jpg .jpeg .webp .bmp. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_save(const char *path, const sdx_image *image,
                                                 sdx_vision_fault *fault);
/* The Exif orientation (1 to 8) of a JPEG, PNG or WebP file; 1 when it has none. */
SDX_API int sdx_image_orientation(const void *bytes, size_t size);
/* Turns a picture of Exif orientation `orientation` upright, in place. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_turn(sdx_image *image, int orientation,
                                                 sdx_vision_fault *fault);

typedef enum sdx_resize {
    SDX_RESIZE_BILINEAR = 0, /* four neighbours, as OpenCV's INTER_LINEAR on 8 bits */
    SDX_RESIZE_ANTIALIAS = 1 /* triangle as wide as the step, as Pillow's BILINEAR */
} sdx_resize;

SDX_API SDX_MUST_CHECK sdx_status sdx_image_resize(const sdx_image *image, int width, int height,
                                                   sdx_resize how, sdx_image *out,
                                                   sdx_vision_fault *fault);
/* The mean of the area that each pixel of the result covers, as OpenCV's INTER_AREA on 8 bits makes
 * it, to the last bit, for any sizes: where an axis becomes longer that is a mix of neighbours. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_resize_area(const sdx_image *image, int width,
                                                        int height, sdx_image *out,
                                                        sdx_vision_fault *fault);
/* The part of `image` that begins at (left, top); it may reach outside, where `grey` is put. */
SDX_API SDX_MUST_CHECK sdx_status sdx_image_crop(const sdx_image *image, int left, int top,
                                                 int width, int height, uint8_t grey,
                                                 sdx_image *out, sdx_vision_fault *fault);

/* ---- heads of detectors -----------------------------------------------------------------------
 */

/* X(id, name, meaning): what a detector's first output holds. A: number of anchors, K: classes. */
#define SDX_HEADS(X)                                                                               \
    X(SDX_HEAD_V5, "v5", "[1, A, 5+K] cx cy w h objectness classes; YOLOv5, YOLOv7")               \
    X(SDX_HEAD_V8, "v8", "[1, 4+K, A] cx cy w h classes; YOLOv8, YOLOv9, YOLO11")                  \
    X(SDX_HEAD_YOLOX, "yolox", "[1, A, 5+K] offsets in a grid of strides 8, 16, 32; YOLOX")        \
    X(SDX_HEAD_YOLOX_DECODED, "yolox-decoded", "[1, A, 5+K] as v5, with YOLOX's input")            \
    X(SDX_HEAD_NMS, "nms", "[1, M, 6] x0 y0 x1 y1 score class, suppressed inside; YOLOv10")

typedef enum sdx_head {
    SDX_HEAD_NONE = 0,
#define SDX_HEAD_ENUM(id, name, meaning) id,
    SDX_HEADS(SDX_HEAD_ENUM)
#undef SDX_HEAD_ENUM
} sdx_head;

/* ---- from a picture to a model's input --------------------------------------------------------
 */

typedef enum sdx_fit {
    SDX_FIT_STRETCH = 0,         /* to the input's size, whatever the shape */
    SDX_FIT_CROP = 1,            /* shorter side to size / crop, then the centre */
    SDX_FIT_LETTERBOX = 2,       /* whole, in the centre, grey 114 around; Ultralytics' rounding */
    SDX_FIT_LETTERBOX_CORNER = 3 /* whole, top left, grey 114 around; YOLOX's rounding */
} sdx_fit;

/* Where a picture lies in a model's input: x_input = x_picture * scale + left. */
typedef struct sdx_letterbox {
    double scale;
    int left, top;     /* of the picture in the input */
    int width, height; /* of the picture in the input */
} sdx_letterbox;

SDX_API void sdx_letterbox_place(int width, int height, int input_width, int input_height,
                                 sdx_fit fit, sdx_letterbox *out);

/* What a model wants as input: value = ((255 - p if invert, else p) * scale - mean) / std. */
typedef struct sdx_vision_input {
    const char *name; /* of the input; borrowed from the model */
    sdx_dtype dtype;  /* SDX_F32, SDX_F16 or SDX_U8 */
    bool channels_last;
    int channels, width, height;
    sdx_fit fit;
    double crop; /* SDX_FIT_CROP: share of the shorter side that is kept */
    bool bgr, invert;
    double scale, mean[3], std[3];
} sdx_vision_input;

typedef enum sdx_vision_task { SDX_TASK_CLASSIFY = 0, SDX_TASK_DETECT = 1 } sdx_vision_task;

/* Reads the wishes from the model: shape and element type of its only picture input, then its
 * metadata. Keys that Sardonyx defines (numbers: one, or three in the
 * order of the input's channels, comma between):
 *
 *     sardonyx.scale    factor of pixel values, which are 0 to 255 (1/255)
 *     sardonyx.mean     taken away after scaling   (ImageNet's for classifiers of colour, else 0)
 *     sardonyx.std      divisor after that         (ImageNet's for classifiers of colour, else 1)
 *     sardonyx.invert   1: dark becomes light before everything else (0)
 *     sardonyx.color    "rgb" or "bgr" (rgb)
 *     sardonyx.fit      "stretch", "crop", "letterbox" or "letterbox-corner" (classifiers: crop,
 *                       stretch below 64 pixels; detectors: letterbox)
 *     sardonyx.crop     share of the shorter side that "crop" keeps (0.875)
 *     sardonyx.labels   names of the classes, comma or newline between
 *
 * Of those that Ultralytics writes, `task`, `imgsz` and `names` are read. `size`: side to use where
 * the model leaves it open; 0: imgsz, or the task's usual one (classify 224, detect 640). */
SDX_API SDX_MUST_CHECK sdx_status sdx_vision_input_init(sdx_vision_input *input,
                                                        const sdx_model *model,
                                                        sdx_vision_task task, int size,
                                                        sdx_vision_fault *fault);
/* Changes what the head of a detector implies: YOLOX wants blue first, 0 to 255, in the corner. */
SDX_API void sdx_vision_input_for_head(sdx_vision_input *input, sdx_head head);
/* The picture as the tensor that `input` describes, shape [1, C, H, W] or [1, H, W, C]. *place may
 * be NULL. The picture's channels must be the input's. */
SDX_API SDX_MUST_CHECK sdx_status sdx_vision_input_make(sdx_context *cx,
                                                        const sdx_vision_input *input,
                                                        const sdx_image *image, sdx_tensor **out,
                                                        sdx_letterbox *place,
                                                        sdx_vision_fault *fault);

/* ---- names of classes -------------------------------------------------------------------------
 */

typedef struct sdx_labels {
    int count;
    char **names; /* an entry may be NULL: no name */
} sdx_labels;

SDX_API void sdx_labels_deinit(sdx_labels *labels);
/* One name a line; empty lines at the end are dropped. */
SDX_API SDX_MUST_CHECK sdx_status sdx_labels_load(const char *path, sdx_labels *out,
                                                  sdx_vision_fault *fault);
/* From metadata: "sardonyx.labels" (comma or newline between names) or Ultralytics' "names", a
 * Python dict or list. Without either, count is 0. */
SDX_API SDX_MUST_CHECK sdx_status sdx_labels_from_model(const sdx_model *model, sdx_labels *out,
                                                        sdx_vision_fault *fault);
/* The 80 classes of COCO's detection task. */
SDX_API SDX_MUST_CHECK sdx_status sdx_labels_coco(sdx_labels *out, sdx_vision_fault *fault);
/* "17" in `buffer` (of `size` bytes) when class 17 has no name. */
SDX_API const char *sdx_labels_name(const sdx_labels *labels, int i, char *buffer, size_t size);

/* ---- answers ----------------------------------------------------------------------------------
 */

typedef struct sdx_class_score {
    int label;
    double score;
} sdx_class_score;

/* The `top` best classes of `scores` (one row), best first; a softmax is taken unless the values
 * already are probabilities (none negative, sum 1). Returns how many were written. */
SDX_API int sdx_classify_top(const sdx_tensor *scores, int top, sdx_class_score *out);

typedef struct sdx_box {
    float x0, y0, x1, y1;
    float score;
    int label;
} sdx_box;

typedef struct sdx_boxes {
    size_t count, capacity;
    sdx_box *items;
} sdx_boxes;

SDX_API void sdx_boxes_deinit(sdx_boxes *boxes);
/* Greedy suppression within each class: of two boxes whose intersection over union is above `iou`
 * the one with the lower score goes. Leaves at most `limit`, sorted by falling score. */
SDX_API void sdx_boxes_suppress(sdx_boxes *boxes, double iou, size_t limit);
/* From the input's coordinates to the picture's, cut at its borders. */
SDX_API void sdx_boxes_to_picture(sdx_boxes *boxes, const sdx_letterbox *place, int width,
                                  int height);

SDX_API const char *sdx_head_name(sdx_head head);
/* SDX_HEAD_NONE for an unknown name. */
SDX_API sdx_head sdx_head_find(const char *name);
/* Which head gives an output of this shape (-1: unknown) for an input of this size; SDX_HEAD_NONE:
 * none that is known. */
SDX_API sdx_head sdx_head_guess(int rank, const int64_t *dims, int input_width, int input_height);
/* Appends the boxes with a score above `conf`, each with its best class, in the input's
 * coordinates. `classes`: number of classes (columns behind them, as masks, are left alone); 0: all
 * columns. */
SDX_API SDX_MUST_CHECK sdx_status sdx_head_decode(sdx_head head, const sdx_tensor *output,
                                                  int classes, int input_width, int input_height,
                                                  double conf, sdx_boxes *boxes,
                                                  sdx_vision_fault *fault);

/* Draws boxes with names and scores, a colour a class. `labels` may be empty. */
SDX_API SDX_MUST_CHECK sdx_status sdx_draw_boxes(sdx_image *image, const sdx_boxes *boxes,
                                                 const sdx_labels *labels, sdx_vision_fault *fault);

/* ---- following a ball through a stream of frames -----------------------------------------------
 *
 * TrackNetV3's two streaming modules. Frames go in one by one; where the ball was comes out seq_len
 * - 1 frames later, as the mean of what the seq_len windows that saw the frame say. The second
 * module fills the gaps of such a track. Both equal the published Python modules frame by frame.
 * An object of either kind is used by one thread at a time and must end before its context. */

enum { SDX_TRACKNET_WIDTH = 512, SDX_TRACKNET_HEIGHT = 288 }; /* of the model's pictures */

/* Where the ball is in one frame. */
typedef struct sdx_track {
    int64_t frame;
    int x, y;       /* pixels of the frames that were pushed */
    int visibility; /* 1: seen; 0: not seen, then x and y are 0 */
} sdx_track;

typedef struct sdx_track_stats {
    int64_t push_calls, outputs;                      /* outputs: tracks returned by push */
    double t_preprocess, t_forward, t_post, t_median; /* seconds; t_preprocess has t_median in it */
} sdx_track_stats;

typedef struct sdx_tracknet sdx_tracknet;

typedef struct sdx_tracknet_options {
    size_t size;
    int seq_len; /* frames of a window; 0: what the model's metadata or its output say */
    /* "": frames alone; "subtract": how each differs from the background; "subtract_concat": both;
     * "concat": the background, then the frames. NULL: what the metadata or the input say. */
    const char *bg_mode;
    /* How windows are weighed: "weight" (the middle counts most), "average", "nonoverlap". */
    const char *eval_mode;
    const char *device; /* "cpu", or "cuda" (NULL) to try CUDA first; see sdx_tracknet_provider */
    /* The background, copied: bytes R, G, B, [median_height, median_width, 3]; for "concat"
     * [3, 288, 512] of SDX_U8 or SDX_F32, 0 to 255. NULL: none. */
    const void *median;
    sdx_dtype median_dtype; /* SDX_U8 */
    int median_width, median_height;
    int median_warmup; /* without a median: frames that it is made of; they give no tracks */
    const sdx_session_options *session; /* NULL: as sdx_session_options_init fills it */
} sdx_tracknet_options;

SDX_API void sdx_tracknet_options_init(sdx_tracknet_options *options);
/* Opens a model [1, C, 288, 512] -> [1, seq_len, 288, 512] of float; C is 3, 1, 4 times seq_len or
 * 3 (seq_len + 1) in the order of the modes above. Its metadata, where present, must agree with the
 * options. SDX_NOT_FOUND: no such file. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tracknet_open(sdx_context *cx, const char *model_path,
                                                    const sdx_tracknet_options *options,
                                                    sdx_tracknet **out, sdx_vision_fault *fault);
SDX_API void sdx_tracknet_destroy(sdx_tracknet *tracknet);
/* Takes a frame: bytes B, G, R, [height, width, 3], rows `stride` bytes apart (0: packed). The
 * first one fixes the scale of x and y. frame_id NULL: how many frames were pushed before;
 * otherwise ids should rise by one, as the track that comes out is the one of *frame_id - (seq_len
 * - 1). *found: whether *track was written. SDX_RUN_FAILED when a background is needed and there is
 * none, or the model fails. */
SDX_API SDX_MUST_CHECK sdx_status sdx_tracknet_push(sdx_tracknet *tracknet, const uint8_t *bgr,
                                                    int width, int height, size_t stride,
                                                    const int64_t *frame_id, sdx_track *track,
                                                    bool *found, sdx_vision_fault *fault);
/* Ends the stream: writes the track of the lowest id that is left; false when there is none. Frames
 * pushed afterwards begin a new window. */
SDX_API bool sdx_tracknet_flush(sdx_tracknet *tracknet, sdx_track *track);
/* Forgets frames, ids, the scale and an unfinished background; a finished one stays. */
SDX_API void sdx_tracknet_reset(sdx_tracknet *tracknet);
/* Makes a push under way in another thread fail soon. */
SDX_API void sdx_tracknet_cancel(sdx_tracknet *tracknet);
SDX_API void sdx_tracknet_get_stats(const sdx_tracknet *tracknet, sdx_track_stats *stats);
SDX_API int sdx_tracknet_seq_len(const sdx_tracknet *tracknet);
SDX_API const char *sdx_tracknet_bg_mode(const sdx_tracknet *tracknet);
/* Size of the first frame; false before it. Tracks are scaled by width / 512 and height / 288. */
SDX_API bool sdx_tracknet_frame_size(const sdx_tracknet *tracknet, int *width, int *height);
/* The heat map [288, 512] behind the last track that came out; NULL before one did. Borrowed, valid
 * until the next call. */
SDX_API const float *sdx_tracknet_heat(const sdx_tracknet *tracknet);
/* What runs the model: "CPUExecutionProvider" is our engine. */
SDX_API const char *sdx_tracknet_provider(const sdx_tracknet *tracknet);

typedef struct sdx_inpaint sdx_inpaint;

typedef struct sdx_inpaint_options {
    size_t size;
    int seq_len;                        /* tracks of a window; 0: what the model says */
    const char *device;                 /* as in sdx_tracknet_options */
    double scale_x, scale_y;            /* frame width / 512, frame height / 288 */
    const sdx_session_options *session; /* NULL: as sdx_session_options_init fills it */
} sdx_inpaint_options;

SDX_API void sdx_inpaint_options_init(sdx_inpaint_options *options);
/* Opens a model of two inputs, coordinates [N, seq_len, 2] and gaps [N, seq_len, 1], and one output
 * [N, seq_len, 2]. N: any, or fixed; then the other rows are zero. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_inpaint_open(sdx_context *cx, const char *model_path,
                                                   const sdx_inpaint_options *options,
                                                   sdx_inpaint **out, sdx_vision_fault *fault);
SDX_API void sdx_inpaint_destroy(sdx_inpaint *inpaint);
/* Takes the next track; when the window is full, *filled is that of its oldest frame. */
SDX_API SDX_MUST_CHECK sdx_status sdx_inpaint_push(sdx_inpaint *inpaint, const sdx_track *track,
                                                   sdx_track *filled, bool *found,
                                                   sdx_vision_fault *fault);
/* Takes the oldest track out of the window, as it was pushed; false when none is left. */
SDX_API bool sdx_inpaint_flush(sdx_inpaint *inpaint, sdx_track *track);
SDX_API void sdx_inpaint_reset(sdx_inpaint *inpaint);
/* Other frames from now on. */
SDX_API void sdx_inpaint_set_scale(sdx_inpaint *inpaint, double scale_x, double scale_y);
SDX_API void sdx_inpaint_get_stats(const sdx_inpaint *inpaint, sdx_track_stats *stats);
SDX_API int sdx_inpaint_seq_len(const sdx_inpaint *inpaint);
SDX_API const char *sdx_inpaint_provider(const sdx_inpaint *inpaint);

/* Draws where the ball was: `count` tracks, the newest last, as discs that fade with age. Bytes B,
 * G, R, rows `stride` bytes apart (0: packed). Tracks that are not visible are left out. */
SDX_API void sdx_draw_trail(uint8_t *bgr, int width, int height, size_t stride,
                            const sdx_track *tracks, int count);

/* ---- video ------------------------------------------------------------------------------------
 *
 * Not in libsardonyx_vision_plain. A source or a film is used by one thread at a time. */

typedef struct sdx_video sdx_video;

typedef struct sdx_video_options {
    size_t size;
    /* Asked now and then, also while a stream is waited for: true ends the source. NULL: never. */
    bool (*stopped)(void *user);
    void *stopped_user;
} sdx_video_options;

typedef struct sdx_video_facts {
    int width, height;
    double fps;
    int64_t frames; /* 0: not known */
    bool live;      /* a camera or a stream: frames come when they come */
    const char *codec;
} sdx_video_facts;

SDX_API void sdx_video_options_init(sdx_video_options *options);
/* `source`: a file, an address (rtsp://, http://, udp:// ...), a camera's device (/dev/video0) or
 * its number. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_video_open(const char *source,
                                                 const sdx_video_options *options, sdx_video **out,
                                                 sdx_vision_fault *fault);
SDX_API void sdx_video_close(sdx_video *video);
/* Borrowed from the video. */
SDX_API const sdx_video_facts *sdx_video_get_facts(const sdx_video *video);
/* The next frame, [height, width, 3] bytes B, G, R, into `bgr` (NULL: it is skipped). *found: false
 * at the end. */
SDX_API SDX_MUST_CHECK sdx_status sdx_video_read(sdx_video *video, uint8_t *bgr, bool *found,
                                                 sdx_vision_fault *fault);

typedef struct sdx_film sdx_film;

/* A film of H.264 (or MPEG-4, where this FFmpeg has no encoder for it) in the container that the
 * name's ending says. An odd last row or column is left out. The caller owns *out. */
SDX_API SDX_MUST_CHECK sdx_status sdx_film_open(const char *path, int width, int height, double fps,
                                                sdx_film **out, sdx_vision_fault *fault);
/* Adds frame `index`, bytes B, G, R; indices rise and say when it is shown: index / fps. */
SDX_API SDX_MUST_CHECK sdx_status sdx_film_write(sdx_film *film, const uint8_t *bgr, int64_t index,
                                                 sdx_vision_fault *fault);
/* Writes what is left and ends *film, in any case; accepts NULL. */
SDX_API SDX_MUST_CHECK sdx_status sdx_film_close(sdx_film *film, sdx_vision_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
