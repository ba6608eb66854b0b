// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintStream;
import java.util.Iterator;
import java.util.Locale;

/**
 * Shows a run on the driver's console: one line, rewritten in place on a terminal, or a new line
 * every few seconds where output goes to a log.
 */
public final class ProgressLine {
  private static final long LOG_INTERVAL_NANOS = 5_000_000_000L;

  private final PrintStream out;
  private final boolean terminal;
  private long lastPrint = Long.MIN_VALUE;
  private int width;
  private String scores = "";
  private long firstStep;
  private double firstSeconds = Double.MAX_VALUE;

  public ProgressLine(PrintStream out, boolean terminal) {
    this.out = out;
    this.terminal = terminal;
  }

  /** Shows an event, if it is one to be shown and its time has come. */
  synchronized void show(JsonNode event) {
    String kind = event.path("event").asText();
    if (kind.equals("progress")) {
      print(render(event), isLast(event));
    } else if (kind.equals("keys")) {
      print(keys(event), event.path("tasks").asLong() == event.path("of").asLong());
    } else if (kind.equals("test")) {
      scores = scores(event.path("outputs"));
    }
  }

  /** Whether a progress is that of the last iteration, which comes after its test. */
  private static boolean isLast(JsonNode progress) {
    return progress.path("step").asLong() >= progress.path("max_iter").asLong(Long.MAX_VALUE);
  }

  /** Ends the line that is rewritten in place, so that other output starts on its own. */
  public synchronized void finish() {
    if (terminal && width > 0) out.println();
    width = 0;
  }

  /** Ends the line that is rewritten in place, and adds what is told at the end of a run. */
  public synchronized void end(String text) {
    finish();
    out.println(text);
  }

  private String render(JsonNode event) {
    long step = event.path("step").asLong();
    long maxIter = event.path("max_iter").asLong();
    StringBuilder line = new StringBuilder("cafetiere  ");
    line.append(text("epoch %.1f", event.path("epoch").asDouble()));
    line.append(text("  step %d/%d", step, maxIter));
    line.append(text("  loss %.4f", event.path("loss").asDouble(Double.NaN)));
    line.append(scores);
    line.append(text("  %,.0f rows/s", event.path("rows_per_s").asDouble()));
    line.append(text("  waits: data %.0f %%", 100 * event.path("wait_data").asDouble()));
    line.append(text(", network %.0f %%", 100 * event.path("wait_comm").asDouble()));
    double seconds = event.path("seconds").asDouble();
    return line.append(isLast(event) ? "  took " + clock(seconds) : eta(step, maxIter, seconds)).toString();
  }

  /** Of nets of keys, whose number nobody knows before their tasks have ended. */
  private static String keys(JsonNode event) {
    long tasks = event.path("tasks").asLong();
    long left = event.path("of").asLong() - tasks;
    String line = text("cafetiere  %,d keys", event.path("keys").asLong())
        + text("  %,.0f keys/s", event.path("keys_per_s").asDouble())
        + text("  task %d/%d", tasks, tasks + left);
    return tasks == 0 || left == 0 ? line
        : line + "  ETA " + clock(event.path("seconds").asDouble() / tasks * left);
  }

  /** From the pace since the first event of this attempt: a resumed run does not begin at 0. */
  private String eta(long step, long maxIter, double seconds) {
    if (seconds < firstSeconds) {
      firstSeconds = seconds;
      firstStep = step;
    }
    if (step <= firstStep || maxIter < step) return "";
    double pace = (seconds - firstSeconds) / (step - firstStep);
    return "  ETA " + clock(pace * (maxIter - step));
  }

  private void print(String line, boolean last) {
    if (terminal) {
      int padding = Math.max(0, width - line.length());
      out.print("\r" + line + " ".repeat(padding));
      out.flush();
      width = line.length();
      return;
    }
    long now = System.nanoTime();
    if (last || lastPrint == Long.MIN_VALUE || now - lastPrint >= LOG_INTERVAL_NANOS) {
      out.println(line);
      lastPrint = now;
    }
  }

  private static String scores(JsonNode outputs) {
    StringBuilder scores = new StringBuilder();
    for (Iterator<String> names = outputs.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      scores.append(text("  test %s ", name)).append(text("%.4f", outputs.get(name).asDouble()));
    }
    return scores.toString();
  }

  private static String text(String format, Object value) {
    return String.format(Locale.ROOT, format, value);
  }

  private static String text(String format, long first, long second) {
    return String.format(Locale.ROOT, format, first, second);
  }

  private static String clock(double seconds) {
    long whole = Math.round(seconds);
    String tail = String.format(Locale.ROOT, "%02d:%02d", whole / 60 % 60, whole % 60);
    return whole < 3600 ? tail : whole / 3600 + ":" + tail;
  }
}
