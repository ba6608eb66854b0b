// SPDX-License-Identifier: Apache-2.0
// LSTM: long short-term memory over a sequence. Bottoms: x (T, N, ..), cont (T, N), which is 0
// where a sequence begins [, x_static (N, ..), an input to every step] and, with expose_hidden, the
// initial h and c (1, N, D); tops: the output (T, N, D) and, with expose_hidden, the final h and c.
// Blobs: W_xc (4 D, I), b_c (4 D) [, W_xc_static (4 D, S)], W_hc (4 D, D).
#include "core/layers/recurrent.h"

namespace cafetiere {

extern const LayerType layer_lstm{
    .name = "LSTM",
    .min_bottoms = 2,
    .max_bottoms = 5,
    .max_tops = 3,
    .create = create_layer<Recurrent<LstmCell>>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis == 1;
    }};

}  // namespace cafetiere
