// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/** Ports that a setting names, the first and the last; 0 and 0 for any that is free. */
public record PortRange(int first, int last) {
  /** Where the driver listens for executors. */
  public static final String DRIVER = "spark.cafetiere.port";
  /** Where the ranks listen for each other. */
  public static final String RANKS = "spark.cafetiere.rankPorts";

  private static final Pattern FORM = Pattern.compile("\\s*(\\d{1,5})\\s*(?:-\\s*(\\d{1,5})\\s*)?");
  private static final int LAST = 65_535;

  /** What {@code setting} says, as in 41000 or 41000-41015; an error tells it and what to write. */
  public static PortRange of(SparkConf conf, String setting) throws IOException {
    String text = conf.get(setting, "0");
    Matcher range = FORM.matcher(text);
    int first = range.matches() ? Integer.parseInt(range.group(1)) : -1;
    int last = range.matches() && range.group(2) != null ? Integer.parseInt(range.group(2)) : first;
    if (first < 0 || last < first || last > LAST || first == 0 && last > 0) {
      throw new IOException(setting + " is '" + text + "': set it to a port, or to two of them as"
          + " in 41000-41015");
    }
    return new PortRange(first, last);
  }

  public boolean isAny() {
    return first == 0;
  }

  public int count() {
    return last - first + 1;
  }

  /** As a cafetiere.core.Group takes it. */
  public String option() {
    return isAny() ? "" : toString();
  }

  @Override
  public String toString() {
    return first == last ? Integer.toString(first) : first + "-" + last;
  }
}
