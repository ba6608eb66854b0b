// SPDX-License-Identifier: Apache-2.0
// The report in the C interface.
#include "core/capi/boundary.h"
#include "report/report.h"

namespace capi = cafetiere::capi;

int cft_report(const char* events, const char* result, char** html) {
  CFT_NOT_NULL(html);
  return capi::guarded([&]() -> cafetiere::Status {
    CFT_ASSIGN(const std::string page,
               cafetiere::render_report(events ? events : "", result ? result : "{}"));
    return capi::give_text(page, html);
  });
}
