// SPDX-License-Identifier: Apache-2.0
// Runs nets and solvers in the reference library, in a process of its own: its protobuf and its C++
// ABI clash with ours.
//
//   caffe_runner types
//     prints the layer types that it has, one a line
//   caffe_runner layers FOLDER CASE...
//     For each case reads FOLDER/CASE.prototxt and FOLDER/CASE.in with the arrays param_<i>,
//     in_<blob> and topdiff_<blob>; writes FOLDER/CASE.out with top_<blob>, param_<i> after the
//     pass and, when topdiff_ arrays were given, indiff_<blob> and pdiff_<i>.
//   caffe_runner data CASE
//     Reads CASE.prototxt and CASE.in, runs the net "passes" times and writes CASE.out with the
//     values of top_<blob>, pass after pass. The arrays "memory" and "memory_labels" are for a
//     MemoryData layer "L".
//   caffe_runner train|train64 SOLVER OUT [WEIGHTS|STATE]
//     Trains to max_iter from weights or a solver's state, and takes a snapshot. Writes OUT with the
//     losses, one an iteration, and the weights param_<i>. train64 computes in double precision.
#include <glog/logging.h>

#include <boost/shared_ptr.hpp>
#include <caffe/caffe.hpp>
#include <caffe/layers/memory_data_layer.hpp>
#include <caffe/sgd_solvers.hpp>
#include <caffe/util/upgrade_proto.hpp>
#include <cstring>
#include <iostream>

#include "../arrays.h"

namespace {

typedef caffe::Blob<float> Blob;
typedef caffe::Net<float> Net;
using parity::Arrays;

template <class T>
std::vector<float> data_of(const caffe::Blob<T>& blob) {
  return std::vector<float>(blob.cpu_data(), blob.cpu_data() + blob.count());
}
std::vector<float> diff_of(const Blob& blob) {
  return std::vector<float>(blob.cpu_diff(), blob.cpu_diff() + blob.count());
}

/// Whether the array was there.
bool copy_in(const Arrays& arrays, const std::string& name, int count, float* to) {
  const Arrays::const_iterator found = arrays.find(name);
  if (found == arrays.end()) return false;
  CHECK_EQ(found->second.size(), size_t(count)) << name;
  std::copy(found->second.begin(), found->second.end(), to);
  return true;
}

std::string indexed(const char* what, size_t i) { return what + std::to_string(i); }

void run_case(const std::string& path) {
  caffe::NetParameter param;
  caffe::ReadNetParamsFromTextFileOrDie(path + ".prototxt", &param);
  Net net(param);
  const Arrays in = parity::read_arrays(path + ".in");
  for (size_t i = 0; i < net.params().size(); ++i) {
    Blob& blob = *net.params()[i];
    copy_in(in, indexed("param_", i), blob.count(), blob.mutable_cpu_data());
  }
  for (size_t i = 0; i < net.blobs().size(); ++i) {
    Blob& blob = *net.blobs()[i];
    copy_in(in, "in_" + net.blob_names()[i], blob.count(), blob.mutable_cpu_data());
  }
  net.ClearParamDiffs();
  net.Forward();
  Arrays out;
  bool backward = false;
  for (size_t i = 0; i < net.output_blobs().size(); ++i) {
    Blob& blob = *net.output_blobs()[i];
    const std::string name = net.blob_names()[net.output_blob_indices()[i]];
    out["top_" + name] = data_of(blob);
    backward |= copy_in(in, "topdiff_" + name, blob.count(), blob.mutable_cpu_diff());
  }
  if (backward) net.Backward();
  for (size_t i = 0; i < net.params().size(); ++i) {
    out[indexed("param_", i)] = data_of(*net.params()[i]);
    if (backward) out[indexed("pdiff_", i)] = diff_of(*net.params()[i]);
  }
  for (size_t i = 0; backward && i < net.blobs().size(); ++i) {
    if (in.count("in_" + net.blob_names()[i])) {
      out["indiff_" + net.blob_names()[i]] = diff_of(*net.blobs()[i]);
    }
  }
  parity::write_arrays(path + ".out", out);
}

void run_data(const std::string& path) {
  caffe::NetParameter param;
  caffe::ReadNetParamsFromTextFileOrDie(path + ".prototxt", &param);
  Net net(param);
  Arrays in = parity::read_arrays(path + ".in"), out;
  if (in.count("memory")) {
    caffe::MemoryDataLayer<float>* layer =
        dynamic_cast<caffe::MemoryDataLayer<float>*>(net.layer_by_name("L").get());
    CHECK(layer);
    std::vector<float>& labels = in["memory_labels"];
    layer->Reset(in["memory"].data(), labels.data(), int(labels.size()));
  }
  for (int passes = int(in["passes"].at(0)); passes > 0; --passes) {
    net.Forward();
    for (size_t i = 0; i < net.output_blobs().size(); ++i) {
      const std::vector<float> batch = data_of(*net.output_blobs()[i]);
      std::vector<float>& all = out["top_" + net.blob_names()[net.output_blob_indices()[i]]];
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  parity::write_arrays(path + ".out", out);
}

/// What the outputs of the last pass add up to.
template <class T>
T loss_of(const caffe::Net<T>& net) {
  T loss = 0;
  for (size_t i = 0; i < net.output_blobs().size(); ++i) {
    const T weight = net.blob_loss_weights()[net.output_blob_indices()[i]];
    if (weight != 0) loss += weight * net.output_blobs()[i]->cpu_data()[0];
  }
  return loss;
}

template <class T>
void train(const std::string& solver_path, const std::string& out_path, const std::string& from) {
  caffe::SolverParameter param;
  caffe::ReadSolverParamsFromTextFileOrDie(solver_path, &param);
  boost::shared_ptr<caffe::Solver<T>> solver(caffe::SolverRegistry<T>::CreateSolver(param));
  if (from.find(".solverstate") != std::string::npos) {
    solver->Restore(from.c_str());
  } else if (!from.empty()) {
    solver->net()->CopyTrainedLayersFrom(from);
  }
  Arrays out;
  while (solver->iter() < param.max_iter()) {
    solver->Step(1);
    out["loss"].push_back(loss_of<T>(*solver->net()));
  }
  for (size_t i = 0; i < solver->net()->params().size(); ++i) {
    out[indexed("param_", i)] = data_of(*solver->net()->params()[i]);
  }
  solver->Snapshot();
  parity::write_arrays(out_path, out);
}

}  // namespace

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::WARNING;
  caffe::Caffe::set_mode(caffe::Caffe::CPU);
  caffe::Caffe::set_random_seed(1);
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "types") {
    for (const std::string& type : caffe::LayerRegistry<float>::LayerTypeList()) {
      std::cout << type << '\n';
    }
  } else if (command == "layers" && argc > 3) {
    for (int i = 3; i < argc; ++i) run_case(std::string(argv[2]) + "/" + argv[i]);
  } else if (command == "data" && argc == 3) {
    run_data(argv[2]);
  } else if (command == "train" && argc > 3) {
    train<float>(argv[2], argv[3], argc > 4 ? argv[4] : "");
  } else if (command == "train64" && argc > 3) {
    train<double>(argv[2], argv[3], argc > 4 ? argv[4] : "");
  } else {
    std::cerr << "usage: caffe_runner types | layers FOLDER CASE... | data CASE | "
                 "train|train64 SOLVER OUT [FROM]\n";
    return 2;
  }
  return 0;
}
