// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.rounds.RoundsTask.Root;
import cafetiere.spark.rounds.RoundsTask.Round;
import cafetiere.spark.rounds.RoundsTask.Work;
import cafetiere.spark.util.Unchecked;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.spark.Partitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.storage.StorageLevel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * The shards of a run as Spark jobs see them. Their rows are persisted on the executors' disks, and
 * Spark sends a task to where its partition lies: that is what keeps a shard where its replica is,
 * and what lets it move when an executor is lost. What the rounds since the newest checkpoint began
 * with stays broadcast, since a lost replica is made anew out of it.
 */
final class RoundsStage implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RoundsStage.class);
  /** Up to so many shards send what they trained straight to the driver. */
  private static final int DIRECT_SHARDS = 8;

  private final JavaSparkContext sc;
  private final RoundsCell.Setup setup;
  private final MetricsRoute.Address driver;
  private final int shards;
  private final JavaRDD<byte[]> train;
  private final JavaRDD<byte[]> validation;
  private final List<Round> rounds = new ArrayList<>();
  private Broadcast<RoundsCell> cell;
  private Root root = new Root("", 0, 0);
  private Set<String> used = Set.of();
  private int executors;

  /** For rows shuffled to {@code shards} shards; {@code validation} may be null. */
  RoundsStage(JavaSparkContext sc, RoundsCell.Setup setup, MetricsRoute.Address driver, int shards,
      JavaRDD<byte[]> train, JavaRDD<byte[]> validation) {
    this.sc = sc;
    this.setup = setup;
    this.driver = driver;
    this.shards = shards;
    this.train = train;
    this.validation = validation == null ? sc.parallelize(List.of(), shards) : validation;
    this.cell = sc.broadcast(new RoundsCell(setup));
    this.executors = registered();
    persist();
  }

  /** Adds a round of {@code steps} iterations, which {@link #run} then does. */
  void begin(long iter, long steps, byte[] shared) {
    rounds.add(new Round(iter, steps, sc.broadcast(shared)));
  }

  /** Does some work on all shards: their outcomes, or those of groups of shards, in order. */
  List<RoundsOutcome> run(Work wanted) {
    RoundsTask task = new RoundsTask(cell, root, List.copyOf(rounds), wanted, driver);
    JavaRDD<byte[]> done = train.zipPartitions(validation, task);
    if (shards > DIRECT_SHARDS && wanted != Work.HISTORY) done = addGroups(done);
    List<RoundsOutcome> outcomes = done.collect().stream().map(RoundsOutcome::fromBytes).toList();
    used = new TreeSet<>();
    outcomes.forEach(outcome -> StreamSupport.stream(outcome.shards().spliterator(), false)
        .forEach(shard -> used.add(shard.path("executor").asText())));
    return outcomes;
  }

  /** Rounds that a lost replica would have to repeat. */
  int rounds() {
    return rounds.size();
  }

  /** Executors that took part in the last job. */
  int executorsUsed() {
    return used.size();
  }

  /** From now on lost replicas start from this checkpoint, which follows all rounds up to {@code iter}. */
  void startFrom(String checkpoint, long iter) {
    root = new Root(checkpoint, root.rounds() + rounds.size(), iter);
    rounds.forEach(round -> round.shared().destroy());
    rounds.clear();
  }

  /** Whether executors joined that have nothing to do. Asked once a round. */
  boolean hasIdleExecutors() {
    int before = executors;
    executors = registered();
    return executors > before && used.size() < Math.min(shards, executors);
  }

  /** Lets all shards find new places. Their replicas start from the newest checkpoint. */
  void spread() {
    Exception failure = release();
    if (failure instanceof InterruptedException || SparkInternals.isCancelled(failure)) {
      throw Unchecked.rethrow(failure);  // somebody ends the run
    }
    cell = sc.broadcast(new RoundsCell(setup));
    persist();
  }

  /** Frees all that the run holds on executors and driver. */
  @Override
  public void close() {
    if (release() instanceof InterruptedException) Thread.currentThread().interrupt();
    rounds.forEach(round -> round.shared().destroy());
    rounds.clear();
  }

  private void persist() {
    train.persist(StorageLevel.DISK_ONLY());
    validation.persist(StorageLevel.DISK_ONLY());
  }

  /**
   * Frees the replicas, where rows lie at once, elsewhere when the broadcast is dropped there. Before there
   * are any, a job that visits the rows would have to shuffle them first. Returns why that job failed, which
   * the run can bear, or null.
   */
  private Exception release() {
    Broadcast<RoundsCell> old = cell;
    try {
      if (hasReplicas()) train.foreachPartition(rows -> old.value().close());
      return null;
    } catch (Exception e) {  // a SparkException or InterruptedException: Scala declares neither
      LOG.warn("Replicas are freed only as their broadcast is dropped: {}", SparkInternals.tellingLine(e));
      return e;
    } finally {
      old.destroy();
      train.unpersist();
      validation.unpersist();
    }
  }

  /** Whether there may be replicas: the rows of a shard are stored before it has one. */
  private boolean hasReplicas() {
    return Stream.of(sc.sc().getRDDStorageInfo())
        .anyMatch(rows -> rows.id() == train.id() && rows.numCachedPartitions() > 0);
  }

  /**
   * How many outcomes come to the driver at once, at most. Replicas with history of their own send all
   * of it for a checkpoint.
   */
  static int outcomes(int shards, boolean keepsHistory) {
    return keepsHistory ? shards : outcomes(shards);
  }

  private static int outcomes(int shards) {
    if (shards <= DIRECT_SHARDS) return shards;
    return (shards + groupSize(shards) - 1) / groupSize(shards);
  }

  private static int groupSize(int shards) {
    return Integer.highestOneBit((int) Math.ceil(Math.sqrt(shards)) - 1) * 2;
  }

  private int registered() {
    return sc.sc().statusTracker().getExecutorInfos().length;
  }

  /**
   * Adds up what consecutive shards trained, before it goes to the driver: groups of a power of two
   * are nodes of the shard tree, so the bits are those of the whole tree.
   */
  private JavaRDD<byte[]> addGroups(JavaRDD<byte[]> outcomes) {
    int size = groupSize(shards);
    return outcomes
        .mapToPair(outcome -> new Tuple2<>(TaskContext.getPartitionId(), outcome))
        .partitionBy(new ByGroup(size, outcomes(shards)))
        .mapPartitions(group -> {
          List<Tuple2<Integer, byte[]>> members = new ArrayList<>();
          group.forEachRemaining(members::add);
          members.sort((a, b) -> Integer.compare(a._1(), b._1()));
          RoundsOutcome sum = RoundsOutcome.sum(
              members.stream().map(member -> RoundsOutcome.fromBytes(member._2())).toList());
          return Collections.singleton(sum.toBytes()).iterator();
        });
  }

  /** Consecutive shards together. */
  private static final class ByGroup extends Partitioner {
    private static final long serialVersionUID = 1L;
    private final int size;
    private final int groups;

    ByGroup(int size, int groups) {
      this.size = size;
      this.groups = groups;
    }

    @Override
    public int numPartitions() {
      return groups;
    }

    @Override
    public int getPartition(Object shard) {
      return (Integer) shard / size;
    }
  }
}
