// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cost;

import cafetiere.spark.util.Json;
import cafetiere.spark.util.Seconds;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes the account of a fit, on the driver. Each machine measures with its own clock how long
 * something took; no clock is compared with another.
 */
public final class AccountBook {
  /** In {@link Task#seconds}: the whole of it. */
  private static final String TASK = "task";
  private static final String STARTING = "starting";
  private static final String LOST = "lost";
  private static final String IDLE = "idle";

  private final long startNanos;
  private final double price;
  private long firstAttemptNanos = -1;
  private double lost;

  /**
   * What a rank's task tells of its time.
   *
   * @param seconds of "task", the whole of it, and what the engine says of it by activity
   */
  public record Task(int rank, String executor, Map<String, Double> seconds) {
    private double whole() {
      return seconds.getOrDefault(TASK, 0.0);
    }
  }

  /** Of a fit that was called at {@code startNanos}. */
  public AccountBook(long startNanos, double pricePerCoreHour) {
    this.startNanos = startNanos;
    this.price = pricePerCoreHour;
  }

  /** Seconds by activity of a task that ran since {@code begin}, of what its engine told last. */
  public static Map<String, Double> task(long begin, String engine) {
    Map<String, Double> seconds = new LinkedHashMap<>();
    Json.parse(engine).fields().forEachRemaining(
        part -> seconds.put(part.getKey(), part.getValue().asDouble()));
    seconds.put(TASK, Seconds.since(begin));
    return seconds;
  }

  /** An attempt begins: what was done since the first one began is lost. */
  public void attempt() {
    if (firstAttemptNanos < 0) firstAttemptNanos = System.nanoTime();
    lost = Seconds.since(firstAttemptNanos);
  }

  /**
   * The account of a training by one task a rank, all of which began at about the same time and have
   * ended by {@code endNanos}.
   */
  public Account ofTasks(int ranks, int threads, Collection<Task> tasks, long endNanos) {
    double wall = Seconds.since(startNanos);
    double after = Seconds.since(endNanos);
    double longest = tasks.stream().mapToDouble(Task::whole).max().orElse(0);
    List<Account.Rank> parts = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int number = rank;
      Map<String, Double> seconds = new LinkedHashMap<>();
      String executor = "";
      for (Task task : tasks) {
        if (task.rank() != number || task.seconds().isEmpty()) continue;
        seconds.putAll(task.seconds());
        seconds.put(IDLE, after + longest - task.whole());
        executor = task.executor();
      }
      seconds.remove(TASK);
      seconds.remove(STARTING);
      seconds.put(LOST, lost);
      // Of a rank that was lost nothing is known but that it was to work.
      String rest = executor.isEmpty() ? LOST : STARTING;
      seconds.merge(rest, rest(wall, seconds), Double::sum);
      parts.add(new Account.Rank(rank, executor, CoreHours.of(threads, seconds)));
    }
    return Account.of(wall, threads, price, parts);
  }

  /**
   * The account of a training by jobs, which {@code slots} tasks at a time did.
   *
   * @param shards what each shard's tasks have told, by activity
   * @param driver what all slots did in the driver's eyes: seconds of "storing", "lost" and "jobs",
   *     those of jobs that went well
   * @param startedNanos when the first job began
   */
  public Account ofJobs(int slots, int threads, List<Task> shards, Map<String, Double> driver,
      long startedNanos) {
    double wall = Seconds.since(startNanos);
    double starting = wall - Seconds.since(startedNanos);
    List<Account.Rank> parts = new ArrayList<>();
    Map<String, Double> all = new LinkedHashMap<>();
    for (Task shard : shards) {
      shard.seconds().forEach((name, spent) -> all.merge(name, spent, Double::sum));
      parts.add(new Account.Rank(shard.rank(), shard.executor(),
          CoreHours.of(threads, jobs(1, shard.seconds(), driver, starting, wall))));
    }
    if (slots == shards.size()) return Account.of(wall, threads, price, parts);
    CoreHours hours = CoreHours.of(threads, jobs(slots, all, driver, starting, wall));
    return new Account(wall, slots * threads, price, hours, List.of());
  }

  /** What {@code slots} did; what they did not do in a job is waiting for the exchange by Spark. */
  private static Map<String, Double> jobs(int slots, Map<String, Double> told,
      Map<String, Double> driver, double starting, double wall) {
    Map<String, Double> seconds = new LinkedHashMap<>(told);
    double inTasks = told.values().stream().mapToDouble(Double::doubleValue).sum();
    seconds.put("network", Math.max(0, slots * driver.getOrDefault("jobs", 0.0) - inTasks));
    seconds.merge(STARTING, slots * starting, Double::sum);
    seconds.put("storing", slots * driver.getOrDefault("storing", 0.0));
    seconds.put(LOST, slots * driver.getOrDefault(LOST, 0.0));
    seconds.put(IDLE, rest(slots * wall, seconds));
    return seconds;
  }

  private static double rest(double wall, Map<String, Double> seconds) {
    return Math.max(0, wall - seconds.values().stream().mapToDouble(Double::doubleValue).sum());
  }
}
