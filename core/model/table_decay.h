// SPDX-License-Identifier: Apache-2.0
// The weight decay of a table's net, as factors on the default of AdamW.
#pragma once

#include "core/model/table_net.h"

namespace cafetiere {

/// Whether an embedded column has its own hidden layers: if it has at least 100 values, with an
/// average of at least 50 rows each. They learn what the values have in common; with fewer they do
/// harm (docs/accuracy.md).
bool has_own_layers(const caffe::TableDataParameter::Column& column,
                    const TableNetOptions& options);

/// The factor for a column's embedding, from 1 to 3000; larger the fewer rows a value has, to avoid
/// overfitting values with few rows. Adam moves a weight further per step if few steps use it,
/// hence the square root. The constants are the best ones in bench/tables (docs/accuracy.md).
float embedding_decay(const caffe::TableDataParameter::Column& column,
                      const TableNetOptions& options);

/// The factor for all hidden layers and scores if a column has its own layers.
float hidden_decay(const caffe::TableDataParameter::Column& column, const TableNetOptions& options);

}  // namespace cafetiere
