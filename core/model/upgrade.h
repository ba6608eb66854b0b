// SPDX-License-Identifier: Apache-2.0
// Older forms of nets and solvers brought to today's: V0 and V1 `layers`, `input` fields, ...
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// What upgrade_net did.
struct NetUpgrade {
  /// For each layer of the upgraded net its index in the old `layer` or `layers` list; -1 for the
  /// layer made of `input` fields.
  std::vector<int> origin;
  std::vector<std::string> notes;  ///< one sentence a change of form, for the log
  bool complete = true;            ///< false: fields were left out, as notes say
};

/// Brings a net to the `layer` form in place; a net that is in it already is left as it is, but
/// for BatchNorm's statistics, which never learn. An error names the layer.
Result<NetUpgrade> upgrade_net(caffe::NetParameter* net);

/// Replaces the deprecated `solver_type` by `type`; both at once are an error.
Status upgrade_solver(caffe::SolverParameter* solver);

/// V0 `layers { layer { ... } }` to V1 `layers { ... }`, padding layers merged into their readers.
/// `upgrade` gets the origin of each layer that remains, and what could not be taken over.
Status upgrade_v0(caffe::NetParameter* net, NetUpgrade* upgrade);

/// Appends (repeated) or sets (singular) `target` of `to` with the value of `field` of `from`.
/// Numbers, enums of equal value names and messages of one type fit each other.
void copy_field(const google::protobuf::Message& from,
                const google::protobuf::FieldDescriptor* field, google::protobuf::Message* to,
                const google::protobuf::FieldDescriptor* target);

}  // namespace cafetiere
