package cafetiere.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintStream;
import java.util.Iterator;
import java.util.Locale;

/**
 * Shows a run on the driver's console: one line, rewritten in place on a terminal, or a new line
 * every few seconds where output goes to a log.
 */
final class ProgressLine {
  private static final long LOG_INTERVAL_NANOS = 5_000_000_000L;

  private final PrintStream out;
  private final boolean terminal;
  private final long epochs;
  private long lastPrint = Long.MIN_VALUE;
  private int width;
  private String scores = "";

  /** {@code epochs} is the run's length in epochs, 0 where only its steps are known. */
  ProgressLine(PrintStream out, boolean terminal, long epochs) {
    this.out = out;
    this.terminal = terminal;
    this.epochs = epochs;
  }

  /** Shows an event, if it is one to be shown and its time has come. */
  synchronized void show(JsonNode event) {
    String kind = event.path("event").asText();
    if (kind.equals("test")) {
      scores = scores(event.path("outputs"));
    } else if (kind.equals("progress")) {
      boolean last = event.path("step").asLong() >= event.path("max_iter").asLong(Long.MAX_VALUE);
      print(render(event), last);
    }
  }

  /** Ends the line that is rewritten in place, so that other output starts on its own. */
  synchronized void finish() {
    if (terminal && width > 0) out.println();
    width = 0;
  }

  String render(JsonNode event) {
    long step = event.path("step").asLong();
    long maxIter = event.path("max_iter").asLong();
    double seconds = event.path("seconds").asDouble();
    StringBuilder line = new StringBuilder("cafetiere  epoch ").append(event.path("epoch").asLong());
    if (epochs > 0) line.append('/').append(epochs);
    line.append(String.format(Locale.ROOT, "  step %d/%d  loss %.4f", step, maxIter,
        event.path("loss").asDouble()));
    line.append(scores);
    line.append(String.format(Locale.ROOT, "  %,.0f rows/s", event.path("rows_per_s").asDouble()));
    line.append(String.format(Locale.ROOT, "  waits: data %.0f %%, network %.0f %%",
        100 * event.path("wait_data").asDouble(), 100 * event.path("wait_comm").asDouble()));
    long done = step - event.path("first_step").asLong(0);
    if (done > 0 && seconds > 0) {
      line.append("  ETA ").append(clock(seconds / done * (maxIter - step)));
    }
    return line.toString();
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
    StringBuilder text = new StringBuilder();
    for (Iterator<String> names = outputs.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      JsonNode value = outputs.get(name);
      if (!value.isNumber()) continue;
      text.append(String.format(Locale.ROOT, "  test %s %.4f", name, value.asDouble()));
    }
    return text.toString();
  }

  private static String clock(double seconds) {
    long whole = Math.round(seconds);
    String tail = String.format(Locale.ROOT, "%02d:%02d", whole / 60 % 60, whole % 60);
    return whole < 3600 ? tail : whole / 3600 + ":" + tail;
  }
}
