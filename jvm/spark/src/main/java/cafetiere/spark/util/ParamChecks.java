// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.io.Serializable;
import java.util.List;
import scala.Function1;

/** What params may be set to. Unlike Spark's ParamValidators these say what to set instead. */
public final class ParamChecks {
  public static final List<String> SYNC_MODES =
      List.of("", "allreduce", "average", "easgd", "diloco", "hierarchical", "auto");
  public static final List<String> SYNC_HISTORIES = List.of("", "kept", "averaged", "reset");
  public static final String ROUNDS = "rounds";
  public static final List<String> ENGINES = List.of("barrier", ROUNDS);
  public static final List<String> ENCRYPTIONS = List.of("auto", "on", "off");
  public static final List<String> CONNECTIONS = List.of("ethernet", "infiniband");

  private ParamChecks() {}

  /** Whole numbers from {@code least} on. */
  public static Function1<Object, Object> atLeast(String param, long least) {
    return (Function1<Object, Object> & Serializable) value -> {
      if (((Number) value).longValue() >= least) return true;
      throw new IllegalArgumentException(
          param + " is " + value + ": set it to " + least + " or more");
    };
  }

  /** One of some words. */
  public static Function1<String, Object> oneOf(String param, List<String> words) {
    return (Function1<String, Object> & Serializable) value -> {
      if (words.contains(value)) return true;
      String hint = NearestName.of(value, words)
          .map(nearest -> " (did you mean \"" + nearest + "\"?)").orElse("");
      throw new IllegalArgumentException(
          param + " is \"" + value + "\"" + hint + ": set it to one of " + quoted(words));
    };
  }

  private static String quoted(List<String> words) {
    return "\"" + String.join("\", \"", words) + "\"";
  }
}
