// SPDX-License-Identifier: Apache-2.0
// Upgrades of older forms of nets and solvers: V0 and V1 `layers`, `input` fields, ...
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The result of upgrade_net().
struct NetUpgrade {
  /// For each layer of the upgraded net, its index in the old `layer` or `layers` list; -1 for the
  /// layer created from `input` fields.
  std::vector<int> origin;
  std::vector<std::string> notes;  ///< one sentence per kind of change, for the log
  bool complete = true;            ///< false: some fields were dropped, see notes
};

/// Upgrades a net to the `layer` form in place; a net already in that form is unchanged, except
/// that BatchNorm's statistics are marked as not learned. An error names the layer.
Result<NetUpgrade> upgrade_net(caffe::NetParameter* net);

/// Replaces the deprecated `solver_type` with `type`; setting both is an error.
Status upgrade_solver(caffe::SolverParameter* solver);

/// Upgrades V0 `layers { layer { ... } }` to V1 `layers { ... }`, merging padding layers into their
/// readers. `upgrade` receives the origin of each remaining layer, and what could not be converted.
Status upgrade_v0(caffe::NetParameter* net, NetUpgrade* upgrade);

/// Sets (singular) or appends to (repeated) `target` of `to` the value of `field` of `from`.
/// Numbers, enums with equal value names and messages of the same type are compatible.
void copy_field(const google::protobuf::Message& from,
                const google::protobuf::FieldDescriptor* field, google::protobuf::Message* to,
                const google::protobuf::FieldDescriptor* target);

}  // namespace cafetiere
