/* SPDX-License-Identifier: Apache-2.0
 * Simple case mapping by ranges. */
#include "ops/utf8.h"

/* Upper-case letters first..last: each has its lower case `delta` further on; delta 1: letters come
 * in pairs, upper case at the parity of `first`. */
static const struct {
    uint32_t first, last;
    int32_t delta;
} ranges[] = {
    {'A', 'Z', 32},     {0xC0, 0xD6, 32},   {0xD8, 0xDE, 32},    {0x100, 0x12E, 1},
    {0x132, 0x136, 1},  {0x139, 0x147, 1},  {0x14A, 0x176, 1},   {0x178, 0x178, -121},
    {0x179, 0x17D, 1},  {0x386, 0x386, 38}, {0x388, 0x38A, 37},  {0x38C, 0x38C, 64},
    {0x38E, 0x38F, 63}, {0x391, 0x3A1, 32}, {0x3A3, 0x3AB, 32},  {0x400, 0x40F, 80},
    {0x410, 0x42F, 32}, {0x460, 0x480, 1},  {0x48A, 0x4BE, 1},   {0x4C1, 0x4CD, 1},
    {0x4D0, 0x52E, 1},  {0x531, 0x556, 48}, {0x1E00, 0x1E94, 1}, {0x1EA0, 0x1EFE, 1},
};

uint32_t sdx_utf8_lower(uint32_t c)
{
    for (int i = 0; i < SDX_COUNT_OF(ranges); i++) {
        if (c < ranges[i].first || c > ranges[i].last) continue;
        if (ranges[i].delta == 1 && (c - ranges[i].first) % 2 != 0) return c;
        return (uint32_t)((int32_t)c + ranges[i].delta);
    }
    return c;
}

uint32_t sdx_utf8_upper(uint32_t c)
{
    for (int i = 0; i < SDX_COUNT_OF(ranges); i++) {
        uint32_t u = (uint32_t)((int32_t)c - ranges[i].delta);
        if (u < ranges[i].first || u > ranges[i].last) continue;
        if (ranges[i].delta == 1 && (u - ranges[i].first) % 2 != 0) continue;
        return u;
    }
    return c == 0xB5 ? 0x39C : c == 0x3C2 ? 0x3A3 : c == 0x17F ? 'S' : c;
}
