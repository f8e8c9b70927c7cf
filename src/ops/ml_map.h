/* SPDX-License-Identifier: Apache-2.0
 * Operators that take or make maps: DictVectorizer, ZipMap, CastMap. */
#ifndef SDX_OPS_ML_MAP_H
#define SDX_OPS_ML_MAP_H

#include "ops/op.h"

enum sdx_status sdx_map_infer_vector(struct sdx_infer *ix);
enum sdx_status sdx_map_prepare_vector(struct sdx_prepare *px);
enum sdx_status sdx_map_infer_zip(struct sdx_infer *ix);
enum sdx_status sdx_map_prepare_zip(struct sdx_prepare *px);
enum sdx_status sdx_map_infer_cast(struct sdx_infer *ix);
enum sdx_status sdx_map_prepare_cast(struct sdx_prepare *px);
#endif
