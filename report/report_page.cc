// SPDX-License-Identifier: Apache-2.0
#include "report/report_page.h"

#include <fmt/format.h>

#include "report/svg_chart.h"

namespace cafetiere {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark;
  --page: #f6f5f2; --card: #ffffff; --text: #22201c; --muted: #6f6a62; --grid: #e6e2da;
  --border: #e2ddd3; --accent: #7a4a21; --series-1: #b0642a; --series-2: #1f6fb2;
  --series-3: #2f8f5b; --series-4: #8a4fb0; --series-5: #b5305c; --series-6: #5b6770; }
@media (prefers-color-scheme: dark) { :root {
  --page: #171513; --card: #211e1b; --text: #ece7df; --muted: #a29b90; --grid: #35302b;
  --border: #37322c; --accent: #e0a878; --series-1: #e39a5f; --series-2: #6bb2ee;
  --series-3: #6cc997; --series-4: #c295e3; --series-5: #f07ba0; --series-6: #a9b4bd; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 20px 56px; }
h1 { font-size: 26px; font-weight: 650; margin: 0 0 20px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(124px, 1fr)); gap: 12px; }
.card, figure, table, .messages, details { background: var(--card); border: 1px solid var(--border);
  border-radius: 10px; }
.card { padding: 12px 14px; line-height: 1.3; }
.card b { display: block; font-size: 20px; font-weight: 650; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.card:first-child b { color: var(--accent); }
.card span, .muted { color: var(--muted); font-size: 13px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr));
  gap: 12px; margin: 12px 0; }
figure { margin: 0; padding: 14px 16px 8px; }
figcaption { font-weight: 650; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; color: var(--muted); font-size: 13px; }
.legend i { display: inline-block; width: 14px; height: 3px; border-radius: 2px;
  margin-right: 6px; vertical-align: middle; }
.legend b { color: var(--text); font-variant-numeric: tabular-nums; font-weight: 600; }
svg { display: block; width: 100%; height: auto; margin-top: 6px; overflow: visible; }
.grid { stroke: var(--grid); } .axis { stroke: var(--muted); }
.tick, .label { fill: var(--muted); font-size: 15px; font-variant-numeric: tabular-nums; }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.faint { stroke-width: 1; opacity: .3; }
.dot { fill: var(--c); stroke: var(--card); stroke-width: 1; }
table { width: 100%; border-spacing: 0; padding: 6px 16px; }
th { text-align: left; font-weight: 500; color: var(--muted); width: 200px; vertical-align: top; }
th, td { padding: 5px 8px 5px 0; overflow-wrap: anywhere; }
tr + tr > * { border-top: 1px solid var(--grid); }
td { font-variant-numeric: tabular-nums; }
.messages { margin: 12px 0; padding: 10px 16px 10px 34px; }
.messages li { white-space: pre-wrap; overflow-wrap: anywhere; }
.error { color: var(--series-5); }
.bar { display: flex; height: 16px; border-radius: 3px; overflow: hidden; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
details { margin: 12px 0; padding: 10px 16px; }
summary { cursor: pointer; font-weight: 650; }
pre { overflow-x: auto; font-size: 12px; line-height: 1.4; }
@media print { body { background: none; } }
)";

}  // namespace

std::string report_page(std::string_view title, std::string_view cards, std::string_view charts,
                        std::string_view table, std::string_view messages) {
  const std::string name = escape_html(title);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n"
      "<div class=\"cards\">\n{}</div>\n<div class=\"charts\">\n{}</div>\n{}{}</main>\n</body>\n"
      "</html>\n",
      name, kStyle, name, cards, charts, messages, table);
}

}  // namespace cafetiere
