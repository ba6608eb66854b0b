// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import cafetiere.core.Engine;
import cafetiere.spark.internal.UiInternals;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.apache.spark.ui.JettyUtils;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.util.kvstore.KVStore;
import scala.Function1;

/**
 * The tab: a list of runs at /cafetiere/, a run at /cafetiere/run/, its report, and its events as JSON.
 * Each is a folder to the server, so links from one to the other are relative to that.
 */
final class RunTab extends SparkUITab {
  private static final String PREFIX = "cafetiere";
  private static final int REFRESH_SECONDS = 5;

  private final SparkUI ui;

  private RunTab(SparkUI ui) {
    super(ui, PREFIX);
    this.ui = ui;
  }

  static void addTo(SparkUI ui) {
    RunTab tab = new RunTab(ui);
    ui.attachTab(tab);
    tab.serve("", "text/html;charset=utf-8", tab::list);
    tab.serve("/run", "text/html;charset=utf-8", tab::run);
    tab.serve("/report", "text/html;charset=utf-8", request -> tab.report(row(tab, request)));
    tab.serve("/events", "application/x-ndjson;charset=utf-8",
        request -> RunStore.events(tab.store(), row(tab, request).run));
  }

  @Override
  public String name() {
    return "Cafetiere";
  }

  /** Makes a page's text of a request. */
  private interface Page {
    String of(Object request);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private void serve(String path, String type, Page page) {
    Function1 answer = page::of;
    Function1 text = written -> (String) written;
    UiInternals.serve(ui, "/" + PREFIX + path, new JettyUtils.ServletParams(answer, type, text));
  }

  private KVStore store() {
    return ui.store().store();
  }

  private String list(Object request) {
    StringBuilder rows = new StringBuilder();
    for (RunRow row : RunStore.runs(store())) {
      rows.append("<tr><td><a href=\"run/?id=").append(text(row.run)).append("\">")
          .append(text(row.run)).append("</a></td><td>").append(text(row.title))
          .append("</td><td>").append(at(row.started)).append("</td><td>").append(progress(row))
          .append("</td><td>").append(state(row)).append("</td></tr>");
    }
    String none = rows.length() == 0 ? "<p>No run has begun.</p>" : "";
    return page(request, "Runs", "<table class=\"table table-bordered table-sm table-striped\">"
        + "<thead><tr><th>Run</th><th>What</th><th>Began</th><th>Progress</th><th>State</th></tr></thead><tbody>"
        + rows + "</tbody></table>" + none);
  }

  private String run(Object request) {
    RunRow row = row(this, request);
    String query = "?id=" + text(row.run);
    String refresh = row.isRunning()
        ? "<meta http-equiv=\"refresh\" content=\"" + REFRESH_SECONDS + "\">" : "";
    return page(request, "Run " + row.run, refresh + "<p>" + text(row.title) + ". Began "
        + at(row.started) + ", " + state(row) + ". <a href=\"../events/" + query
        + "\">Events as JSON</a></p><iframe title=\"report\" src=\"../report/" + query
        + "\" style=\"width:100%;height:150em;border:0\"></iframe>");
  }

  private String report(RunRow row) {
    String result = row.result.isEmpty() ? Json.object().put("title", row.title).toString()
        : row.result;
    return Engine.report(RunStore.events(store(), row.run), result);
  }

  private static String state(RunRow row) {
    if (!row.failure.isEmpty()) return row.state + ": " + text(row.failure);
    return row.isRunning() ? "running, last heard of " + at(row.heard) : "ended " + at(row.heard);
  }

  private static String at(long millis) {
    return Instant.ofEpochMilli(millis).truncatedTo(ChronoUnit.SECONDS).toString();
  }

  private static String progress(RunRow row) {
    JsonNode last = row.lastProgress();
    if (last.isEmpty()) return "";
    if (last.has("tasks")) {
      return last.path("keys").asLong() + " keys, task " + last.path("tasks").asLong() + " of "
          + last.path("of").asLong();
    }
    return "step " + last.path("step").asLong() + " of " + last.path("max_iter").asLong();
  }

  private static RunRow row(RunTab tab, Object request) {
    String id = UiInternals.parameter(request, "id");
    RunRow row = id == null ? null : RunStore.find(tab.store(), id);
    if (row == null) throw new IllegalArgumentException("there is no run " + id);
    return row;
  }

  private String page(Object request, String title, String html) {
    return UiInternals.page(request, "Cafetiere: " + title, html, this);
  }

  private static String text(String plain) {
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        .replace("\"", "&quot;");
  }
}
