// SPDX-License-Identifier: Apache-2.0
// The report of a run: one HTML page with its curves and figures.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// Renders a self-contained page (inline SVG, no script, no network) from the events of a run.
/// `events_jsonl`: one event a line; where a resumed run tells of a step twice, the later one
/// counts. `result_json`: an object shown as the summary; "title" names the page.
Result<std::string> render_report(std::string_view events_jsonl, std::string_view result_json);

}  // namespace cafetiere
