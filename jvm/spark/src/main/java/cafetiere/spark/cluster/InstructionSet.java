// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import java.util.Collection;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the ranks generate code for. It decides the order of sums, so all of them use the lowest set
 * that any of them has.
 */
public final class InstructionSet {
  private static final Logger LOG = LoggerFactory.getLogger(InstructionSet.class);
  private static final List<String> BEST_FIRST = 
      List.of("amx", "avx512_bf16", "avx512", "avx2", "avx", "generic");
  private static final String LIMIT = "cafetiere.instructionSet";

  private InstructionSet() {}

  /** The best set of this process; the system property cafetiere.instructionSet limits it. */
  public static String here() {
    String limit = System.getProperty(LIMIT, BEST_FIRST.get(0));
    return lowest(List.of(Engine.instructionSet(), limit));
  }

  /** The lowest of some sets. */
  public static String lowest(Collection<String> names) {
    return names.stream().reduce(InstructionSet::lower).orElseThrow();
  }

  /** Generates code for a set from now on; where that cannot be, says what it means. */
  public static void use(String name) {
    try {
      Engine.useInstructionSet(name);
    } catch (CafetiereException e) {
      LOG.warn("The weights may differ in their last bits from those of a run on {} machines: {}",
          name, e.getMessage());
    }
  }

  private static String lower(String a, String b) {
    return rank(a) > rank(b) ? a : b;
  }

  private static int rank(String name) {
    int rank = BEST_FIRST.indexOf(name);
    if (rank >= 0) return rank;
    throw new IllegalArgumentException("'" + name + "' is no instruction set; " + LIMIT
        + " takes one of " + String.join(", ", BEST_FIRST));
  }
}
