// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cost;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.Serializable;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What a fit used its cores for. The parts add up to seconds x cores.
 *
 * @param seconds from the call of fit to its result
 * @param cores that the ranks had, each its threads
 * @param pricePerCoreHour as the param says; 0 where none is known
 * @param coreHours of all ranks
 * @param ranks each rank's part; none where shards took turns in fewer tasks
 */
public record Account(double seconds, int cores, double pricePerCoreHour, CoreHours coreHours,
    List<Rank> ranks) implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Where the weights were trained elsewhere. */
  public static final Account NONE = new Account(0, 0, 0, CoreHours.NONE, List.of());

  /**
   * A rank's part.
   *
   * @param rank its number
   * @param executor Spark's id of its executor; "" where the rank was lost
   */
  public record Rank(int rank, String executor, CoreHours coreHours) implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /** Nothing is null. */
  public Account {
    coreHours = coreHours == null ? CoreHours.NONE : coreHours;
    ranks = ranks == null ? List.of() : List.copyOf(ranks);
  }

  /** Of ranks with {@code threads} cores each. */
  static Account of(double seconds, int threads, double price, List<Rank> ranks) {
    CoreHours all = ranks.stream().map(Rank::coreHours).reduce(CoreHours.NONE, CoreHours::plus);
    return new Account(seconds, threads * ranks.size(), price, all, ranks);
  }

  /** What all of it costs; 0 without a price. */
  @JsonProperty("cost")
  public double cost() {
    return coreHours.total() * pricePerCoreHour;
  }

  /** Some lines for a person. */
  public String text() {
    StringBuilder text = new StringBuilder(String.format(Locale.ROOT,
        "%.1f s x %d cores = %.3g core-hours: %s", seconds, cores, coreHours.total(),
        shares(coreHours)));
    if (pricePerCoreHour > 0) text.append(String.format(Locale.ROOT, "; cost %.4g", cost()));
    for (Rank rank : ranks.size() > 1 ? ranks : List.<Rank>of()) {
      text.append("\n  rank ").append(rank.rank()).append(": ").append(shares(rank.coreHours()));
    }
    return text.toString();
  }

  private static String shares(CoreHours hours) {
    StringBuilder text = new StringBuilder();
    for (Map.Entry<String, Double> part : hours.parts().entrySet()) {
      double share = 100 * part.getValue() / hours.total();
      if (!(share >= 0.05)) continue;
      text.append(text.isEmpty() ? "" : ", ").append(part.getKey());
      text.append(String.format(Locale.ROOT, " %.1f %%", share));
    }
    return text.toString();
  }
}
