// SPDX-License-Identifier: Apache-2.0
// Line charts as inline SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

/// One line of a chart. Points with a value that is not finite break the line.
struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  ///< by ascending x
  bool markers = false;            ///< a dot, with its value as tool tip, on each point
};

/// A chart of one or more series over one pair of axes.
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartSeries> series = {};
  bool log_y = true;  ///< a logarithmic y axis where the values call for one
};

/// Text made safe for HTML content and attribute values.
std::string escape_html(std::string_view text);

/// A <figure> with title, legend and SVG. Colours come from the page's variables --series-1 to
/// --series-6, --grid and --muted. The y axis is logarithmic when positive values span a factor of
/// more than 30. Series of many points are drawn smoothed over a faint original.
std::string render_chart(const Chart& chart);

}  // namespace cafetiere
