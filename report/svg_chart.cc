// SPDX-License-Identifier: Apache-2.0
#include "report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/observe/grouped.h"

namespace cafetiere {
namespace {

constexpr double kWidth = 720, kHeight = 320;
constexpr double kLeft = 84, kRight = 16, kTop = 14, kBottom = 54;
constexpr size_t kMaxPoints = 800;  // more than the chart has pixels
constexpr size_t kSmoothFrom = 80;  // fewer points are drawn as they are
constexpr double kLogRatio = 30;
constexpr int kColours = 6;

/// Maps values to pixels along one axis.
struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;  // pixels of low and high
  bool logarithmic = false;
  std::vector<double> ticks;

  double position(double value) const {
    const double share =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool drawable(const ChartPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

std::string tick_text(double value) {
  return fmt::format("{:.6g}", value == 0 ? 0.0 : value);  // no "-0"
}

/// 1, 2 or 5 times a power of ten, about a `parts`-th of the range.
double nice_step(double range, int parts) {
  const double raw = range / parts;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) return factor * power;
  }
  return 10 * power;
}

Axis linear_axis(Extent extent, int parts, bool snap) {
  Axis axis;
  if (extent.high <= extent.low) {  // one value: give it room
    const double room = extent.low == 0 ? 1 : std::abs(extent.low) * 0.1;
    extent = {extent.low - room, extent.high + room};
  }
  const double step = nice_step(extent.high - extent.low, parts);
  axis.low = snap ? std::floor(extent.low / step) * step : extent.low;
  axis.high = snap ? std::ceil(extent.high / step) * step : extent.high;
  const double first = std::ceil(axis.low / step - 1e-9);
  const double last = std::floor(axis.high / step + 1e-9);
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
  return axis;
}

Axis log_axis(const Extent& extent) {
  Axis axis;
  axis.logarithmic = true;
  axis.low = extent.low / 1.15;
  axis.high = extent.high * 1.15;
  const bool powers_only = std::log10(axis.high / axis.low) > 3;
  for (double power = std::floor(std::log10(axis.low)); power <= std::log10(axis.high); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if (powers_only && factor != 1.0) continue;
      if (tick >= axis.low && tick <= axis.high) axis.ticks.push_back(tick);
    }
  }
  return axis;
}

/// Means of neighbouring points, so that at most kMaxPoints are left.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points) {
  const size_t group = (points.size() + kMaxPoints - 1) / kMaxPoints;
  if (group <= 1) return points;
  std::vector<ChartPoint> out;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(begin + group, points.size());
    ChartPoint sum;
    for (size_t i = begin; i < end; ++i) sum = {sum.x + points[i].x, sum.y + points[i].y};
    const auto n = static_cast<double>(end - begin);
    out.push_back({sum.x / n, sum.y / n});
  }
  return out;
}

/// Moving mean over a centred window that shrinks towards the ends.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points) {
  const size_t reach = std::max<size_t>(1, points.size() / 60);
  std::vector<ChartPoint> out(points);
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t side = std::min({reach, i, points.size() - 1 - i});
    double sum = 0;
    for (size_t j = i - side; j <= i + side; ++j) sum += points[j].y;
    out[i].y = sum / static_cast<double>(2 * side + 1);
  }
  return out;
}

std::string path(const std::vector<ChartPoint>& points, const Axis& x, const Axis& y) {
  std::string d;
  bool pen_down = false;
  for (const ChartPoint& p : points) {
    if (drawable(p)) {
      d += fmt::format("{}{:.1f},{:.1f}", pen_down ? 'L' : 'M', x.position(p.x), y.position(p.y));
    }
    pen_down = drawable(p);
  }
  return d;
}

std::string render_axes(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks) {
    const double at = y.position(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        x.from, x.to, at, at, x.from - 8, at + 5, tick_text(tick));
  }
  for (const double tick : x.ticks) {
    const double at = x.position(tick);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.0f}\" y2=\"{:.0f}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
        at, at, y.from, y.from + 5, at, y.from + 22, tick_text(tick));
  }
  svg += fmt::format(
      "<line class=\"axis\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.0f}\" y2=\"{:.0f}\"/>\n", x.from,
      x.to, y.from, y.from);
  svg += fmt::format(
      "<text class=\"label\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
      (x.from + x.to) / 2, kHeight - 8, escape_html(chart.x_label));
  svg += fmt::format(
      "<text class=\"label\" transform=\"translate(16 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}{}</text>\n",
      (y.from + y.to) / 2, escape_html(chart.y_label), y.logarithmic ? " (log scale)" : "");
  return svg;
}

std::string render_series(const ChartSeries& series, int colour, const Axis& x, const Axis& y) {
  const std::vector<ChartPoint> points = thinned(series.points);
  const std::string stroke = fmt::format("style=\"--c:var(--series-{})\"", colour);
  const bool smooth =
      points.size() >= kSmoothFrom && std::all_of(points.begin(), points.end(), drawable);
  std::string svg;
  if (smooth) {
    svg += fmt::format("<path class=\"line faint\" {} d=\"{}\"/>\n", stroke, path(points, x, y));
  }
  svg += fmt::format("<path class=\"line\" {} d=\"{}\"/>\n", stroke,
                     path(smooth ? smoothed(points) : points, x, y));
  if (!series.markers && points.size() > 1) return svg;
  for (const ChartPoint& p : points) {
    if (!drawable(p)) continue;
    svg += fmt::format(
        "<circle class=\"dot\" {} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{} {:.5g} at {:.6g}"
        "</title></circle>\n",
        stroke, x.position(p.x), y.position(p.y), escape_html(series.name), p.y, p.x);
  }
  return svg;
}

std::string last_value(const ChartSeries& series) {
  const double value = series.points.empty() ? 0 : series.points.back().y;
  const bool large = std::isfinite(value) && std::abs(value) >= 1000 && std::abs(value) < 1e15;
  return large ? grouped(value) : fmt::format("{:.4g}", value);
}

std::string render_legend(const Chart& chart) {
  std::string html = "<div class=\"legend\">";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    html += fmt::format("<span><i style=\"background:var(--series-{})\"></i>{} <b>{}</b></span>",
                        i % kColours + 1, escape_html(series.name), last_value(series));
  }
  return html + "</div>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render_chart(const Chart& chart) {
  Extent xs, ys;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& p : series.points) {
      if (!drawable(p)) continue;
      xs.include(p.x);
      ys.include(p.y);
    }
  }
  std::string html =
      fmt::format("<figure>\n<figcaption>{}</figcaption>\n", escape_html(chart.title));
  if (xs.low > xs.high) return html + "<p class=\"muted\">No values to draw.</p>\n</figure>\n";

  xs.include(0);
  Axis x = linear_axis(xs, 8, /*snap=*/false);
  x.from = kLeft, x.to = kWidth - kRight;
  Axis y = chart.log_y && ys.low > 0 && ys.high > kLogRatio * ys.low
               ? log_axis(ys)
               : linear_axis(ys, 5, /*snap=*/true);
  y.from = kHeight - kBottom, y.to = kTop;

  html += render_legend(chart);
  html += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over {}\">\n",
                      kWidth, kHeight, escape_html(chart.title), escape_html(chart.x_label));
  html += render_axes(chart, x, y);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    html += render_series(chart.series[i], static_cast<int>(i % kColours) + 1, x, y);
  }
  return html + "</svg>\n</figure>\n";
}

}  // namespace cafetiere
