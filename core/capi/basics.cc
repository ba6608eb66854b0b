// SPDX-License-Identifier: Apache-2.0
// Errors, memory, version, rows, groups and reports.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/comm/collectives.h"
#include "core/device/isa.h"

namespace cafetiere::capi {
namespace {
thread_local std::string last_error;  // the calling thread's, as the interface promises
}  // namespace

const char* missing_feature() {
#ifdef __x86_64__
  static const bool complete = __builtin_cpu_supports("x86-64-v3");
  if (!complete) {
    return "this processor lacks AVX2, FMA or BMI, which the engine needs: use a machine of 2015 "
           "or later, or a virtual one that passes its host's processor through";
  }
#endif
  return nullptr;
}

/// The text may not fit what memory is left; the code is the caller's in any case.
int finish(const Status& status) {
  const Status kept = guard([&] { last_error = status.message(); });
  if (!kept.ok()) last_error = kept.message();
  return int(status.code());
}

std::string json_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status give_json(const nlohmann::json& json, char** out) { return give_text(json_text(json), out); }

Status not_null(const char* function, std::string_view names,
                std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    const size_t end = std::min(names.find(','), names.size());
    if (!pointer) {
      return guard([&] {
        return invalid_argument(fmt::format("{}: {} is NULL", function, names.substr(0, end)));
      });
    }
    names.remove_prefix(std::min(names.size(), end + 2));  // and ", "
  }
  return {};
}

Status check_struct(const char* name, const void* bytes, uint64_t size, uint64_t least,
                    uint64_t known) {
  constexpr uint64_t kMost = 4096;
  if (size < least || size > kMost || size % sizeof(void*) != 0) {
    return invalid_argument(fmt::format(
        "{}.struct_size is {}, which no version has; set it to sizeof({})", name, size, name));
  }
  const auto* fields = static_cast<const char*>(bytes);
  if (size > known && std::any_of(fields + known, fields + size, [](char c) { return c != 0; })) {
    return invalid_argument(fmt::format(
        "{} sets a field that this library, of API version {}, does not know; take a later one",
        name, CFT_API_VERSION));
  }
  return {};
}

}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

const char* cft_last_error(void) { return capi::last_error.c_str(); }
const char* cft_version(void) { return CFT_VERSION; }
int cft_api_version(void) { return CFT_API_VERSION; }
const char* cft_instruction_set(void) {
  return capi::missing_feature() ? "generic" : cafetiere::instruction_set().data();
}
int cft_use_instruction_set(const char* name) {
  return capi::guarded([&] { return cafetiere::use_instruction_set(name ? name : ""); });
}
void cft_free(void* memory) { std::free(memory); }

int cft_rows_create(const char* schema, cft_rows** out) {
  return cft_rows_create_within(schema, nullptr, out);
}

int cft_rows_create_within(const char* schema, cft_row_budget* budget, cft_rows** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(cafetiere::RowSchema parsed, cafetiere::RowSchema::parse(schema ? schema : ""));
    *out = new cft_rows{cafetiere::RowTable(std::move(parsed), budget ? budget->budget : nullptr)};
    return {};
  });
}

int cft_row_budget_create(const char* options, cft_row_budget** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(capi::Options o, capi::Options::parse(options));
    const int64_t bytes = o.number("bytes", 0, 0, INT64_MAX);
    std::string folder = o.text("folder");
    CFT_TRY(o.done());
    if (folder.empty()) return cafetiere::invalid_argument("\"folder\" is missing");
    *out = new cft_row_budget{
        std::make_shared<cafetiere::RowBudget>(uint64_t(bytes), std::move(folder))};
    return {};
  });
}

void cft_row_budget_destroy(cft_row_budget* budget) { delete budget; }

int cft_rows_append(cft_rows* rows, int64_t count, const void* chunk, uint64_t bytes) {
  CFT_NOT_NULL(rows);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto encoded, capi::given_bytes(chunk, bytes, "chunk"));
    return rows->table.append(count, encoded);
  });
}

int cft_rows_count(const cft_rows* rows, int64_t* out) {
  CFT_NOT_NULL(rows, out);
  return capi::guarded([&] { *out = rows->table.rows(); });
}

void cft_rows_destroy(cft_rows* rows) { delete rows; }

int cft_group_create(const char* options, cft_group** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(capi::Options o, capi::Options::parse(options));
    cafetiere::GroupOptions group;
    group.size = int(o.number("size", 1, 1, 1 << 20));
    group.rank = int(o.number("rank", 0, 0, group.size - 1));
    group.bind = o.text("bind", "127.0.0.1");
    const std::string ports = o.text("ports");
    const std::string connection = o.text("connection", "ethernet");
    group.secret = o.text("secret");
    group.generation = o.text("generation");
    group.timeout_ms = int(o.number("timeout_ms", 6000, 100, 3600000));
    group.encrypt = o.number("encrypt", 0, 0, 1) != 0;
    CFT_TRY(o.done());
    CFT_ASSIGN(group.ports, cafetiere::parse_ports(ports));
    CFT_ASSIGN(group.infiniband, cafetiere::parse_connection(connection));
    auto handle = std::make_shared<cft_group>();
    group.log = handle->log.logger();
    CFT_ASSIGN(handle->group, cafetiere::TcpGroup::listen(std::move(group)));
    handle->owner = handle;
    *out = handle.get();
    return {};
  });
}

int cft_group_address(const cft_group* group, char** out) {
  CFT_NOT_NULL(group, out);
  return capi::guarded([&] { return capi::give_text(group->group->address(), out); });
}

int cft_group_connect(cft_group* group, const char* addresses) {
  CFT_NOT_NULL(group);
  return capi::guarded([&]() -> Status {
    const auto json = nlohmann::json::parse(addresses ? addresses : "", nullptr, false);
    std::vector<std::string> list;
    for (const auto& item : json.is_array() ? json : nlohmann::json::array()) {
      if (item.is_string()) list.push_back(item.get<std::string>());
    }
    if (int(list.size()) != group->group->size()) {
      return cafetiere::invalid_argument(
          "addresses must be a JSON array with one string for each rank");
    }
    return group->group->connect(list);
  });
}

int cft_group_set_secret(cft_group* group, const char* secret) {
  CFT_NOT_NULL(group, secret);
  return capi::guarded([&] { return group->group->set_secret(secret); });
}

int cft_group_barrier(cft_group* group) {
  CFT_NOT_NULL(group);
  return capi::guarded([&] { return cafetiere::barrier(group->group.get()); });
}

int cft_group_log(cft_group* group, cft_log log, void* context) {
  CFT_NOT_NULL(group);
  return capi::guarded([&] { group->log.listen(capi::sink_of(log, context)); });
}

void cft_group_cancel(cft_group* group) {
  if (group) capi::guarded([&] { group->group->cancel(); });
}
void cft_group_destroy(cft_group* group) {
  if (group) std::exchange(group->owner, nullptr).reset();
}
