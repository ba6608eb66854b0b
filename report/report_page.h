// SPDX-License-Identifier: Apache-2.0
// The frame of the report: markup and style sheet.
#pragma once

#include <string>
#include <string_view>

namespace cafetiere {

/// Puts the parts of a report (HTML, except `title`, which is text) into a page.
std::string report_page(std::string_view title, std::string_view cards, std::string_view charts,
                        std::string_view table, std::string_view messages);

}  // namespace cafetiere
