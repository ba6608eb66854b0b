// SPDX-License-Identifier: Apache-2.0
// How much more than by default AdamW draws the weights of a table's net to 0.
#pragma once

#include "core/model/table_net.h"

namespace cafetiere {

/// Whether an embedded column has hidden layers of its own: it has 100 values or more, of 50 rows or more each on
/// average. They learn what the values have in common; with fewer they do harm (docs/accuracy.md).
bool has_own_layers(const caffe::TableDataParameter::Column& column,
                    const TableNetOptions& options);

/// The factor for a column's embedding, from 1 to 3000, so that what few rows say of a value is not learned
/// by heart: the fewer rows a value has, the more. Adam moves what few steps see further a time, so it goes
/// by the root. The factors are the best ones of bench/tables (docs/accuracy.md).
float embedding_decay(const caffe::TableDataParameter::Column& column,
                      const TableNetOptions& options);

/// The factor for all hidden layers and scores where a column has layers of its own.
float hidden_decay(const caffe::TableDataParameter::Column& column, const TableNetOptions& options);

}  // namespace cafetiere
