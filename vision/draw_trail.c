/* SPDX-License-Identifier: Apache-2.0
 * The trail of a ball in a frame: discs with soft edges, yellow where the ball is, red and fainter
 * where it was. */
#include <sardonyx/vision.h>

#include <math.h>

static void disc(uint8_t *bgr, int width, int height, size_t stride, double x, double y,
                 double radius, const int colour[3], double strength)
{
    int x0 = (int)fmax(0, floor(x - radius - 1)), x1 = (int)fmin(width - 1, ceil(x + radius + 1));
    int y0 = (int)fmax(0, floor(y - radius - 1)), y1 = (int)fmin(height - 1, ceil(y + radius + 1));
    for (int j = y0; j <= y1; j++)
        for (int i = x0; i <= x1; i++) {
            double cover = radius + 0.5 - hypot(i - x, j - y);
            double share = strength * (cover < 0 ? 0 : cover > 1 ? 1 : cover);
            uint8_t *p = bgr + (size_t)j * stride + 3 * (size_t)i;
            for (int c = 0; c < 3; c++)
                p[c] = (uint8_t)lrint(p[c] + share * (colour[c] - p[c]));
        }
}

void sdx_draw_trail(uint8_t *bgr, int width, int height, size_t stride, const sdx_track *tracks,
                    int count)
{
    if (stride == 0) stride = 3 * (size_t)width;
    double radius = fmax(2, fmin(width, height) / 120.0);
    for (int i = 0; i < count; i++) {
        if (!tracks[i].visibility) continue;
        double age = (double)(count - 1 - i) / count; /* 0: now */
        const int colour[3] = {0, (int)(255 * (1 - age)), 255};
        disc(bgr, width, height, stride, tracks[i].x, tracks[i].y, radius * (1 - 0.5 * age), colour,
             1 - 0.8 * age);
    }
}
