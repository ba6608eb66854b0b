// SPDX-License-Identifier: Apache-2.0
// What forks of Caffe add to its text (docs/dialects.md): other words for what is there, fields without
// an effect here, and types that are refused with advice.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/model/upgrade.h"

namespace cafetiere {

/// Why a field of a fork that the schema does not have can be ignored; empty if it cannot.
std::string_view why_ignored(std::string_view field);
/// What to do about a field of a fork that is refused; empty if nothing is known of it.
std::string_view advice_on_field(std::string_view message, std::string_view field);
/// What to do about a layer type of a fork that is refused; empty if nothing is known of it.
std::string_view advice_on_type(std::string_view type);

/// Brings what forks write to Caffe's words, in place: types that are others by another name, ceil_mode,
/// hole. Adds a note for each kind of change. An error names the layer.
Status translate_dialects(caffe::NetParameter* net, NetUpgrade* upgrade);

}  // namespace cafetiere
