// SPDX-License-Identifier: Apache-2.0
// Extensions of Caffe's text format in forks (docs/dialects.md): synonyms, fields without effect
// here, and types that are rejected with advice.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/model/upgrade.h"

namespace cafetiere {

/// Why a fork's field that is not in the schema can be ignored; empty if it cannot.
std::string_view why_ignored(std::string_view field);
/// Advice for a fork's field that is rejected; empty if the field is unknown.
std::string_view advice_on_field(std::string_view message, std::string_view field);
/// Advice for a fork's layer type that is rejected; empty if the type is unknown.
std::string_view advice_on_type(std::string_view type);

/// Translates forks' notation to Caffe's, in place: layer types under other names, ceil_mode, hole.
/// Adds a note for each kind of change. An error names the layer.
Status translate_dialects(caffe::NetParameter* net, NetUpgrade* upgrade);

}  // namespace cafetiere
