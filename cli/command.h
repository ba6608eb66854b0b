// SPDX-License-Identifier: Apache-2.0
// The commands of the program: each adds its flags to the parser and gives back what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "core/base/status.h"

namespace cafetiere {

/// Runs a command whose flags have been parsed.
using Action = std::function<Status()>;

Action add_train(CLI::App& app);
Action add_test(CLI::App& app);
Action add_time(CLI::App& app);
Action add_explain(CLI::App& app);
Action add_extract_features(CLI::App& app);
Action add_fit(CLI::App& app);
Action add_predict(CLI::App& app);
Action add_convert_imageset(CLI::App& app);
Action add_compute_image_mean(CLI::App& app);
Action add_convert_mnist(CLI::App& app);
Action add_convert_mnist_pairs(CLI::App& app);
Action add_convert_cifar(CLI::App& app);
Action add_upgrade_net_text(CLI::App& app);
Action add_upgrade_net_binary(CLI::App& app);
Action add_upgrade_solver_text(CLI::App& app);
Action add_export_onnx(CLI::App& app);
Action add_import_onnx(CLI::App& app);
Action add_check_nets(CLI::App& app);
Action add_convert_weights(CLI::App& app);
Action add_device_query(CLI::App& app);
Action add_doctor(CLI::App& app);
Action add_version(CLI::App& app);

}  // namespace cafetiere
