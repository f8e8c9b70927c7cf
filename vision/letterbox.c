/* SPDX-License-Identifier: Apache-2.0
 * Where a whole picture lies in a model's input.
 *
 * In the centre: ultralytics/data/augment.py, class LetterBox (auto=False, scaleup=True): the size
 * is round(side * r), the left border round(rest / 2 - 0.1), Python's round (half to even).
 * In the corner: Megvii YOLOX, yolox/data/data_augment.py, preproc: the size is int(side * r). */
#include "fault.h"

#include <math.h>

void sdx_letterbox_place(int width, int height, int input_width, int input_height, sdx_fit fit,
                         sdx_letterbox *out)
{
    double across = (double)input_width / width, down = (double)input_height / height;
    double scale = across < down ? across : down;
    *out = (sdx_letterbox){.scale = scale};
    if (fit == SDX_FIT_LETTERBOX_CORNER) {
        out->width = (int)(width * scale);
        out->height = (int)(height * scale);
    } else {
        out->width = (int)rint(width * scale);
        out->height = (int)rint(height * scale);
    }
    if (out->width < 1) out->width = 1;
    if (out->height < 1) out->height = 1;
    if (fit == SDX_FIT_LETTERBOX) {
        out->left = (int)rint((input_width - out->width) / 2.0 - 0.1);
        out->top = (int)rint((input_height - out->height) / 2.0 - 0.1);
    }
}
