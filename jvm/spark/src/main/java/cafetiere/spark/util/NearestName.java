// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToIntFunction;

/** Finds what somebody meant by a name that does not exist. */
public final class NearestName {
  private NearestName() {}

  /**
   * The candidate with the fewest edits from {@code name}; empty if none is close enough to be
   * meant, which is at a third of the letters.
   */
  public static Optional<String> of(String name, Collection<String> candidates) {
    String wanted = name.toLowerCase(Locale.ROOT);
    ToIntFunction<String> edits = c -> distance(wanted, c.toLowerCase(Locale.ROOT));
    int most = Math.max(1, name.length() / 3);
    return candidates.stream().min(Comparator.comparingInt(edits))
        .filter(nearest -> edits.applyAsInt(nearest) <= most);
  }

  /** How a message ends about a name that is not among these: with the nearest one, and with all. */
  public static String among(Collection<String> there, String name) {
    return of(name, there).map(nearest -> ": did you mean '" + nearest + "'?").orElse(".")
        + " It has: " + String.join(", ", there);
  }

  /** The refusal of an option that a data source does not have. */
  public static String noOption(String source, String name, Collection<String> known) {
    return source + " has no option \"" + name + "\"; "
        + of(name, known).map(nearest -> "did you mean \"" + nearest + "\"?")
            .orElse("it has " + String.join(", ", known));
  }

  /** The least insertions, deletions, replacements and swaps of neighbours that turn a into b. */
  private static int distance(String a, String b) {
    int[][] edits = new int[a.length() + 1][b.length() + 1];
    for (int j = 0; j <= b.length(); j++) edits[0][j] = j;
    for (int i = 1; i <= a.length(); i++) {
      edits[i][0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replaced = edits[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        edits[i][j] = Math.min(replaced, 1 + Math.min(edits[i - 1][j], edits[i][j - 1]));
        boolean swapped = i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2)
            && a.charAt(i - 2) == b.charAt(j - 1);
        if (swapped) edits[i][j] = Math.min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
    return edits[a.length()][b.length()];
  }
}
