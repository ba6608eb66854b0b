// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;

/** Finds what somebody meant by a name that does not exist. */
public final class NearestName {
  private NearestName() {}

  /** The candidate with the fewest edits from {@code name}; empty if there is no candidate. */
  public static Optional<String> of(String name, Collection<String> candidates) {
    String wanted = name.toLowerCase(Locale.ROOT);
    return candidates.stream()
        .min(Comparator.comparingInt(c -> distance(wanted, c.toLowerCase(Locale.ROOT))));
  }

  /** Levenshtein's distance, by rows. */
  private static int distance(String a, String b) {
    int[] above = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) above[j] = j;
    for (int i = 1; i <= a.length(); i++) {
      int[] row = new int[b.length() + 1];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int substitute = above[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        row[j] = Math.min(substitute, 1 + Math.min(above[j], row[j - 1]));
      }
      above = row;
    }
    return above[b.length()];
  }
}
