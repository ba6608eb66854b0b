// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.Rounds.Replica;
import cafetiere.spark.cluster.PulseSender;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.util.Json;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.util.SerializableConfiguration;

/**
 * What all tasks of a run share, and the replicas that live in one executor. It travels as a
 * broadcast: Spark gives each executor one copy, keeps it while the run lasts and drops it
 * everywhere when the driver destroys it. A copy begins without replicas, and one that Spark drops
 * early costs time only: its replicas are made anew.
 */
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record, as the setup is
final class RoundsCell implements Serializable {
  private static final long serialVersionUID = 1L;

  /**
   * The run.
   *
   * @param options of the replicas but for "shard", as cft_replica_create describes them
   * @param schema the columns that are fed
   * @param rows rows of all shards
   * @param keepsHistory whether each replica has history of its own from round to round
   * @param instructionSet what all replicas generate code for
   * @param checkpoints the run's folder for checkpoints
   * @param hadoop how Hadoop's file systems are reached
   * @param pulse who is told that an executor lives
   * @param stallSeconds after which a shard that does not get on is told of; 0 never
   */
  record Setup(String options, FeedSchema schema, long rows, boolean keepsHistory,
      String instructionSet, String checkpoints, SerializableConfiguration hadoop,
      LineServer.Address pulse, long stallSeconds) implements Serializable {

    /** The options of one shard's replica. */
    String options(int shard) {
      return ((ObjectNode) Json.parse(options)).put("shard", shard).toString();
    }
  }

  private final Setup setup;
  private transient Map<Integer, LiveReplica> replicas;
  private transient PulseSender pulse;

  RoundsCell(Setup setup) {
    this.setup = setup;
  }

  Setup setup() {
    return setup;
  }

  /** This executor's place for the replica of a shard. Who uses it holds its lock. */
  synchronized LiveReplica of(int shard) {
    if (replicas == null) replicas = new HashMap<>();
    if (pulse == null) pulse = new PulseSender(setup.pulse(), SparkInternals.executorId());
    return replicas.computeIfAbsent(shard, key -> new LiveReplica());
  }

  /** Frees all replicas of this executor; waits for those that are at work. */
  synchronized void close() {
    if (replicas != null) replicas.values().forEach(LiveReplica::close);
    if (pulse != null) pulse.close();
    pulse = null;
  }

  /** A replica and how many rounds of the run it has behind it. */
  static final class LiveReplica {
    private volatile Replica replica;
    private long rounds;

    /** The replica; null before the first round here and after an error. */
    Replica replica() {
      return replica;
    }

    long rounds() {
      return rounds;
    }

    void set(Replica now, long roundsDone) {
      replica = now;
      rounds = roundsDone;
    }

    synchronized void close() {
      if (replica != null) replica.close();
      replica = null;
    }

    /** Ends the round under way. Any thread. */
    void cancel() {
      Replica atWork = replica;
      if (atWork != null) atWork.cancel();
    }
  }
}
