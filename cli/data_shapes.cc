// SPDX-License-Identifier: Apache-2.0
#include "cli/data_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <set>

#include "core/graph/phase_rules.h"
#include "core/layers/registry.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

Shape with_rows(int64_t rows, const Shape& row) {
  std::vector<int64_t> dims = row.dims();
  dims.insert(dims.begin(), rows);
  return Shape(dims);
}

/// The shapes of the tops of a layer whose files are not looked at; none where one is not known.
std::vector<Shape> stated_shapes(const FileLayer& layer, const caffe::LayerParameter& param,
                                 const TopShapes& by_top) {
  std::vector<Shape> shapes;
  int64_t rows = layer.batch_size();
  for (int i = 0; i < param.top_size(); ++i) {
    const auto given = by_top.find(param.top(i));
    if (given != by_top.end()) {
      const Shape& shape = given->second;
      shapes.push_back(shape.axes() == 3 ? with_rows(rows, shape) : shape);
      rows = shapes.back()[0];
      continue;
    }
    const std::optional<Shape> row = layer.stated_row(size_t(i));
    if (!row) return {};
    shapes.push_back(with_rows(rows, *row));
  }
  return shapes;
}

/// What to add to an error about data that is not there.
std::string advice(const FileLayer& layer, const caffe::LayerParameter& param) {
  const int64_t crop = param.transform_param().crop_size();
  std::string flags;
  for (int i = 0; i < param.top_size(); ++i) {
    if (layer.stated_row(size_t(i))) continue;
    flags += fmt::format(" --shape {}=3x{}x{}", param.top(i), crop > 0 ? crop : 227,
                         crop > 0 ? crop : 227);
  }
  return "to continue without the data, give the shape of a row, for example" + flags +
         " (channels x height x width)";
}

/// The layer if it reads files, null if not.
Result<std::unique_ptr<FileLayer>> file_layer(const caffe::LayerParameter& param) {
  CFT_ASSIGN(const LayerType* type, find_layer_type(layer_types(), param.type()));
  std::unique_ptr<Layer> layer = type->create(param);
  std::unique_ptr<FileLayer> file(dynamic_cast<FileLayer*>(layer.get()));
  if (file) (void)layer.release();
  return file;
}

NetChoice only(const NetChoice& net, const caffe::LayerParameter& layer) {
  NetChoice one{{{}, net.net.source, {}, {}}, net.state, net.origin};
  *one.net.param.add_layer() = layer;
  return one;
}

void add(NetFeeds&& from, NetFeeds* to) {
  std::ranges::move(from.sources, std::back_inserter(to->sources));
  std::ranges::move(from.feeds, std::back_inserter(to->feeds));
  std::ranges::move(from.unfed, std::back_inserter(to->unfed));
  to->shapes.merge(from.shapes);
}

/// The rows of all layers run through one plan.
Status check_rows(const NetFeeds& feeds) {
  for (const auto& [layer, shapes] : feeds.shapes) {
    const auto& [first, of_first] = *feeds.shapes.begin();
    for (const Shape& shape : shapes) {
      if (shape[0] == of_first[0][0]) continue;
      return invalid_argument(
          fmt::format("layers '{}' and '{}' give batches of {} and {} rows; make them equal", first,
                      layer, of_first[0][0], shape[0]));
    }
  }
  return {};
}

Status check_tops(const TopShapes& by_top, const caffe::NetParameter& net) {
  std::set<std::string> tops;
  for (const caffe::LayerParameter& param : net.layer()) {
    CFT_ASSIGN(const std::unique_ptr<FileLayer> layer, file_layer(param));
    if (layer) tops.insert(param.top().begin(), param.top().end());
  }
  for (const auto& [top, shape] : by_top) {
    if (tops.contains(top)) continue;
    return invalid_argument(fmt::format(
        "--shape {}={}: '{}' is not the top of a layer that reads files; those tops are: {}", top,
        fmt::join(shape.dims(), "x"), top, fmt::join(tops, ", ")));
  }
  return {};
}

}  // namespace

void add_shape_option(CLI::App& app, std::vector<std::string>* given, const std::string& what) {
  app.add_option("--shape", *given, what + "; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)  // what follows is the net
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Result<std::pair<std::string, Shape>> parse_shape(const std::string& text) {
  const size_t equals = text.rfind('=');
  std::vector<int64_t> dims;
  bool good = equals != text.npos && equals > 0;
  const char* at = text.data() + (good ? equals + 1 : text.size());
  const char* const end = text.data() + text.size();
  while (good) {
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    good = error == std::errc() && dim > 0 && (next == end || *next == 'x');
    dims.push_back(dim);
    if (next == end) break;
    at = next + 1;
  }
  if (good) return std::pair(text.substr(0, equals), Shape(dims));
  return invalid_argument(
      fmt::format("--shape '{}': expected TOP=SIZES, such as data=3x227x227", text));
}

void ShapeFlags::add(CLI::App& app) {
  add_shape_option(app, &given_,
                   "TOP=CxHxW (or all axes, NxCxHxW) of a data layer whose files are not there "
                   "(default: what the net says of crop and channels)");
}

Status ShapeFlags::parse() {
  for (const std::string& text : given_) {
    CFT_ASSIGN(const auto shape, parse_shape(text));
    by_top_.insert(shape);
  }
  return {};
}

Result<NetFeeds> open_or_state(const NetChoice& net, const TopShapes& by_top, uint64_t seed,
                               const Logger& log) {
  if (by_top.empty()) {
    Result<NetFeeds> all = open_feeds(net, seed, log);
    if (all.ok()) return all;
  }
  CFT_ASSIGN(const caffe::NetParameter filtered, filter_net(net.net.param, net.state, nullptr));
  CFT_TRY(check_tops(by_top, filtered));
  NetFeeds feeds;
  for (const caffe::LayerParameter& param : filtered.layer()) {
    CFT_ASSIGN(const std::unique_ptr<FileLayer> layer, file_layer(param));
    const auto given = [&](const std::string& top) { return by_top.contains(top); };
    Status unread(ErrorCode::kNotFound, "--shape stands for its files");
    if (!layer || std::ranges::none_of(param.top(), given)) {
      Result<NetFeeds> own = open_feeds(only(net, param), seed, log);
      if (own.ok()) {
        add(*std::move(own), &feeds);
        continue;
      }
      unread = own.status();
      if (!layer) return unread;
    }
    std::vector<Shape> shapes = stated_shapes(*layer, param, by_top);
    if (shapes.empty())
      return Status(unread.code(), unread.message() + "; " + advice(*layer, param));
    log.warning("layer '{}' is not read: {}", param.name(), unread.message());
    feeds.shapes[param.name()] = std::move(shapes);
  }
  CFT_TRY(check_rows(feeds));
  return feeds;
}

}  // namespace cafetiere
