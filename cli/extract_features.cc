// SPDX-License-Identifier: Apache-2.0
// extract_features: blobs of a net with trained weights, as databases of float records.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/glog.h"
#include "cli/loaded_net.h"
#include "core/data/db.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {
namespace {

struct FeatureFlags {
  std::string weights, model, blobs, dbs, backend, mode = "CPU";
  int batches = 0, device_id = 0;
};

/// A blob and the database that its rows go to.
struct Feature {
  std::string blob;
  std::unique_ptr<DbWriter> db;
  int64_t images = 0;
};

Status check_names(const FeatureFlags& flags, const Graph& graph) {
  const std::vector<std::string> blobs = split_list(flags.blobs), dbs = split_list(flags.dbs);
  if (blobs.size() != dbs.size() || blobs.empty()) {
    return invalid_argument(
        fmt::format("the number of blob names ({}) and of dataset names ({}) must be equal",
                    blobs.size(), dbs.size()));
  }
  for (const std::string& blob : blobs) {
    if (graph.find_blob(blob) >= 0) continue;
    return not_found(
        fmt::format("Unknown feature blob name {} in the network {}", blob, flags.model));
  }
  return {};
}

Result<std::vector<Feature>> create_features(const FeatureFlags& flags) {
  const std::vector<std::string> blobs = split_list(flags.blobs), dbs = split_list(flags.dbs);
  CFT_ASSIGN(const DbBackend backend, parse_db_backend(flags.backend));
  std::vector<Feature> features;
  for (size_t i = 0; i < blobs.size(); ++i) {
    CFT_ASSIGN(auto db, create_db(dbs[i], backend));
    features.push_back({blobs[i], std::move(db)});
  }
  return features;
}

/// Adds a record for each row of a blob: its values as floats, its shape in Caffe's older form.
Status add_rows(Feature& feature, const Plan::Blob& blob, const Logger& log) {
  if (blob.shape.axes() < 1 || blob.shape.axes() > 4) {
    return invalid_argument(
        fmt::format("blob {} has the shape {}; records have rows of up to 3 axes", blob.name,
                    blob.shape.str()));
  }
  const auto dim = [&](int axis) {
    return axis < blob.shape.axes() ? static_cast<int32_t>(blob.shape[axis]) : 1;
  };
  caffe::Datum datum;
  datum.set_channels(dim(1));
  datum.set_height(dim(2));
  datum.set_width(dim(3));
  const int64_t size = blob.shape.count(1);
  for (int64_t row = 0; row < blob.shape[0]; ++row) {
    datum.clear_float_data();
    datum.mutable_float_data()->Add(blob.data + row * size, blob.data + (row + 1) * size);
    feature.db->put(fmt::format("{:010}", feature.images), datum.SerializeAsString());
    if (++feature.images % kCommitEvery == 0) {
      CFT_TRY(feature.db->commit());
      log.error("Extracted features of {} query images for feature blob {}", feature.images,
                feature.blob);
    }
  }
  return {};
}

Status run_batches(const FeatureFlags& flags, const LoadedNet& net, Plan& plan,
                   std::vector<Feature>& features, const Logger& log) {
  ThreadPool pool(DeviceFlags().thread_count());
  for (int batch = 0; batch < flags.batches; ++batch) {
    for (const Feed& feed : net.feeds.feeds) CFT_TRY(net.fill(feed, batch, plan));
    CFT_TRY(plan.run_forward(pool, {.seed = 1, .sub_step = batch}));
    for (Feature& feature : features) {
      const auto blob = std::find_if(plan.outputs().begin(), plan.outputs().end(),
                                     [&](const auto& b) { return b.name == feature.blob; });
      if (blob == plan.outputs().end()) return internal_error("a blob was not kept");
      CFT_TRY(add_rows(feature, *blob, log));
    }
  }
  for (Feature& feature : features) {
    if (feature.images % kCommitEvery == 0) continue;
    CFT_TRY(feature.db->commit());
    log.error("Extracted features of {} query images for feature blob {}", feature.images,
              feature.blob);
  }
  return {};
}

// Progress is told at the level of errors, as the reference does it.
Status extract_features(const FeatureFlags& flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  if (flags.mode == "GPU") log.warning("GPUs are not supported yet; the CPU is used instead");
  log.error("Using CPU");
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  CFT_ASSIGN(const std::unique_ptr<LoadedNet> net, LoadedNet::load(flags.model, state, log));
  CFT_TRY(refuse_unfed(net->feeds, flags.model));
  CFT_TRY(check_names(flags, net->graph));
  const std::vector<std::string> blobs = split_list(flags.blobs);
  std::vector<int> asked(blobs.size());
  std::ranges::transform(blobs, asked.begin(),
                         [&](const auto& blob) { return net->graph.find_blob(blob); });
  CFT_TRY(net->load_weights(flags.weights, asked, log));
  CFT_ASSIGN(std::vector<Feature> features, create_features(flags));
  CFT_ASSIGN(const std::unique_ptr<Plan> plan, net->compile({.outputs = blobs}));
  log.error("Extracting Features");
  CFT_TRY(run_batches(flags, *net, *plan, features, log));
  log.error("Successfully extracted the features!");
  return {};
}

}  // namespace

Action add_extract_features(CLI::App& app) {
  const auto flags = std::make_shared<FeatureFlags>();
  app.add_option("WEIGHTS", flags->weights, "the .caffemodel file")->required();
  app.add_option("MODEL", flags->model, "the net's prototxt, with a layer that reads the images")
      ->required();
  app.add_option("BLOBS", flags->blobs, "blobs to extract, separated by commas")->required();
  app.add_option("DBS", flags->dbs, "databases to create, one for each blob, separated by commas")
      ->required();
  app.add_option("BATCHES", flags->batches, "batches to run")
      ->required()
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("DB_TYPE", flags->backend, "lmdb or leveldb")
      ->required()
      ->check(CLI::IsMember({"lmdb", "leveldb"}));
  app.add_option("MODE", flags->mode, "CPU (default); GPU is not supported yet")
      ->check(CLI::IsMember({"CPU", "GPU"}));
  app.add_option("DEVICE_ID", flags->device_id, "GPU id; has no effect");
  return [flags] { return extract_features(*flags); };
}

}  // namespace cafetiere
