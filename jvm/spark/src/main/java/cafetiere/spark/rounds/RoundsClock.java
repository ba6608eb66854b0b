// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.spark.cost.Account;
import cafetiere.spark.cost.AccountBook;
import cafetiere.spark.util.Seconds;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What the time of shards and driver went to, for the account. */
final class RoundsClock {
  /** In a shard's report: its task's seconds by activity. */
  static final String SECONDS = "seconds";
  static final String JOBS = "jobs";
  static final String LOST = "lost";
  static final String STORING = "storing";

  private final Map<Integer, Map<String, Double>> shards = new TreeMap<>();
  private final Map<Integer, String> executors = new TreeMap<>();
  private final Map<String, Double> driver = new LinkedHashMap<>();
  private long firstNanos = System.nanoTime();

  /** All until now was preparation. */
  void start() {
    firstNanos = System.nanoTime();
  }

  /** The driver did this since {@code begin}: one of JOBS, LOST and STORING. */
  void driver(String what, long begin) {
    driver.merge(what, Seconds.since(begin), Double::sum);
  }

  /** A job since {@code begin} has ended well. What the first one did beside its tasks is shuffling. */
  void job(long begin, List<RoundsOutcome> outcomes) {
    boolean isFirst = shards.isEmpty();
    driver(JOBS, begin);
    for (RoundsOutcome outcome : outcomes) {
      for (JsonNode shard : outcome.shards()) {
        int number = shard.path("shard").asInt();
        Map<String, Double> seconds = shards.computeIfAbsent(number, n -> new LinkedHashMap<>());
        executors.put(number, shard.path("executor").asText());
        shard.path(SECONDS).fields().forEachRemaining(
            part -> seconds.merge(part.getKey(), part.getValue().asDouble(), Double::sum));
        if (isFirst) seconds.merge("starting", Math.max(0, Seconds.since(begin) - sum(seconds)), Double::sum);
      }
    }
  }

  /** The account of a run with so many slots of {@code threads} cores. */
  Account account(AccountBook book, int slots, int threads) {
    List<AccountBook.Task> tasks = new ArrayList<>();
    shards.forEach((shard, seconds) ->
        tasks.add(new AccountBook.Task(shard, executors.get(shard), seconds)));
    return book.ofJobs(Math.min(slots, tasks.size()), threads, tasks, driver, firstNanos);
  }

  private static double sum(Map<String, Double> seconds) {
    return seconds.values().stream().mapToDouble(Double::doubleValue).sum();
  }
}
